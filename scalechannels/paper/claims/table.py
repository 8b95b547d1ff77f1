"""Claims about table 1, the rankings, and how near our figures are to the paper's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations

from scalechannels.paper.claims.claim import Claim, NotEnoughRunsError
from scalechannels.paper.published import (
    DIFFERENCE_BETWEEN_SIZES,
    DIFFERENCE_TO_MULTI_SCALE,
    RANKINGS,
)
from scalechannels.paper.recipes import NETWORKS
from scalechannels.paper.results import Results
from scalechannels.paper.tables import TableRow, main_table, ranking
from scalechannels.training.config import NetworkName

COIN_FLIP = 0.3
"""Pairs that the paper has no further apart than this are not ranked."""


def _row(results: Results, network: NetworkName, train: str) -> TableRow:
    for row in main_table(results):
        if (row.network, row.train, row.source) == (network, train, "paper"):
            if row.missing:
                raise NotEnoughRunsError(f"{row.missing} of 3 seeds are missing of {row.label}")
            return row
    raise AssertionError(f"table 1 has no row {network} {train}")


def _ranking(results: Results, id: str) -> tuple[bool, str]:
    rows = ranking(results, id)
    trained = "mean" if id in ("table2", "table4") else "tr14"
    for row in rows:
        _row(results, row.network, trained)
    wrong = []
    for better, worse in combinations(rows, 2):
        assert better.ours is not None
        assert worse.ours is not None
        if better.paper - worse.paper > COIN_FLIP and better.ours.mean <= worse.ours.mean:
            wrong.append(f"{better.title} is not above {worse.title}")
    order = sorted(rows, key=lambda row: row.place or 0)
    measured = ", ".join(f"{row.title} {row.ours.mean:.2f}" for row in order if row.ours)
    return not wrong, measured + ("" if not wrong else "; " + "; ".join(wrong))


def _spread(results: Results, network: NetworkName) -> tuple[bool, str]:
    values = {t: _row(results, network, t).ours["[1,4]"].mean for t in ("tr1", "tr2", "tr4")}
    spread = max(values.values()) - min(values.values())
    shown = ", ".join(f"{train} {value:.2f}" for train, value in values.items())
    return spread < DIFFERENCE_BETWEEN_SIZES, f"{shown}: {spread:.2f} points"


def _multi(results: Results, network: NetworkName) -> tuple[bool, str]:
    single = _row(results, network, "mean").ours["[1,4]"].mean
    multi = _row(results, network, "tr14").ours["[1,4]"].mean
    difference = multi - single
    return abs(difference) < DIFFERENCE_TO_MULTI_SCALE, f"{single:.2f} and {multi:.2f}: {difference:+.2f}"


def _improved(results: Results, network: NetworkName) -> tuple[bool, str]:
    single = _row(results, network, "mean").ours["[1,4]"].mean
    multi = _row(results, network, "tr14").ours["[1,4]"].mean
    return multi > single + 0.5, f"{single:.2f} to {multi:.2f}"


TOLERANCES: dict[NetworkName, dict[str, float]] = {
    "fovavg": {"[1,4]": 0.15, "[1/2,4]": 0.3},
    "fovmax": {"[1,4]": 0.15, "[1/2,4]": 0.3},
    "swmax": {"[1,4]": 1.5},
    "cnn": {"[1,4]": 4.0},
    "fovconc": {"[1,4]": 6.0},
}
"""How near to the paper our figures are expected to be, in points; FovConc tr14: 1."""
NOT_BELOW = 0.5
"""FovAvg and FovMax on [1/2,8]: not below the paper by more than this."""


def tolerance(row: TableRow, column: str) -> float | None:
    """The points that a figure may differ by; None where nothing is expected."""
    if row.network == "fovconc" and row.train == "tr14" and column == "[1,4]":
        return 1.0
    return TOLERANCES.get(row.network, {}).get(column)


def deviations(results: Results) -> Iterator[tuple[TableRow, str, float]]:
    """The figures of table 1 that are further from the paper than expected, with the allowed difference."""
    for row in main_table(results):
        if row.train == "mean" or row.source == "ours" or row.missing:
            continue
        for column in ("[1,4]", "[1/2,4]"):
            allowed, difference = tolerance(row, column), row.difference(column)
            if allowed is not None and difference is not None and abs(difference) > allowed:
                yield row, column, allowed
        difference = row.difference("[1/2,8]")
        if row.network in ("fovavg", "fovmax") and difference is not None and difference < -NOT_BELOW:
            yield row, "[1/2,8]", NOT_BELOW


def _near(results: Results, network: NetworkName) -> tuple[bool, str]:
    rows = [_row(results, network, train) for train in ("tr1", "tr2", "tr4", "tr14")]
    outside = [(row, column) for row, column, _ in deviations(results) if row.network == network]
    shown = (outside and outside) or [(row, "[1,4]") for row in rows]
    figures = (f"{row.train} {column} {row.difference(column):+.2f}" for row, column in shown)
    return not outside, ("outside: " if outside else "") + ", ".join(figures)


def _expected(network: NetworkName) -> str:
    if network in ("fovavg", "fovmax"):
        return "[1,4] within 0.15 points of the paper, [1/2,4] within 0.3, [1/2,8] not below by more than 0.5"
    within = f"[1,4] within {TOLERANCES[network]['[1,4]']:g} points of the paper"
    return within + (", and tr14 within 1" if network == "fovconc" else "")


CLAIMS: tuple[Claim, ...] = (
    *(
        Claim(f"near-{name}", f"{title}: {_expected(name)}", "Table 1", partial(_near, network=name))
        for name, title in NETWORKS.items()
    ),
    *(
        Claim(
            f"ranking-{id}",
            f"Table {id[-1]} ranks the networks so (pairs more than {COIN_FLIP} points apart)",
            f"Table {id[-1]}",
            partial(_ranking, id=id),
        )
        for id in RANKINGS
    ),
    *(
        Claim(
            f"spread-{name}",
            f"{NETWORKS[name]} on [1,4]: less than {DIFFERENCE_BETWEEN_SIZES} points between training on "
            "size 1, 2 and 4",
            "Section 6.3",
            partial(_spread, network=name),
        )
        for name in ("fovavg", "fovmax")
    ),
    *(
        Claim(
            f"multi-{name}",
            f"{NETWORKS[name]} on [1,4]: less than {DIFFERENCE_TO_MULTI_SCALE} points between single- and "
            "multi-scale training",
            "Section 6.6",
            partial(_multi, network=name),
        )
        for name in ("fovavg", "fovmax")
    ),
    *(
        Claim(
            f"improved-{name}",
            f"{NETWORKS[name]} on [1,4] is improved by multi-scale training, by more than 0.5 points",
            "Section 6.7",
            partial(_improved, network=name),
        )
        for name in ("fovconc", "swmax", "cnn")
    ),
)
