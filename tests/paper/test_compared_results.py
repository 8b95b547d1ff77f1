"""Two networks compared by the results of their runs: what is paired, and what cannot be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.made_up import keep, wrong_of

from scalechannels.data.sizes import MNIST_SIZES
from scalechannels.paper.compared_results import Size, compare
from scalechannels.paper.paired import Paired, paired_difference
from scalechannels.paper.recipes import SINGLE, better, cifar, few, main, seeded
from scalechannels.paper.results import Results
from scalechannels.training.config import RunConfig


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
