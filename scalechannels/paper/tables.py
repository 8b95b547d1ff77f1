"""The paper's tables from results: its value beside ours, mean and standard deviation over seeds.

Law: a number is a mean over the seeds that are there, and says how many they are; nothing is shown for runs
that are not. Limit: the standard deviation is that of a few seeds (n − 1 in the denominator).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import fmean, stdev
from typing import Any, Literal, NamedTuple

from scalechannels.data.sizes import RANGES, mean_inside
from scalechannels.paper.experiments import Curve, Experiment, Panel, experiment
from scalechannels.paper.paired import two_sided
from scalechannels.paper.published import RANKINGS, TABLE1
from scalechannels.paper.recipes import NETWORKS, SINGLE, scales_of
from scalechannels.paper.results import Results
from scalechannels.training.config import NetworkName

Source = Literal["paper", "ours"]


@dataclass(frozen=True)
class Mean:
    """A mean over seeds."""

    mean: float
    std: float | None
    """None for a single seed."""
    seeds: int


def mean_of(values: Sequence[float]) -> Mean:
    std = stdev(values) if len(values) > 1 else None
    return Mean(fmean(values), std, len(values))


@dataclass(frozen=True)
class TableRow:
    """One row of table 1."""

    network: NetworkName
    title: str
    train: str
    channels: int
    seeds: int
    ours: dict[str, Mean]
    """By range; empty where there are no results."""
    paper: dict[str, float] | None
    source: Source
    missing: int = 0
    """How many of its runs have no result."""

    @property
    def label(self) -> str:
        channels = "" if self.network == "cnn" else f" {self.channels}ch"
        return f"{self.title}{channels} {self.train}"

    def difference(self, column: str) -> float | None:
        """Ours less the paper's."""
        if self.paper is None or column not in self.ours:
            return None
        return self.ours[column].mean - self.paper[column]


@lru_cache(maxsize=4)
def main_table(results: Results) -> list[TableRow]:
    """Table 1: 25 rows of the paper, and below them those of ours that have results."""
    rows = [row for panel in experiment("table1").panels for row in _rows(results, panel, "paper")]
    ours = [row for panel in experiment("beyond").panels for row in _rows(results, panel, "ours")]
    return rows + [row for row in ours if row.seeds]


def _rows(results: Results, panel: Panel, source: Source) -> list[TableRow]:
    """A network's rows: one for each training set, and the mean over single training sizes as the fourth."""
    trained = [(curve.label, [curve.configs[0]]) for curve in panel.curves]
    single = [run for label, (run,) in trained if label in SINGLE]
    if len(single) == len(SINGLE):
        trained.insert(3, ("mean", single))
    rows = []
    for train, runs in trained:
        seeds, name = results.by_seed(runs), runs[0].network.name
        ours = {
            column: mean_of([fmean(mean_inside(r.accuracies, *ends) for r in seed) for seed in seeds])
            for column, ends in RANGES.items()
            if seeds
        }
        row = TableRow(
            name,
            panel.title,
            train,
            len(scales_of(runs[0])),
            len(seeds),
            ours,
            TABLE1[name, train] if source == "paper" else None,
            source,
            max(0, experiment("table1").seeds - len(seeds)),
        )
        rows.append(row)
    return rows


FAR = 2.0
"""In standard errors of the difference: so far seeds explain a cell."""


@dataclass(frozen=True)
class Apart:
    """A cell of table 1 that lies further from the paper than its standard error explains."""

    row: TableRow
    column: str
    p: float
    """How likely so large a difference is where there is none; a standard error of few seeds is not sure."""


def apart(rows: Iterable[TableRow], published_seeds: int = 3) -> tuple[list[Apart], float]:
    """Those of table 1, and how many there would be by chance.

    The paper's values are means over three networks, whose scatter it does not give: taken to be ours.
    """
    found, expected = [], 0.0
    for row in rows:
        for column, ours in row.ours.items() if row.paper and row.train != "mean" else ():
            difference = row.difference(column)
            if ours.std and difference is not None:
                expected += float(two_sided(FAR, ours.seeds - 1))
                far = difference / (ours.std * math.sqrt(1 / ours.seeds + 1 / published_seeds))
                found += [Apart(row, column, float(two_sided(far, ours.seeds - 1)))] if abs(far) > FAR else []
    return found, expected


ROUNDING = 0.005
"""Of the paper's values, which have two decimals."""


class Below(NamedTuple):
    """How a network's cells of table 1 lie beside the paper's."""

    lower: int
    """So many are below the paper's, by more than its rounding."""
    cells: int
    mean: float
    """Of ours less the paper's."""


def below(rows: Iterable[TableRow]) -> dict[str, Below]:
    """For each network of the paper."""
    differences: dict[str, list[float]] = {}
    for row in rows:
        found = [row.difference(column) for column in row.ours if row.paper and row.train != "mean"]
        known = [one for one in found if one is not None]
        if known:
            differences.setdefault(row.title, []).extend(known)
    return {
        title: Below(sum(one < -ROUNDING for one in found), len(found), fmean(found))
        for title, found in differences.items()
    }


def as_json(rows: Iterable[TableRow]) -> list[dict[str, Any]]:
    """The rows as plain values; None where there is no result, or no value of the paper."""
    return [
        {
            "network": row.network if row.source == "paper" else row.title.lower(),
            "train": row.train,
            "channels": row.channels,
            "seeds": row.seeds,
            **{column: _rounded(row.ours[column].mean if row.ours else None) for column in RANGES},
            "std": {column: _rounded(row.ours[column].std if row.ours else None) for column in RANGES},
            "paper": row.paper,
            "source": row.source,
        }
        for row in rows
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


@dataclass(frozen=True)
class RankRow:
    """One row of a ranking table."""

    network: NetworkName
    title: str
    paper: float
    paper_place: int
    ours: Mean | None
    place: int | None


def ranking(results: Results, id: str) -> list[RankRow]:
    """A ranking table in the paper's order, with our numbers and places."""
    one = experiment(id)
    train = "tr14" if len(one.panels[0].curves) == 1 else "mean"
    rows = [row for row in main_table(results) if row.source == "paper" and row.train == train]
    ours = {row.network: row.ours[one.over] for row in rows if row.ours}
    order = sorted(ours, key=lambda name: -ours[name].mean)
    places = {name: place for place, name in enumerate(order, 1)}
    return [
        RankRow(name, NETWORKS[name], value, place, ours.get(name), places.get(name))
        for place, (name, value) in enumerate(RANKINGS[id].items(), 1)
    ]


@dataclass(frozen=True)
class CurveTable:
    """The accuracies of a figure's curves: name → place on the axis → mean."""

    title: str
    columns: dict[str, dict[float, Mean]]
    missing: dict[str, int] = field(default_factory=dict)
    """For each curve, how many of its runs have no result."""


def curve_tables(results: Results, one: Experiment) -> list[CurveTable]:
    """One for each panel of a figure."""
    tables = []
    for panel in one.panels:
        columns = {curve.label: curve_means(results, one, curve) for curve in panel.curves}
        missing: dict[str, int] = {}
        for curve in panel.curves:
            found = [len(results.of(config)) for config in curve.configs]
            if count := sum(max(0, one.seeds - seeds) for seeds in found):
                missing[curve.label] = count
        tables.append(CurveTable(panel.title, columns, missing))
    return tables


def curve_means(results: Results, one: Experiment, curve: Curve) -> dict[float, Mean]:
    """Test size → accuracy over seeds; for few samples, number of samples → accuracy on the range."""
    if one.renderer != "samples":
        found = [result.accuracies for result in results.of(curve.configs[0])]
        return {size: mean_of([one[size] for one in found]) for size in (found[0] if found else ())}
    means: dict[float, Mean] = {}
    (low_high,) = one.tested
    for config in curve.configs:
        tested = [result.accuracy_over(*low_high) for result in results.of(config)]
        values = [value for value in tested if value is not None]
        if values:
            assert config.data.samples is not None
            means[config.data.samples] = mean_of(values)
    return means
