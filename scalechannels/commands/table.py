"""`scalechannels table`: the paper's tables from results; and accuracy against size as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from scalechannels.commands.ending import clear_ending

ResultsFolder = Annotated[
    Path | None,
    Parameter(name="--results", help="The folder of the results; by default ./results, else the clone's."),
]


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
    with clear_ending():
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


def size_name(size: float) -> str:
    """At most three decimals, as the files of MNIST Large Scale name their sizes: 0.5, 1.189, 8."""
    return f"{size:.3f}".rstrip("0").rstrip(".")


def accuracies(sizes: Sequence[Mapping[str, Any]]) -> dict[float, float]:
    """Size to accuracy, from the `sizes` of an evaluation; test sets of many sizes are left out."""
    return {
        float(entry["size"]): float(entry["accuracy"])
        for entry in sizes
        if not isinstance(entry["size"], (list, tuple))
    }


def accuracy_table(columns: Mapping[str, Mapping[float, float]], trained: Sequence[float] = ()) -> str:
    """One row for each size, one column for each network; below them the means over ranges of sizes.

    The sizes that were trained on are marked; `trained` is one size, or a low and a high one.
    """
    from scalechannels.data.ranges import range_means

    sizes = sorted({size for column in columns.values() for size in column})
    width = max(10, *(len(name) + 2 for name in columns))

    def row(name: str, values: Iterable[float | None]) -> str:
        cells = ("–" if value is None else f"{value:.2f} %" for value in values)
        return f"{name:>8}" + "".join(f"{cell:>{width}}" for cell in cells)

    lines = [f"{'size':>8}" + "".join(f"{name:>{width}}" for name in columns)]
    for size in sizes:
        inside = bool(trained) and trained[0] <= size <= trained[-1]
        values = (column.get(size) for column in columns.values())
        lines.append(row(size_name(size), values) + ("  trained" if inside else ""))
    means = [range_means(dict(column)) for column in columns.values()]
    if len(sizes) > 1 and any(means):
        names = dict.fromkeys(name for mean in means for name in mean)
        lines += ["", "    mean"] + [row(name, (mean.get(name) for mean in means)) for name in names]
    return "\n".join(lines)
