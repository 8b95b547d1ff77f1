"""The paper's tables from results: its value beside ours, mean and standard deviation over seeds.

Law: a figure is a mean over the seeds that are there, and says how many they are; nothing is shown for runs
that are not. Limit: the standard deviation is that of a few seeds (n − 1 in the denominator).
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from scalechannels.data.ranges import RANGES, mean_inside
from scalechannels.paper.experiments import experiment
from scalechannels.paper.published import COLUMNS, RANKINGS, TABLE1, TABLE1_MEANS
from scalechannels.paper.recipes import NETWORKS, SINGLE, Curve, Experiment, Panel, Train
from scalechannels.paper.results import Result, Results
from scalechannels.scales import ScaleGrid
from scalechannels.training.config import NetworkName, RunConfig

Source = Literal["paper", "ours"]


@dataclass(frozen=True)
class Figure:
    """A mean over seeds."""

    mean: float
    std: float | None
    """None for a single seed."""
    seeds: int


@dataclass(frozen=True)
class TableRow:
    """One row of table 1."""

    network: NetworkName
    title: str
    train: str
    channels: int
    seeds: int
    ours: dict[str, Figure]
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


def figure_of(values: Sequence[float]) -> Figure | None:
    if not values:
        return None
    std = statistics.stdev(values) if len(values) > 1 else None
    return Figure(statistics.fmean(values), std, len(values))


def range_mean(result: Result, column: str) -> float:
    """The mean over the test sizes of a range, both ends included."""
    return mean_inside(result.accuracies, *RANGES[column])


@lru_cache(maxsize=4)
def main_table(results: Results) -> list[TableRow]:
    """Table 1: 25 rows of the paper, and below them those of ours that have results."""
    rows = [row for panel in experiment("table1").panels for row in _rows(results, panel, "paper")]
    ours = [row for panel in experiment("beyond").panels for row in _rows(results, panel, "ours")]
    return rows + [row for row in ours if row.seeds]


def _rows(results: Results, panel: Panel, source: Source) -> list[TableRow]:
    found = {curve.label: results.of(curve) for curve in panel.curves}
    wanted = experiment("table1").seeds
    rows: list[TableRow] = []
    for curve in panel.curves:
        config, here = curve.configs[0], found[curve.label]
        name = config.network.name
        published = TABLE1.get((name, curve.label)) if source == "paper" else None  # type: ignore[arg-type]
        rows.append(
            _row(panel, curve.label, config, [[result] for result in here], published, source, wanted)
        )
    if not set(SINGLE) <= set(found):
        return rows
    config = panel.curves[0].configs[0]
    by_seed = [{r.config.training.seed: r for r in found[train]} for train in SINGLE]
    seeds = sorted(set.intersection(*(set(one) for one in by_seed)))
    together = [[one[seed] for one in by_seed] for seed in seeds]
    published = TABLE1_MEANS.get(config.network.name) if source == "paper" else None
    rows.insert(3, _row(panel, "mean", config, together, published, source, wanted))
    return rows


def _row(
    panel: Panel,
    train: str,
    config: RunConfig,
    seeds: Sequence[Sequence[Result]],
    published: Sequence[float] | None,
    source: Source,
    wanted: int,
) -> TableRow:
    """A row from, for each seed, the results whose means it averages."""
    ours = {}
    for column in COLUMNS:
        figure = figure_of([statistics.fmean(range_mean(r, column) for r in seed) for seed in seeds])
        if figure is not None:
            ours[column] = figure
    paper = None if published is None else dict(zip(COLUMNS, published, strict=True))
    lacking = max(0, wanted - len(seeds))
    return TableRow(
        config.network.name, panel.title, train, channels(config), len(seeds), ours, paper, source, lacking
    )


def channels(config: RunConfig) -> int:
    """How many scale channels a network has; the plain CNN looks once."""
    network = config.network
    if network.name == "cnn":
        return 1
    assert network.low is not None
    assert network.high is not None
    return len(ScaleGrid(network.low, network.high, ratio=network.ratio))


def as_json(rows: Sequence[TableRow]) -> list[dict[str, Any]]:
    """The rows as plain values; None where there is no result, or no value of the paper."""
    return [
        {
            "network": row.network if row.source == "paper" else row.title.lower(),
            "train": row.train,
            "channels": row.channels,
            "seeds": row.seeds,
            **{column: _rounded(row.ours[column].mean if row.ours else None) for column in COLUMNS},
            "std": {column: _rounded(row.ours[column].std if row.ours else None) for column in COLUMNS},
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
    ours: Figure | None
    place: int | None


def ranking(results: Results, id: str) -> list[RankRow]:
    """A ranking table in the paper's order, with our figures and places."""
    one = experiment(id)
    trains: tuple[Train, ...] = SINGLE if id in ("table2", "table4") else ("tr14",)
    rows = {row.network: row for row in main_table(results) if row.source == "paper" and _shown(row, trains)}
    ours = {name: row.ours.get(one.over) for name, row in rows.items()}
    order = sorted((n for n in ours if ours[n]), key=lambda n: -(ours[n].mean if ours[n] else 0))  # type: ignore[union-attr]
    return [
        RankRow(
            name, NETWORKS[name], value, place, ours[name], order.index(name) + 1 if name in order else None
        )
        for place, (name, value) in enumerate(RANKINGS[id], 1)
    ]


def _shown(row: TableRow, trains: Sequence[Train]) -> bool:
    return row.train == ("mean" if len(trains) > 1 else trains[0])


@dataclass(frozen=True)
class CurveTable:
    """The accuracies of a figure's curves: name → place on the axis → figure."""

    title: str
    columns: dict[str, dict[float, Figure]]
    missing: dict[str, int] = field(default_factory=dict)
    """For each curve, how many of its runs have no result."""


def curve_tables(results: Results, one: Experiment) -> list[CurveTable]:
    """One for each panel of a figure."""
    tables = []
    for panel in one.panels:
        columns, missing = {}, {}
        for curve in panel.curves:
            columns[curve.label] = curve_figures(results, one, curve)
            lacking = sum(
                max(0, one.seeds - len(results.of(curve, point))) for point in range(len(curve.configs))
            )
            if lacking:
                missing[curve.label] = lacking
        tables.append(CurveTable(panel.title, columns, missing))
    return tables


def curve_figures(results: Results, one: Experiment, curve: Curve) -> dict[float, Figure]:
    """Test size → accuracy over seeds; for few samples, number of samples → accuracy on the range."""
    figures: dict[float, Figure] = {}
    if one.renderer == "samples":
        (low_high,) = one.tested
        for point, config in enumerate(curve.configs):
            values = [r.accuracy_over(*low_high) for r in results.of(curve, point)]
            figure = figure_of([value for value in values if value is not None])
            if figure is not None:
                assert config.data.samples is not None
                figures[config.data.samples] = figure
        return figures
    found = results.of(curve)
    for size in found[0].accuracies if found else ():
        figure = figure_of([result.accuracies[size] for result in found])
        assert figure is not None
        figures[size] = figure
    return figures
