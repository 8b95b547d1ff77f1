"""Tests outside the range of the recipes: rows and differences from lines of results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from scalechannels.paper.comparisons import row_runs
from scalechannels.paper.experiments import experiment
from scalechannels.paper.outside import (
    DIGITS,
    FILE,
    PHOTOGRAPHS,
    Outside,
    outside_differences,
    outside_rows,
    untested,
)
from scalechannels.paper.recipes import seeded
from scalechannels.paper.results import RUNS, Results
from scalechannels.paper.table_text import table_text
from scalechannels.training.errors import pack_errors

SIZES = {"wide": (0.25, 0.5, 1.0, 8.0, 16.0), "black": (0.5, 8.0), "strokes": (0.5, 8.0)}
PHOTOGRAPH_SIZES = {"wide": (0.25, 0.5, 1.0, 2.0, 4.0), "black": (0.5, 1.0), "aliased": (0.5, 1.0)}
IMAGES = 40


def write(folder: Path, wrong: dict[tuple[str, int], int], table: Outside = DIGITS) -> Path:
    """Lines for rows and seeds; the smallest size of each test has so many errors, the others none."""
    lines = []
    for (title, seed), errors in wrong.items():
        (run,) = row_runs(experiment(table.rows), title)
        for test, sizes in (SIZES if table is DIGITS else PHOTOGRAPH_SIZES).items():
            entries = [
                {"size": size, "images": IMAGES, "errors": pack_errors(torch.arange(IMAGES) < amount)}
                for size, amount in zip(sizes, [errors] + [0] * len(sizes), strict=False)
            ]
            name = seeded(run, seed).resolve("cuda").name
            lines.append(json.dumps({"name": name, "test": test, "evaluation": {"sizes": entries}}))
    folder.mkdir(exist_ok=True)
    (folder / FILE).write_text("\n".join(lines), encoding="utf-8")
    return folder


def test_a_row_needs_two_seeds_and_averages_the_sizes_of_its_columns(tmp_path: Path) -> None:
    whole, plain = "FovLSE, whole, size 2", "FovLSE, size 2"
    told = {(whole, seed): 4 * seed for seed in range(3)} | {(plain, 0): 8}
    (row,) = outside_rows(write(tmp_path, told), DIGITS)
    assert (row.title, row.seeds) == (whole, 3)
    assert row.by["1/4"].mean == pytest.approx(90)  # 0, 4 and 8 of 40 wrong
    assert row.by["[1/4,1/2]"].mean == pytest.approx(95)  # the other size is right throughout
    assert row.by["[1/2,8]"].mean == row.by["16"].mean == 100


def test_differences_are_those_of_rows_that_were_tested(tmp_path: Path) -> None:
    whole, plain = "FovLSE, whole, size 2", "FovLSE, size 2"
    told = {(title, seed): errors for title, errors in ((whole, 2), (plain, 20)) for seed in range(3)}
    (found,) = outside_differences(write(tmp_path, told), DIGITS)
    assert (found.network, found.other) == (whole, plain)
    assert found.by["1/4"].difference == pytest.approx(45)
    assert "1/4" in found.clear
    assert "16" not in found.clear


@pytest.mark.parametrize(("table", "tests"), [(DIGITS, SIZES), (PHOTOGRAPHS, PHOTOGRAPH_SIZES)])
def test_pairs_are_of_rows_and_columns_of_tests(table: Outside, tests: dict) -> None:
    titles = {panel.title for panel in table.experiment.panels}
    rows = {row for pair in table.pairs.items() for row in (pair[0], *pair[1])}
    assert rows <= titles
    assert all(table.names(row) for row in rows)
    assert {column.test for column in table.columns.values()} == set(tests)


def test_photographs_have_rows_of_their_own(tmp_path: Path) -> None:
    told = {("FovLSE, whole", seed): 4 for seed in range(3)} | {("CNN, averaged, rescaled", 0): 4}
    place = write(tmp_path, told, PHOTOGRAPHS)
    (row,) = outside_rows(place, PHOTOGRAPHS)
    assert (row.title, row.by["1/4"].mean, row.by["aliased, [1/2,1]"].mean) == ("FovLSE, whole", 90, 95)
    assert not outside_rows(place, DIGITS)


def test_what_was_not_tested_is_counted(tmp_path: Path) -> None:
    every = untested(tmp_path, PHOTOGRAPHS)
    assert set(every.values()) == {3}
    told = {("FovLSE, whole", seed): 4 for seed in range(3)} | {("FovAvg, whole", 0): 4}
    left = untested(write(tmp_path / "more", told, PHOTOGRAPHS), PHOTOGRAPHS)
    assert left == {
        row: count - (row == "FovAvg, whole") for row, count in every.items() if row != "FovLSE, whole"
    }


def test_the_table_has_every_row_that_was_tested(tmp_path: Path) -> None:
    write(tmp_path, {("FovLSE, size 2", seed): 4 for seed in range(3)})
    results = Results(tmp_path / RUNS)
    text = table_text(results, "outside")
    assert "FovLSE, size 2" in text
    assert f"{PHOTOGRAPHS.title}: not run yet" in text
    (row,) = json.loads(table_text(results, "outside", "json"))
    assert row["mean"]["1/4"] == 90
