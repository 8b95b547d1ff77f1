"""`scalechannels table`: the paper's tables from results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from scalechannels.cli import ResultsFolder


def table(
    id: Annotated[
        str,
        Parameter(help="1 to 5 for the paper's tables; beyond: ours compared; figure5 …: a figure's data."),
    ],
    /,
    *,
    form: Annotated[
        Literal["text", "markdown", "json"], Parameter(name="--format", help="How it is written.")
    ] = "text",
    results: ResultsFolder = None,
) -> None:
    """Print a table of the paper with its values beside ours. Only reads results; what is missing is told.

    Examples: scalechannels table 1; scalechannels table 1 --format json; scalechannels table figure7
    """
    print(table_text(f"table{id}" if id.isdecimal() else id, form, results))


def table_text(id: str, form: Literal["text", "markdown", "json"], results: Path | None) -> str:
    """A table of the paper, or the data of a figure."""
    import json
    from dataclasses import asdict

    from scalechannels.paper import comparisons, layout, tables
    from scalechannels.paper.experiments import experiment
    from scalechannels.paper.results import known_results

    one, known = experiment(id), known_results(results)
    if id == "beyond":
        text = (
            json.dumps(comparisons.as_json(known), indent=1)
            if form == "json"
            else comparisons.comparison_text(known, form)
        )
    elif one.renderer == "table":
        rows = tables.main_table(known)
        text = json.dumps(tables.as_json(rows), indent=1) if form == "json" else layout.main_text(rows, form)
    elif one.renderer == "ranking":
        ranks = tables.ranking(known, id)
        text = (
            json.dumps([asdict(row) for row in ranks], indent=1)
            if form == "json"
            else f"{one.title}\n\n" + layout.ranking_text(ranks, form)
        )
    elif one.renderer in ("curves", "samples"):
        curves = tables.curve_tables(known, one)
        axis = "samples" if one.renderer == "samples" else "size"
        text = (
            json.dumps([asdict(curve) for curve in curves], indent=1)
            if form == "json"
            else layout.curve_text(curves, form, axis)
        )
    else:
        raise ValueError(f"{id} has no table: scalechannels figure {id}")
    for fault in known.faults.values():
        import sys

        print(f"not used: {fault}", file=sys.stderr)
    return text
