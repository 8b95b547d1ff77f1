"""Our networks compared with others: what is paired, what is said, and what is not said without results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.made_up import keep, wrong_of

from scalechannels.cli import main as command
from scalechannels.data.sizes import MNIST_SIZES
from scalechannels.paper.comparisons import (
    Size,
    compare,
    comparisons,
    comparisons_json,
)
from scalechannels.paper.document import BEGIN_BEYOND, END, updated
from scalechannels.paper.experiments import experiment
from scalechannels.paper.paired import Paired, paired_difference
from scalechannels.paper.recipes import (
    ROOT2,
    ROOT4,
    SINGLE,
    better,
    better_cifar,
    cifar,
    few,
    main,
    mnist,
    residual_cifar,
    seeded,
)
from scalechannels.paper.report import compared, report_page
from scalechannels.paper.results import RUNS, Results
from scalechannels.paper.table_text import BEYOND, comparison_rows, comparison_text
from scalechannels.training.config import RunConfig

OVER = experiment("beyond").columns


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """FovLSE and FovLSE+, with some that they are compared with."""
    folder = tmp_path / RUNS
    for train in SINGLE:
        keep(folder, better(train), main("fovlse", train), main("fovavg", train))
    keep(folder, mnist("cnn", (0.5, 8.0), redraw=True))
    keep(folder, better("tr14", 1000), few("fovavg", 1000), ranges=((1.0, 4.0),))
    return Results(folder)


def by_names(results: Results) -> dict:
    return {(one.network, one.other): one for one in comparisons(results, "beyond")}


def test_a_comparison_is_that_of_the_pairs_runs(results: Results) -> None:
    found = by_names(results)
    ours, theirs = ([make(train) for train in SINGLE] for make in (better, lambda t: main("fovavg", t)))
    assert found["FovLSE+", "FovAvg"].by["[1/2,8]"] == compare(results, ours, theirs, "[1/2,8]")
    assert found["FovLSE+", "CNN, all sizes"].by["[1,4]"] == compare(
        results, ours, [mnist("cnn", (0.5, 8.0), redraw=True)], "[1,4]"
    )
    few_samples = found["FovLSE+, 1,000 samples", "FovAvg, 1,000 samples"].by
    runs = [better("tr14", 1000)], [few("fovavg", 1000)]
    assert few_samples == {"[1,4]": compare(results, *runs, (1.0, 4.0))}
    assert few_samples["[1,4]"] != compare(results, *runs, "[1,4]")


def test_what_waits_for_runs_says_so(results: Results) -> None:
    lacking = by_names(results)["FovLSE+", "FovMax"]
    assert lacking.by == {}
    assert "fovmax-mnist-tr1-seed0" in lacking.lacking
    both = [one for id in BEYOND for one in comparisons(results, id)]
    waiting = [one for one in both if not one.by]
    assert comparison_text(results).endswith(f"{len(waiting)} of {len(both)} wait for runs.")
    assert ["FovLSE+", "FovMax", "–", "–", "–", "–"] in comparison_rows(comparisons(results, "beyond"), OVER)


def test_a_clear_difference_is_marked_and_minus_is_a_minus(results: Results) -> None:
    rows = {tuple(row[:2]): row[2:] for row in comparison_rows(comparisons(results, "beyond"), OVER)}
    found = by_names(results)
    for names, one in found.items():
        for cell, over in zip(rows[names], ("[1,4]", "[1/2,4]", "[1/2,8]"), strict=False):
            if over in one.by:
                assert cell.endswith("*") == (over in one.clear)
                assert one.by[over].clear or over not in one.clear  # corrected, so never more
                assert "-" not in cell
    assert rows["FovLSE+", "FovAvg"][0].endswith("*")
    assert not rows["FovLSE+", "FovLSE"][0].endswith("*")  # both are made up alike
    assert rows["FovLSE+", "FovAvg"][3] == "3, 3"


def test_they_are_in_the_command_the_page_and_the_document(results: Results, capsys) -> None:
    row = comparison_rows(comparisons(results, "beyond"), OVER)[5]
    assert row[:2] == ["FovLSE+", "FovAvg"]
    command(["table", "beyond", "--results", str(results.folder.parent)])
    assert row[2] in capsys.readouterr().out
    value, interval = row[2].split(" ", 1)
    assert f"<td>{value}<small>{interval}</small></td>" in report_page(results)
    text = updated(f"before\n{BEGIN_BEYOND}\nformer words\n{END}\nafter\n", results)
    assert f"| {' | '.join(row)} |" in text
    assert "former words" not in text
    values = next(one for one in comparisons_json(results, "beyond") if one["other"] == "FovAvg")
    assert set(values["by"]["[1,4]"]) == {"difference", "interval", "seeds"}


def test_without_results_nothing_is_claimed(tmp_path: Path) -> None:
    (tmp_path / RUNS).mkdir()
    empty = Results(tmp_path / RUNS)
    assert not any(one.by for one in comparisons(empty, "beyond"))
    assert compared(empty) == []


def test_on_cifar_single_sizes_are_compared(results: Results) -> None:
    keep(results.folder, better_cifar(), cifar("fovavg", ROOT2))
    found = comparisons(Results(results.folder), "beyond-cifar")
    one = next(one for one in found if one.other == "FovAvg")
    assert one.by["size 1/2"] == compare(results, [better_cifar()], [cifar("fovavg", ROOT2)], 0.5)
    assert list(one.by) == ["size 1/2", "size 1", "size 2"]
    waiting = {
        ("FovLSE+", "FovAvg, 9 channels"): cifar("fovavg", ROOT4),
        ("FovLSE+", "FovMax"): cifar("fovmax", ROOT2),
        ("FovLSE+, residual", "FovAvg, residual"): residual_cifar("fovlse"),
        ("FovLSE+, residual", "CNN, residual"): residual_cifar("fovlse"),
        ("FovLSE+, residual", "FovLSE+"): residual_cifar("fovlse"),
    }
    assert {(other.network, other.other) for other in found if not other.by} == set(waiting)
    for other in found:
        if other is not one:
            missing = seeded(waiting[other.network, other.other], 0)
            assert missing.resolve("cuda").name.split("-seed")[0] in other.lacking
    keep(results.folder, *waiting.values(), residual_cifar("fovavg"), residual_cifar("cnn"))
    assert all(one.by for one in comparisons(Results(results.folder), "beyond-cifar"))
    value, interval = str(one.by["size 2"]).replace("-", "−").split(" ", 1)
    assert f"{value} {interval}" in comparison_text(Results(results.folder))
    _, (title, _, rows) = compared(Results(results.folder))
    assert (value, interval) in [(cell[0], cell[1].rstrip("*")) for row in rows for cell in row]
    assert "CIFAR-10" in title
    told = comparisons_json(Results(results.folder), "beyond-cifar")
    assert {one["data"] for one in told} == {"cifar10"}
    assert [one["other"] for one in told] == [one.other for one in found]
    assert all(list(one["by"]) == list(experiment("beyond-cifar").columns) for one in told)


def test_one_seed_is_never_sure(results: Results) -> None:
    for path in results.folder.glob("fovavg-mnist-tr?-seed[12]-*.json"):
        path.unlink()
    rows = {
        tuple(row[:2]): row[2:]
        for row in comparison_rows(comparisons(Results(results.folder), "beyond"), OVER)
    }
    assert rows["FovLSE+", "FovAvg"][3] == "3, 1"
    assert not rows["FovLSE+", "FovAvg"][0].endswith("*")


def runs_of(name) -> tuple[RunConfig, ...]:
    return tuple(main(name, train) for train in SINGLE)


def right(runs: Sequence[RunConfig], sizes: Sequence[Size], seeds: int = 3) -> np.ndarray:
    """By hand: (seeds, training sets · sizes, images)."""
    return np.array(
        [[~wrong_of(seeded(run, seed), size) for run in runs for size in sizes] for seed in range(seeds)]
    )


def test_results_are_compared_over_training_sets_and_sizes(tmp_path: Path) -> None:
    a, b = runs_of("fovlse"), runs_of("fovavg")
    keep(tmp_path / "runs", *a, *b)
    inside = [size for size in MNIST_SIZES if 0.99 < size < 4.01]
    assert len(inside) == 9
    found = compare(tmp_path, a, b, "[1,4]")
    assert found == paired_difference(right(a, inside), right(b, inside))
    assert found.clear
    known = Results(tmp_path / "runs")
    assert compare(known, a, b, "[1/2,8]") == paired_difference(right(a, MNIST_SIZES), right(b, MNIST_SIZES))
    assert compare(known, a[:1], b[1:], 1.189) == paired_difference(
        right(a[:1], [MNIST_SIZES[5]]), right(b[1:], [MNIST_SIZES[5]])
    )


def test_ways_to_test_the_same_weights_are_paired_by_seed(tmp_path: Path) -> None:
    plain, shifted = (tuple(better(train, shifts=number) for train in SINGLE) for number in (0, 1))
    keep(tmp_path / "runs", *plain, *shifted)
    keep(tmp_path / "runs", *shifted, seeds=4)  # a fourth seed has no partner
    found = compare(tmp_path, shifted, plain, "[1/2,8]")
    hands = right(shifted, MNIST_SIZES), right(plain, MNIST_SIZES)
    assert found == paired_difference(*hands, same_weights=True)
    assert found != paired_difference(*hands)
    assert compare(tmp_path, plain, plain, 1.0) == Paired(0.0, 0.0, 0.0, (3, 3))


def test_the_difference_is_that_of_the_table(tmp_path: Path) -> None:
    from scalechannels.paper.tables import main_table

    a, b = runs_of("fovlse"), runs_of("fovmax")
    keep(tmp_path / "runs", *a, *b)
    keep(tmp_path / "runs", a[0], seeds=4)  # a fourth seed of one training set is in no mean
    known = Results(tmp_path / "runs")
    rows = {row.network: row for row in main_table(known) if row.train == "mean"}
    found = compare(known, a, b, "[1/2,4]")
    expected = rows["fovlse"].ours["[1/2,4]"].mean - rows["fovmax"].ours["[1/2,4]"].mean
    assert found.difference == pytest.approx(expected, abs=1e-9)
    assert found.seeds == (3, 3)
    assert compare(known, a[:1], b, "[1/2,4]").seeds == (4, 3)
    assert compare(known, a[:1], b, "[1/2,4]", seeds=[1, 2]).seeds == (2, 2)


def test_a_test_set_of_many_sizes(tmp_path: Path) -> None:
    a, b = few("fovlse", 1000), few("fovavg", 1000)
    keep(tmp_path / "runs", a, b, ranges=((1.0, 4.0),))
    found = compare(tmp_path, [a], [b], (1, 4))
    assert found == paired_difference(right((a,), [(1.0, 4.0)]), right((b,), [(1.0, 4.0)]))
    with pytest.raises(ValueError, match=r"fovlse-.* not tested on a set with all sizes from 1 to 2"):
        compare(tmp_path, [a], [b], (1.0, 2.0))


def test_results_without_errors_are_named(tmp_path: Path) -> None:
    a, b = runs_of("fovlse"), runs_of("fovavg")
    keep(tmp_path / "runs", *a, *b)
    keep(tmp_path / "runs", b[1], wrong=None, seeds=2)
    with pytest.raises(ValueError, match=r"2 of 18 results in .* do not say which images") as caught:
        compare(tmp_path, a, b, "[1,4]")
    for seed in range(3):
        assert (seeded(b[1], seed).resolve("cuda").name in str(caught.value)) == (seed < 2)
    assert compare(tmp_path, a, b, "[1,4]", seeds=[2]).seeds == (1, 1)


def test_missing_and_damaged_results_are_named(tmp_path: Path) -> None:
    a, b = runs_of("fovlse"), runs_of("fovavg")
    keep(tmp_path / "runs", *a, *b)
    lost, hurt = (seeded(b[0], seed).resolve("cuda").name for seed in (1, 2))
    (tmp_path / "runs" / f"{lost}.json").unlink()
    path = tmp_path / "runs" / f"{hurt}.json"
    values = json.loads(path.read_text())
    values["evaluation"]["sizes"][0]["errors"] = "eNo="
    path.write_text(json.dumps(values))
    with pytest.raises(ValueError, match=f"no result to use of {lost}, {hurt}; .*damaged at size 0.5"):
        compare(tmp_path, a, b, "[1,4]", seeds=range(3))
    assert compare(tmp_path, a, b, "[1,4]").seeds == (3, 1)
    with pytest.raises(ValueError, match="no result to use of fovmax-mnist-tr1-seed0"):
        compare(tmp_path, a, runs_of("fovmax"), "[1,4]")


def test_results_of_other_test_sizes_are_told(tmp_path: Path) -> None:
    a, b = main("fovlse", "tr1"), main("fovavg", "tr1")
    keep(tmp_path, a, b, seeds=1)
    path = tmp_path / f"{b.resolve('cuda').name}.json"
    values = json.loads(path.read_text())
    entries = values["evaluation"]["sizes"]
    entries.insert(0, {**entries[8], "size": 3.0})
    path.write_text(json.dumps(values))
    with pytest.raises(ValueError, match=r"fovavg-.* was tested at .* 3\.0, .* fovlse-.* at "):
        compare(Results(tmp_path), [a], [b], "[1,4]")
    entries[0]["size"] = 5.0  # outside, and the order does not matter
    path.write_text(json.dumps(values))
    assert compare(Results(tmp_path), [a], [b], "[1,4]").seeds == (1, 1)


def test_other_test_images_are_told(tmp_path: Path) -> None:
    a, b = main("fovlse", "tr1"), main("fovavg", "tr1")
    other = replace(b, data=replace(b.data, seed=1))
    with pytest.raises(ValueError, match=r"mnist with data\.seed 0, mnist with data\.seed 1"):
        compare(Results(tmp_path), [a], [other], "[1,4]")
    with pytest.raises(ValueError, match=r"same test images, got cifar10 .*, mnist"):
        compare(Results(tmp_path), [a], [cifar("fovavg")], "[1,4]")
    with pytest.raises(ValueError, match="at least one run"):
        compare(Results(tmp_path), [a], [], "[1,4]")
    keep(tmp_path, a)
    keep(tmp_path, b, wrong=lambda config, size: np.ones(30, bool))
    with pytest.raises(ValueError, match="same images, got 40 and 30"):
        compare(Results(tmp_path), [a], [b], "[1,4]")
    keep(tmp_path, b, wrong=lambda config, size: np.ones(40 if size < 2 else 30, bool))  # type: ignore[operator]
    with pytest.raises(ValueError, match=r"fovavg-.* tested on \[30, 40\] images"):
        compare(Results(tmp_path), [a], [b], "[1,4]")


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ("[1,8]", r"a range is one of \[1/2,1\], .* got '\[1,8\]'"),
        ("[1,4]", r"was tested at 0.5 to 2, not on \[1,4\]"),
        (3.0, "was tested at 0.5, .* not at 3"),
    ],
)
def test_sizes_that_were_not_tested_are_told(tmp_path: Path, over, message: str) -> None:
    a, b = cifar("fovlse"), cifar("fovavg")
    keep(tmp_path, a, b, seeds=1)
    with pytest.raises(ValueError, match=message):
        compare(Results(tmp_path), [a], [b], over)
    assert compare(Results(tmp_path), [a], [b], 0.5) == paired_difference(
        right((a,), [0.5], 1), right((b,), [0.5], 1)
    )
