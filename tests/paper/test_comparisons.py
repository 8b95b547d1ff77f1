"""Our networks compared with others: what is said, and what is not said without results."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.made_up import keep

from scalechannels.cli import main as command
from scalechannels.paper.compared_results import compare
from scalechannels.paper.comparisons import (
    CIFAR_OVER,
    cifar_comparisons,
    comparisons,
    comparisons_json,
    without_errors,
)
from scalechannels.paper.document import BEGIN_BEYOND, END, updated
from scalechannels.paper.experiments import experiment
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
from scalechannels.paper.reproduce import missing
from scalechannels.paper.results import RUNS, Results
from scalechannels.paper.table_text import comparison_rows, comparison_text


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
    return {(one.network, one.other): one for one in comparisons(results)}


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
    both = comparisons(results) + cifar_comparisons(results)
    waiting = [one for one in both if not one.by]
    assert comparison_text(results).endswith(f"{len(waiting)} of {len(both)} wait for runs.")
    assert ["FovLSE+", "FovMax", "–", "–", "–", "–"] in comparison_rows(comparisons(results))


def test_a_clear_difference_is_marked_and_minus_is_a_minus(results: Results) -> None:
    rows = {tuple(row[:2]): row[2:] for row in comparison_rows(comparisons(results))}
    found = by_names(results)
    for names, one in found.items():
        for cell, over in zip(rows[names], ("[1,4]", "[1/2,4]", "[1/2,8]"), strict=False):
            if over in one.by:
                assert cell.endswith("*") == one.by[over].clear
                assert "-" not in cell
    assert rows["FovLSE+", "FovAvg"][0].endswith("*")
    assert not rows["FovLSE+", "FovLSE"][0].endswith("*")  # both are made up alike
    assert rows["FovLSE+", "FovAvg"][3] == "3, 3"


def test_they_are_in_the_command_the_page_and_the_document(results: Results, capsys) -> None:
    row = comparison_rows(comparisons(results))[5]
    assert row[:2] == ["FovLSE+", "FovAvg"]
    command(["table", "beyond", "--results", str(results.folder.parent)])
    assert row[2] in capsys.readouterr().out
    value, interval = row[2].split(" ", 1)
    assert f"<td>{value}<small>{interval}</small></td>" in report_page(results)
    text = updated(f"before\n{BEGIN_BEYOND}\nold\n{END}\nafter\n", results)
    assert f"| {' | '.join(row)} |" in text
    assert "old" not in text
    values = next(one for one in comparisons_json(results) if one["other"] == "FovAvg")
    assert set(values["by"]["[1,4]"]) == {"difference", "interval", "seeds"}


def test_without_results_nothing_is_claimed(tmp_path: Path) -> None:
    (tmp_path / RUNS).mkdir()
    empty = Results(tmp_path / RUNS)
    assert not any(one.by for one in comparisons(empty))
    assert compared(empty) == []


def test_on_cifar_single_sizes_are_compared(results: Results) -> None:
    keep(results.folder, better_cifar(), cifar("fovavg", ROOT2))
    found = cifar_comparisons(Results(results.folder))
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
    assert all(one.by for one in cifar_comparisons(Results(results.folder)))
    value, interval = str(one.by["size 2"]).replace("-", "−").split(" ", 1)
    assert f"{value} {interval}" in comparison_text(Results(results.folder))
    _, (title, _, rows) = compared(Results(results.folder))
    assert (value, interval) in [(cell[0], cell[1].rstrip("*")) for row in rows for cell in row]
    assert "CIFAR-10" in title
    told = [one for one in comparisons_json(Results(results.folder)) if one["data"] == "cifar10"]
    assert [one["other"] for one in told] == [one.other for one in found]
    assert all(list(one["by"]) == list(CIFAR_OVER) for one in told)


def test_one_seed_is_never_sure(results: Results) -> None:
    for path in results.folder.glob("fovavg-mnist-tr?-seed[12]-*.json"):
        path.unlink()
    rows = {tuple(row[:2]): row[2:] for row in comparison_rows(comparisons(Results(results.folder)))}
    assert rows["FovLSE+", "FovAvg"][3] == "3, 1"
    assert not rows["FovLSE+", "FovAvg"][0].endswith("*")


def test_results_that_cannot_be_compared_with_are_done_anew(results: Results) -> None:
    old = main("fovavg", "tr2")
    keep(results.folder, old, wrong=None, seeds=2)
    assert without_errors(Results(results.folder), 3) == [seeded(old, 0), seeded(old, 1)]
    folder = results.folder.parent
    ours = set(missing(["beyond"], folder)) - set(experiment("beyond").runs())
    assert ours == {seeded(old, 0), seeded(old, 1)}
    assert not ours & set(missing(["table1"], folder))
    assert not ours & set(missing(["beyond"], folder, only=("fovlse",)))
