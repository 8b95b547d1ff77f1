"""What survives outside the range that the recipes were made for, from the lines of `results/outside.jsonl`.

    wide      digits of sizes 1/4 to 16 in images of 224 pixels, photographs of 1/4 to 4; recipes were chosen
              on 1/2 to 8 and on 1/2 to 2
    black     what lies outside the picture is black, where training repeated or mirrored its border
    aliased   photographs that are shrunk without anti-aliasing
    strokes   the built-in digits, drawn by other hands and rescaled without interpolation

`benchmarks/outside.py` tests finished runs this way. Law: no choice was made by these tests. Limit: most runs
were trained again for them, and at the sizes of table 1 differ from those of the tables as two draws do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from scalechannels.files import json_lines
from scalechannels.paper.comparisons import Comparison, corrected, row_runs
from scalechannels.paper.experiments import Experiment, experiment
from scalechannels.paper.factorial import Row
from scalechannels.paper.paired import paired_difference
from scalechannels.paper.recipes import seeded
from scalechannels.paper.results import MOST_SEEDS
from scalechannels.paper.tables import mean_of
from scalechannels.training.errors import unpack_errors

FILE = "outside.jsonl"


class Column(NamedTuple):
    """A test, and the sizes that are averaged."""

    test: str
    low: float
    high: float


@dataclass(frozen=True)
class Outside:
    """A table of such tests: rows of a factorial table, tested on other images."""

    title: str
    rows: str
    """The experiment whose rows these are."""
    columns: Mapping[str, Column]
    pairs: Mapping[str, Sequence[str]]
    caption: str

    @property
    def experiment(self) -> Experiment:
        return experiment(self.rows)

    def names(self, row: str) -> list[str]:
        """The runs of a row on one training set, one for each seed; none where it has several."""
        runs = row_runs(self.experiment, row)
        several = len(runs) > 1  # only size 2 was asked for, which has a row of its own
        return [] if several else [seeded(runs[0], seed).resolve("cuda").name for seed in range(MOST_SEEDS)]


DIGITS = Outside(
    "Outside the range of the recipes: MNIST Large Scale",
    "evidence-mnist",
    {
        "1/4": Column("wide", 0.25, 0.25),
        "[1/4,1/2]": Column("wide", 0.25, 0.5),
        "[1/2,8]": Column("wide", 0.5, 8.0),
        "[8,16]": Column("wide", 8.0, 16.0),
        "16": Column("wide", 16.0, 16.0),
        "black, [1/2,8]": Column("black", 0.5, 8.0),
        "black, 8": Column("black", 8.0, 8.0),
        "strokes, [1/2,8]": Column("strokes", 0.5, 8.0),
    },
    {
        "FovAvg, whole, size 2": ["FovAvg, size 2"],
        "FovMax, whole, size 2": ["FovMax, size 2"],
        "FovLSE, whole, size 2": [
            "FovLSE, size 2",
            "FovAvg, whole, size 2",
            "FovMax, whole, size 2",
            "CNN, all sizes, averaged",
        ],
        "CNN, all sizes, averaged": ["CNN, all sizes"],
    },
    "Accuracy in per cent, mean ± standard deviation over seeds. The first five columns: digits of the sizes "
    "in the head, in images of 224 pixels, of which the CNN sees the middle 112. Black: in images of 112 "
    "pixels, where what lies outside the picture is black to the windows; the CNN sees nothing of that. "
    "Strokes: the built-in digits.",
)
PHOTOGRAPHS = Outside(
    "Outside the range of the recipes: rescaled CIFAR-10",
    "evidence-cifar",
    {
        "1/4": Column("wide", 0.25, 0.25),
        "[1/4,1/2]": Column("wide", 0.25, 0.5),
        "[1/2,2]": Column("wide", 0.5, 2.0),
        "[2,4]": Column("wide", 2.0, 4.0),
        "4": Column("wide", 4.0, 4.0),
        "black, [1/2,1]": Column("black", 0.5, 1.0),
        "aliased, [1/2,1]": Column("aliased", 0.5, 1.0),
    },
    {
        "CNN, averaged, rescaled": ["CNN, averaged, cropped, blurred"],
        "CNN, averaged, rescaled, wide": ["CNN, averaged, rescaled"],
        "CNN, averaged, cropped, blurred, rescaled": ["CNN, averaged, rescaled"],
        "FovAvg, whole": ["FovAvg", "CNN, averaged, rescaled"],
        "FovLSE, whole": [
            "FovLSE",
            "FovAvg, whole",
            "CNN, averaged, cropped, blurred",
            "CNN, averaged, rescaled",
        ],
        "FovLSE, whole, rescaled": [
            "FovLSE, whole",
            "CNN, averaged, rescaled",
            "CNN, averaged, rescaled, wide",
            "CNN, averaged, cropped, blurred, rescaled",
        ],
    },
    "Accuracy in per cent, mean ± standard deviation over seeds, by the factor of the test images. Black: "
    "what lies outside a shrunk photograph is black. Aliased: shrunk without anti-aliasing.",
)
TABLES = (DIGITS, PHOTOGRAPHS)

Tested = dict[str, dict[float, np.ndarray]]
"""Of one run: test and size to which images were classified rightly, bool (images,)."""


@lru_cache(maxsize=4)
def _tested(results: Path) -> dict[str, Tested]:
    """Every run of the file by its name."""
    by_name: dict[str, Tested] = {}
    for one in json_lines(results / FILE):
        by_name.setdefault(one["name"], {})[one["test"]] = {
            entry["size"]: ~unpack_errors(entry["errors"], entry["images"])
            for entry in one["evaluation"]["sizes"]
        }
    return by_name


def outside_runs(results: Path, table: Outside) -> dict[str, list[Tested]]:
    """The runs of each row, one for each seed that was tested; rows of less than two are left out."""
    known = _tested(results)
    rows = {
        panel.title: [known[name] for name in table.names(panel.title) if name in known]
        for panel in table.experiment.panels
    }
    return {title: runs for title, runs in rows.items() if len(runs) > 1}


def untested(results: Path, table: Outside) -> dict[str, int]:
    """The rows that are to be compared and lack tested seeds, and how many they lack."""
    known, seeds = _tested(results), table.experiment.seeds
    wanted = dict.fromkeys(row for pair in table.pairs.items() for row in (pair[0], *pair[1]))
    lacking = {row: seeds - sum(name in known for name in table.names(row)) for row in wanted}
    return {row: count for row, count in lacking.items() if count > 0}


def outside_rows(results: Path, table: Outside) -> list[Row]:
    """Means over seeds for each row and column."""
    rows = []
    for title, runs in outside_runs(results, table).items():
        by = {
            name: mean_of([100 * fmean(map(np.mean, _right(run, column))) for run in runs])
            for name, column in table.columns.items()
        }
        rows.append(Row(title, len(runs), None, by))
    return rows


def outside_differences(results: Path, table: Outside) -> list[Comparison]:
    """Paired differences of the rows that are compared; what is clear is so after Holm's correction."""
    known = outside_runs(results, table)
    found = []
    for row, other in _pairs(table):
        if row in known and other in known:
            by = {
                name: paired_difference(*(_seeds(known[one], column) for one in (row, other)))
                for name, column in table.columns.items()
            }
            found.append(Comparison(row, other, by))
    return corrected(found)


def _pairs(table: Outside) -> Iterator[tuple[str, str]]:
    return ((row, other) for row, others in table.pairs.items() for other in others)


def outside_json(results: Path) -> list[dict[str, Any]]:
    """The rows of both tables and, in each, its differences from others."""
    return [row for table in TABLES for row in _json_rows(results, table)]


def _json_rows(results: Path, table: Outside) -> list[dict[str, Any]]:
    told: dict[str, dict[str, Any]] = {}
    for one in outside_differences(results, table):
        told.setdefault(one.network, {})[one.other] = {
            name: [round(value, 4) for value in (paired.difference, paired.low, paired.high)]
            for name, paired in one.by.items()
        }
    return [
        {
            "data": table.rows.removeprefix("evidence-"),
            "row": row.title,
            "seeds": row.seeds,
            "mean": {name: round(mean.mean, 4) for name, mean in row.by.items()},
            "less": told.get(row.title, {}),
        }
        for row in outside_rows(results, table)
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
