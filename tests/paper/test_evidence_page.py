"""What docs/evidence.md says in words is what its tables say: which differences are told apart."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from scalechannels.paper.comparisons import Comparison, comparisons
from scalechannels.paper.document import Lacking
from scalechannels.paper.experiments import experiment
from scalechannels.paper.factorial import factorial_rows
from scalechannels.paper.outside import DIGITS, PHOTOGRAPHS, outside_differences, outside_rows
from scalechannels.paper.recipes import seeded
from scalechannels.paper.reproduce import missing
from scalechannels.paper.results import RUNS, Results

ROOT = Path(__file__).parents[2]
RESULTS = Results(ROOT / "results" / RUNS)
RESCALED = "CNN, averaged, rescaled"
ALL_SIZES = "CNN, all sizes, averaged"


@cache
def differences(table: str) -> list[Comparison]:
    if table == "outside":
        return outside_differences(ROOT / "results", DIGITS)
    if table == "photographs":
        return outside_differences(ROOT / "results", PHOTOGRAPHS)
    return comparisons(RESULTS, table if table == "beyond" else f"evidence-{table}")


def difference(table: str, row: str, other: str) -> Comparison:
    (one,) = (one for one in differences(table) if (one.network, one.other) == (row, other))
    return one


@pytest.mark.parametrize(
    ("table", "row", "other", "column", "better"),
    [
        # The recipe makes most of the gain.
        ("cifar", "FovLSE, whole", "FovLSE", "[1/2,2]", True),
        ("cifar", "FovAvg, whole", "FovAvg", "[1/2,2]", True),
        ("cifar", "FovMax, whole", "FovMax", "[1/2,2]", True),
        ("cifar", "FovLSE, whole", "FovAvg, whole", "size 1/2", True),
        ("cifar", "FovLSE, whole", "FovAvg, whole", "[1/2,2]", True),
        ("cifar", "FovLSE, whole", "FovLSE, whole but windows not anti-aliased", "[1/2,2]", True),
        ("cifar", "FovLSE", "FovAvg", "size 1/2", False),
        # Crops carry it.
        ("mnist", "FovAvg, averaged, cropped", "FovAvg, averaged", "[1/2,8]", True),
        ("cifar", "FovLSE, whole", "FovLSE, whole but images not cropped", "size 2", True),
        ("cifar", "FovLSE, whole", "FovLSE, whole but images not cropped", "[1/2,2]", True),
        ("cifar", "FovLSE, whole", "FovLSE, whole but images not blurred", "[1/2,2]", True),
        ("cifar", "FovLSE, whole", "FovLSE, whole but images not blurred", "size 1/2", True),
        # Where a plain CNN is better, and where it is not.
        ("cifar", "FovLSE, whole", f"{RESCALED}, wide", "[1/2,2]", False),
        ("cifar", "FovLSE, whole", f"{RESCALED}, 5 times the epochs", "[1/2,2]", False),
        ("cifar", "FovLSE, whole, rescaled", f"{RESCALED}, wide", "[1/2,2]", False),
        ("cifar", "FovLSE, whole, rescaled", RESCALED, "[1/2,2]", True),
        ("mnist", "FovLSE, whole", ALL_SIZES, "[1,4]", True),
        ("mnist", "FovLSE, whole", ALL_SIZES, "[1/2,4]", True),
        ("mnist", "FovLSE, whole", ALL_SIZES, "[1/2,8]", True),
        ("mnist", "FovLSE, whole, all sizes", ALL_SIZES, "[1,4]", True),
        ("cifar", "FovLSE, whole, rescaled", "FovLSE, whole", "[1/2,2]", True),
        ("mnist", "FovLSE, whole, all sizes", ALL_SIZES, "[1/2,8]", True),
        ("cifar", "FovLSE, whole", "CNN, averaged, cropped, blurred", "[1/2,2]", True),
        # Outside the range.
        ("outside", "FovLSE, whole, size 2", "FovLSE, size 2", "[8,16]", True),
        ("outside", "FovLSE, whole, size 2", ALL_SIZES, "black, [1/2,8]", True),
        *(
            ("photographs", row, RESCALED, column, True)
            for row in ("FovLSE, whole", "FovLSE, whole, rescaled")
            for column in ("1/4", "[1/4,1/2]", "4", "black, [1/2,1]", "aliased, [1/2,1]")
        ),
        ("photographs", "FovLSE, whole, rescaled", f"{RESCALED}, wide", "4", True),
        ("photographs", "FovLSE, whole, rescaled", f"{RESCALED}, wide", "black, [1/2,1]", True),
        ("photographs", "FovLSE, whole", "CNN, averaged, cropped, blurred", "1/4", True),
        ("photographs", "FovLSE, whole", "CNN, averaged, cropped, blurred", "4", True),
        # What README and the advice are sure of.
        ("beyond", "FovLSE+", "FovAvg", "[1/2,4]", True),
        ("beyond", "FovLSE+", "CNN, all sizes", "[1/2,8]", True),
    ],
)
def test_what_is_called_better_or_worse_is_told_apart(
    table: str, row: str, other: str, column: str, better: bool
) -> None:
    found = difference(table, row, other)
    assert column in found.clear
    assert (found.by[column].difference > 0) is better


@pytest.mark.parametrize(
    ("table", "row", "other", "column"),
    [
        ("mnist", "FovLSE, whole", "FovLSE", "[1,4]"),
        ("mnist", "FovLSE, whole", "FovLSE", "[1/2,8]"),
        ("mnist", "FovAvg, whole", "FovAvg", "[1/2,8]"),
        ("mnist", "FovLSE, averaged, cropped", "FovLSE, averaged", "[1/2,8]"),
        ("mnist", "FovAvg, averaged", "FovAvg", "[1/2,4]"),
        ("mnist", "FovAvg, averaged", "FovAvg", "[1/2,8]"),
        ("mnist", "FovMax, averaged", "FovMax", "[1/2,8]"),
        ("mnist", ALL_SIZES, "CNN, all sizes", "[1/2,8]"),
        ("mnist", "FovLSE, averaged", ALL_SIZES, "[1/2,8]"),
        ("mnist", "FovLSE, whole, wide", "FovLSE, whole", "[1/2,8]"),
        ("mnist", "FovLSE, whole, wide", f"{ALL_SIZES}, wide", "[1/2,8]"),
        ("cifar", "FovLSE", "FovAvg", "[1/2,2]"),
        ("outside", "FovAvg, whole, size 2", "FovAvg, size 2", "black, [1/2,8]"),
        ("outside", "FovLSE, whole, size 2", "FovLSE, size 2", "black, [1/2,8]"),
        ("outside", "FovAvg, whole, size 2", "FovAvg, size 2", "strokes, [1/2,8]"),
        ("beyond", "FovLSE+", "FovAvg", "[1,4]"),
        ("beyond", "FovLSE+", "FovMax", "[1/2,4]"),
        ("beyond", "FovLSE+", "FovMax", "[1/2,8]"),
        ("beyond", "FovLSE+", "FovLSE", "[1/2,8]"),
        ("beyond", "FovLSE+, shifts", "FovLSE+", "[1/2,8]"),
        ("mnist", "FovAvg, whole", "FovAvg", "[1,4]"),
        ("mnist", "FovLSE, whole", "FovAvg, whole", "[1,4]"),
        ("mnist", "FovLSE, whole", "FovAvg, whole", "[1/2,8]"),
        ("mnist", "FovLSE, averaged", "FovLSE", "[1,4]"),
        ("mnist", "FovLSE, averaged", "FovLSE", "[1/2,8]"),
        ("mnist", "FovLSE, whole", "FovLSE, averaged, cropped", "[1/2,8]"),
        ("mnist", "FovAvg, whole", ALL_SIZES, "[1/2,8]"),
        ("mnist", "FovLSE, whole, wide", f"{ALL_SIZES}, wide", "[1,4]"),
        ("mnist", "FovLSE, whole", "FovLSE, whole, average not corrected", "[1,4]"),
        ("mnist", "FovLSE, whole", "FovLSE, whole, average not corrected", "[1/2,8]"),
        ("cifar", "FovLSE, whole", "FovLSE, whole but targets not smoothed", "[1/2,2]"),
        ("cifar", "FovLSE, whole", "FovLSE, whole but weights not averaged", "[1/2,2]"),
        ("cifar", "FovLSE, whole", RESCALED, "[1/2,2]"),
        ("cifar", "FovLSE, whole, rescaled", f"{RESCALED}, 5 times the epochs", "[1/2,2]"),
        ("cifar", "CNN, averaged over rescaled test images", "CNN, averaged", "[1/2,2]"),
        ("outside", "FovLSE, whole, size 2", "FovLSE, size 2", "strokes, [1/2,8]"),
        ("photographs", "FovLSE, whole", RESCALED, "[1/2,2]"),
        ("mnist", "FovLSE, whole, all sizes", "FovLSE, whole", "[1/2,8]"),
    ],
)
def test_what_is_called_level_or_not_told_apart_is_so(table: str, row: str, other: str, column: str) -> None:
    assert column not in difference(table, row, other).clear


def test_batches_of_64_change_nothing_that_is_told_apart() -> None:
    found = [one for one in differences("mnist") if "batch 64" in one.network]
    assert len(found) == 6
    assert not any(one.clear for one in found)


@pytest.mark.parametrize("samples", ["100", "300", "1,000", "3,000", "10,000"])
def test_few_digits_do_not_tell_ours_from_fovavg(samples: str) -> None:
    found = difference("beyond", f"FovLSE+, {samples} samples", f"FovAvg, {samples} samples")
    assert not found.clear


@pytest.mark.parametrize("column", ["1/4", "16"])
def test_nothing_is_told_apart_far_outside_the_range(column: str) -> None:
    assert not any(column in one.clear for one in differences("outside"))


def test_the_rows_have_the_corrected_average_but_for_the_one_that_says_so() -> None:
    for data in ("mnist", "cifar", "cifar-paper"):
        for panel in experiment(f"evidence-{data}").panels:
            for curve in panel.curves:
                training = curve.configs[0].training
                assert training.average_corrected is (
                    bool(training.average) and "not corrected" not in panel.title
                )


def test_rows_with_two_seeds_say_so() -> None:
    rows = {row.title: row.seeds for row in factorial_rows(RESULTS, experiment("evidence-cifar"))}
    assert not {title for title, seeds in rows.items() if 0 < seeds < 3}
    tested = {row.title: row.seeds for row in outside_rows(ROOT / "results", PHOTOGRAPHS)}
    fewer = {title for title, seeds in tested.items() if seeds < 3}
    assert fewer == {"CNN, averaged, cropped, blurred", f"{RESCALED}, wide"}
    text = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    (said,) = (line for line in text.splitlines() if line.startswith("- **Photographs outside that range**"))
    assert said.count("two seeds") == len(fewer)


def test_what_was_not_run_is_counted_as_reproduce_counts_it() -> None:
    ids = ["evidence-cifar", "evidence-cifar-paper", "recommended-cifar"]
    counted = Lacking(RESULTS).runs(*ids)
    assert counted == len(missing(ids, ROOT / "results"))
    wanted = {seeded(run, 0) for id in ids for run in experiment(id).runs()}
    assert counted <= 5 * len(wanted)
