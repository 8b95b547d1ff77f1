"""Claims about table 1, the rankings, and how near our numbers are to the paper's."""

from __future__ import annotations

from itertools import combinations

from scalechannels.paper.claims.claim import Checked, listed
from scalechannels.paper.experiments import experiment
from scalechannels.paper.recipes import SINGLE, TRAINED
from scalechannels.paper.results import NotEnoughRunsError, Results
from scalechannels.paper.tables import TableRow, main_table, ranking
from scalechannels.training.config import NetworkName


def _row(results: Results, network: NetworkName, train: str) -> TableRow:
    wanted = (network, train, "paper")
    (row,) = (one for one in main_table(results) if (one.network, one.train, one.source) == wanted)
    if row.missing:
        raise NotEnoughRunsError(f"{row.missing} of 3 seeds are missing of {row.label}")
    return row


def _on_1_to_4(results: Results, network: NetworkName, *trains: str) -> list[float]:
    return [_row(results, network, train).ours["[1,4]"].mean for train in trains]


def near(
    results: Results, network: NetworkName, within: dict[str, float], tr14: float | None = None
) -> Checked:
    """Ours is within so many points of the paper, by range; on [1/2,8] only not below it by more.

    tr14   another number of points for multi-scale training
    """
    rows = [_row(results, network, train) for train in TRAINED]
    outside = []
    for row in rows:
        for column, points in within.items():
            difference = row.difference(column)
            assert difference is not None  # the paper has these rows, and no run is missing
            off = -difference if column == "[1/2,8]" else abs(difference)
            if off > (tr14 if tr14 is not None and row.train == "tr14" else points):
                outside.append((row, column))
    shown = outside or [(row, "[1,4]") for row in rows]
    numbers = (f"{row.train} {column} {row.difference(column):+.2f}" for row, column in shown)
    return not outside, ("outside: " if outside else "") + ", ".join(numbers)


def ranked(results: Results, id: str, apart: float) -> Checked:
    """Pairs that the paper has no further apart than this are not ranked."""
    rows = ranking(results, id)
    trained = "mean" if id in ("table2", "table4") else "tr14"
    over = experiment(id).over
    ours = {row.title: _row(results, row.network, trained).ours[over].mean for row in rows}
    wrong = [
        f"{better.title} is not above {worse.title}"
        for better, worse in combinations(rows, 2)
        if better.paper - worse.paper > apart and ours[better.title] <= ours[worse.title]
    ]
    order = dict(sorted(ours.items(), key=lambda pair: -pair[1]))
    return not wrong, "; ".join([listed(order), *wrong])


def spread(results: Results, network: NetworkName, points: float) -> Checked:
    values = _on_1_to_4(results, network, *SINGLE)
    most = max(values) - min(values)
    return most < points, f"{listed(dict(zip(SINGLE, values, strict=True)))}: {most:.2f} points"


def multi(results: Results, network: NetworkName, points: float) -> Checked:
    single, several = _on_1_to_4(results, network, "mean", "tr14")
    difference = several - single
    return abs(difference) < points, f"{single:.2f} and {several:.2f}: {difference:+.2f}"


def improved(results: Results, network: NetworkName, points: float) -> Checked:
    single, several = _on_1_to_4(results, network, "mean", "tr14")
    return several > single + points, f"{single:.2f} to {several:.2f}"
