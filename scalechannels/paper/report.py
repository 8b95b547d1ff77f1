"""The page of `scalechannels report`: all tables and figures, the paper's values and ours, from results.

What it says is gathered here; how it is laid out is in `report/templates/paper.html`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scalechannels.data.sizes import RANGES
from scalechannels.paper.claims.verdicts import failed, verdicts
from scalechannels.paper.comparisons import comparisons
from scalechannels.paper.document import Progress
from scalechannels.paper.experiments import EXPERIMENTS, OURS, Experiment, experiment
from scalechannels.paper.figures.draw import draw_panels, with_pictures
from scalechannels.paper.figures.images import IMAGES
from scalechannels.paper.published import RANKINGS
from scalechannels.paper.recipes import WRITTEN, scales_of
from scalechannels.paper.results import Result, Results
from scalechannels.paper.table_text import (
    BEYOND,
    RANKING_HEADS,
    comparison_rows,
    curve_text,
    main_cell,
    ranking_rows,
)
from scalechannels.paper.tables import TableRow, main_table, ranking
from scalechannels.report.page import render
from scalechannels.report.theme import svg

Cell = tuple[str, str]
"""What stands in a cell, and what stands small below it."""


def report_page(results: Results) -> str:
    """The whole page."""
    found = Progress.of(results, EXPERIMENTS).found
    return render(
        "paper.html",
        progress=Progress.of(results, (one for one in EXPERIMENTS if one.place != OURS)),
        checked=verdicts(results),
        failed=failed(results),
        columns=RANGES,
        rows=[(row, _main_cells(row)) for row in main_table(results)],
        ranking_heads=RANKING_HEADS,
        rankings=[(experiment(id), ranking_rows(ranking(results, id))) for id in RANKINGS],
        note=experiment("beyond").caption,
        compared=compared(results),
        figures=[_figure(results, one) for one in with_pictures()],
        costs=costs(sorted(found, key=lambda result: result.config.name)),
        environments=sorted(set(map(_environment, found))),
    )


def _main_cells(row: TableRow) -> list[Cell]:
    """Ours, and below it the paper's value with the difference."""
    cells = []
    for column in RANGES:
        ours, paper, difference = main_cell(row, column)
        below = "" if row.paper is None else f"{paper} ({difference})" if row.ours else paper
        cells.append((ours, below))
    return cells


def compared(results: Results) -> list[tuple[str, list[str], list[list[Cell]]]]:
    """Tables of comparisons that have results: a title, the heads, and the rows."""
    tables = []
    for shown in map(experiment, BEYOND):
        found, over = (one for one in comparisons(results, shown.id) if one.by), shown.columns
        rows: list[list[Cell]] = [
            [(one, f"against {other}"), *map(_halves, cells)]
            for one, other, *cells in comparison_rows(found, over, between=" ")
        ]
        if rows:
            tables.append((shown.heading, ["", *over, "seeds"], rows))
    return tables


def _halves(cell: str) -> Cell:
    """A difference, and below it its interval."""
    value, _, interval = cell.partition(" ")
    return value, interval


def _figure(results: Results, one: Experiment) -> dict[str, Any]:
    """What the page shows of a figure: panels as SVG, a caption, and the data as text where it has some."""
    title = f"{one.place}: {one.title}" if one.place.startswith("Figure") else one.title
    wide, caption, progress = one.id in IMAGES, one.caption, Progress.of(results, [one])
    if len(progress.found) < progress.needed and not wide:
        caption += f" {progress} runs have a result; the others are named in the legends as missing."
    if progress.found and not wide:
        caption += f" Cost: {progress.cost}."
    return {
        "id": one.id,
        "title": title,
        "panels": [svg(panel, f"{title} {n}") for n, panel in enumerate(draw_panels(one.id, results), 1)],
        "wide": wide,
        "caption": caption,
        "numbers": curve_text(results, one) if one.renderer in ("curves", "samples") else "",
    }


def costs(found: Iterable[Result]) -> list[list[str]]:
    """Network, data, channels, runs, parameters and seconds a run, of runs that are alike in all of these."""
    groups: dict[tuple[str, str, int, int], list[Result]] = {}
    for result in found:
        network, data = result.config.network.name, result.config.data.name
        key = (network, data, len(scales_of(result.config)), int(result.values["parameters"]))
        groups.setdefault(key, []).append(result)
    return [
        [
            WRITTEN.get(network, network),
            data,
            str(count),
            str(len(group)),
            f"{parameters:,}",
            f"{sum(result.seconds for result in group) / len(group):.1f}",
        ]
        for (network, data, count, parameters), group in groups.items()
    ]


def _environment(result: Result) -> str:
    known = result.values["environment"]
    return (
        f"{known.get('device')}, PyTorch {known.get('torch')}, commit {known.get('commit')}, scalechannels "
        f"{known.get('scalechannels')}"
    )
