"""What survives outside the range that the recipes were made for, from the lines of `results/outside.jsonl`.

    wide      digits of sizes 1/4 to 16 in images of 224 pixels; recipes were chosen on 1/2 to 8
    black     what lies outside the picture is black, where training repeated its border
    strokes   the built-in digits, drawn by other hands and rescaled without interpolation

`benchmarks/outside.py` tests finished runs this way. Law: no choice was made by these tests. Limit: the runs
were trained again for them, so at the sizes of table 1 they differ from those of the tables as two draws do.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from scalechannels.paper.comparisons import Comparison, corrected, row_runs
from scalechannels.paper.experiments import experiment
from scalechannels.paper.factorial import Row
from scalechannels.paper.paired import paired_difference
from scalechannels.paper.recipes import seeded
from scalechannels.paper.tables import mean_of
from scalechannels.training.errors import unpack_errors

FILE = "outside.jsonl"
ROWS = "evidence-mnist"
"""The experiment whose rows the runs belong to."""


class Column(NamedTuple):
    """A test, and the sizes that are averaged."""

    test: str
    low: float
    high: float


COLUMNS = {
    "1/4": Column("wide", 0.25, 0.25),
    "[1/4,1/2]": Column("wide", 0.25, 0.5),
    "[1/2,8]": Column("wide", 0.5, 8.0),
    "[8,16]": Column("wide", 8.0, 16.0),
    "16": Column("wide", 16.0, 16.0),
    "black, [1/2,8]": Column("black", 0.5, 8.0),
    "black, 8": Column("black", 8.0, 8.0),
    "strokes, [1/2,8]": Column("strokes", 0.5, 8.0),
}
PAIRS = {
    "FovAvg, whole, size 2": ["FovAvg, size 2"],
    "FovLSE, whole, size 2": [
        "FovLSE, size 2",
        "FovAvg, whole, size 2",
        "CNN, all sizes, averaged",
    ],
    "CNN, all sizes, averaged": ["CNN, all sizes"],
}
OUTSIDE = "Outside the range of the recipes: MNIST Large Scale"
CAPTION = (
    "Accuracy in per cent, mean ± standard deviation over seeds. The first five columns: digits of the sizes "
    "in the head, in images of 224 pixels, of which the CNN sees the middle 112. Black: in images of 112 "
    "pixels, where what lies outside the picture is black to the windows; the CNN sees nothing of that. "
    "Strokes: the built-in digits."
)

Tested = dict[str, dict[float, np.ndarray]]
"""Of one run: test and size to which images were classified rightly, bool (images,)."""


@lru_cache(maxsize=4)
def outside_runs(results: Path) -> dict[str, list[Tested]]:
    """The runs of each row, one for each seed; rows that were not tested are left out."""
    path = results / FILE
    by_name: dict[str, Tested] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        one = json.loads(line)
        by_name.setdefault(one["name"], {})[one["test"]] = {
            entry["size"]: ~unpack_errors(entry["errors"], entry["images"])
            for entry in one["evaluation"]["sizes"]
        }
    rows: dict[str, list[Tested]] = {}
    whole = experiment(ROWS)
    for panel in whole.panels:
        runs = row_runs(whole, panel.title)
        names = [seeded(run, seed).resolve("cuda").name for seed in range(whole.seeds) for run in runs]
        # Of rows over several training sizes only size 2 was tested; it has a row of its own.
        if names and all(name in by_name for name in names):
            rows[panel.title] = [by_name[name] for name in names]
    return rows


def outside_rows(results: Path) -> list[Row]:
    """Means over seeds for each row and column."""
    rows = []
    for title, runs in outside_runs(results).items():
        by = {
            name: mean_of([100 * fmean(map(np.mean, _right(run, column))) for run in runs])
            for name, column in COLUMNS.items()
        }
        rows.append(Row(title, len(runs), None, by))
    return rows


def outside_differences(results: Path) -> list[Comparison]:
    """Paired differences of the rows that are compared; what is clear is so after Holm's correction."""
    known = outside_runs(results)
    found = []
    for row, others in PAIRS.items():
        for other in others:
            if row in known and other in known:
                by = {
                    name: paired_difference(*(_seeds(known[one], column) for one in (row, other)))
                    for name, column in COLUMNS.items()
                }
                found.append(Comparison(row, other, by))
    return corrected(found)


def outside_json(results: Path) -> list[dict[str, Any]]:
    """The rows and, in each, its differences from others."""
    told: dict[str, dict[str, Any]] = {}
    for one in outside_differences(results):
        told.setdefault(one.network, {})[one.other] = {
            name: [round(value, 4) for value in (paired.difference, paired.low, paired.high)]
            for name, paired in one.by.items()
        }
    return [
        {
            "row": row.title,
            "seeds": row.seeds,
            "mean": {name: round(mean.mean, 4) for name, mean in row.by.items()},
            "less": told.get(row.title, {}),
        }
        for row in outside_rows(results)
    ]


def _right(run: Tested, column: Column) -> list[np.ndarray]:
    slack = 1.001  # sizes are powers of 2^(1/4), written as decimals
    return [
        images
        for size, images in sorted(run[column.test].items())
        if column.low / slack <= size <= column.high * slack
    ]


def _seeds(runs: Sequence[Tested], column: Column) -> np.ndarray:
    """(seeds, sizes, images)"""
    return np.array([_right(run, column) for run in runs])
