"""The tables of the paper, and the data of its figures, as text, Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Literal

from scalechannels.data.sizes import RANGES
from scalechannels.paper.comparisons import Comparison, comparisons, comparisons_json
from scalechannels.paper.experiments import GROUPS, Experiment, chosen, experiment
from scalechannels.paper.factorial import factorial_json, factorial_rows
from scalechannels.paper.outside import TABLES, Outside, outside_differences, outside_json, outside_rows
from scalechannels.paper.placed import placed_json, placed_rows
from scalechannels.paper.results import Results
from scalechannels.paper.tables import Mean, RankRow, TableRow, as_json, curve_tables, main_table, ranking

TextForm = Literal["text", "markdown"]
NONE = "–"
BEYOND = ("beyond", "beyond-cifar")
"""Our networks compared with others: on digits, and on rescaled CIFAR-10."""
RANKING_HEADS = ("place", "network", "paper", "ours", "our place", "difference")


def table_text(results: Results, id: str, form: TextForm | Literal["json"] = "text") -> str:
    """A table of the paper, or the data of a figure."""
    if id == "outside":
        return _json(outside_json(results.folder.parent)) if form == "json" else outside_texts(results, form)
    one, *others = chosen([id]) if id in GROUPS else [experiment(id, "table")]
    if one.renderer == "placed":
        if form == "json":
            return _json(placed_json(results, part) for part in (one, *others))
        return "\n\n\n".join(placed_text(results, part, form) for part in (one, *others))
    if one.renderer == "factorial":
        if form == "json":
            return _json(factorial_json(results, part) for part in (one, *others))
        texts = [factorial_text(results, part, form) for part in (one, *others)]
        return "\n\n\n".join([*texts, outside_texts(results, form)] if id == "evidence" else texts)
    if id == "beyond":
        if form == "json":
            return _json(row for id in BEYOND for row in comparisons_json(results, id))
        return comparison_text(results, form)
    if one.renderer == "table":
        rows = main_table(results)
        return _json(as_json(rows)) if form == "json" else main_text(rows, form)
    if one.renderer == "ranking":
        ranks = ranking(results, id)
        return _json(map(asdict, ranks)) if form == "json" else f"{one.title}\n\n{ranking_text(ranks, form)}"
    if one.renderer in ("curves", "samples"):
        if form == "json":
            return _json(map(asdict, curve_tables(results, one)))
        return curve_text(results, one, form)
    raise ValueError(f"'{id}' has no table; draw it with scalechannels figure {id}")


def _json(rows: Iterable[object]) -> str:
    return json.dumps(list(rows), indent=1)


def plus_minus(found: Mean | None) -> str:
    """99.32 ± 0.02; a single seed has no ±."""
    if found is None:
        return NONE
    return f"{found.mean:.2f}" + ("" if found.std is None else f" ± {found.std:.2f}")


def signed(difference: float | None) -> str:
    """With its sign, a true minus; what rounds to zero has none."""
    if difference is None:
        return NONE
    rounded = round(difference, 2)
    return "0.00" if rounded == 0 else f"{rounded:+.2f}".replace("-", "−")


def main_cell(row: TableRow, column: str) -> tuple[str, str, str]:
    """Ours ± std, the paper's value and the difference."""
    paper = NONE if row.paper is None else f"{row.paper[column]:.2f}"
    return plus_minus(row.ours.get(column)), paper, signed(row.difference(column))


def main_text(rows: Sequence[TableRow], form: TextForm = "text") -> str:
    """Table 1."""
    marks = ["" if row.source == "paper" else " (ours)" for row in rows]
    if form == "markdown":
        body = [[row.label + mark, str(row.seeds)] for row, mark in zip(rows, marks, strict=True)]
        for row, line in zip(rows, body, strict=True):
            for ours, paper, difference in (main_cell(row, column) for column in RANGES):
                line.append(ours if row.paper is None else f"{ours} ({paper}, {difference})")
        return markdown(["", "seeds", *RANGES], body) + f"\n\n{experiment('table1').caption}"
    width = max((len(row.label) + 1 for row in rows), default=0)
    lines = [
        " " * width + "".join(f"{column:^28}" for column in RANGES),
        " " * width + f"{'ours':>14}{'paper':>7}{'diff':>7}" * len(RANGES),
    ]
    for place, row in enumerate(rows):
        if place and rows[place - 1].title != row.title:
            lines.append("")
        cells = (main_cell(row, column) for column in RANGES)
        numbers = "".join(f"{ours:>14}{paper:>7}{difference:>7}" for ours, paper, difference in cells)
        lines.append(f"{row.label:<{width}}{numbers}{marks[place]}")
    lines += [
        "",
        "Test accuracy in per cent, mean ± standard deviation over seeds, beside the paper's value.",
        "Columns: the range of test sizes. 17ch: 17 scale channels. tr2: trained on size 2;",
        "tr14: trained on sizes 1 to 4; mean: over tr1, tr2 and tr4. (ours): not in the paper.",
    ]
    lacking = sum(row.missing for row in rows if row.train != "mean")
    if lacking:
        lines.append(f"{lacking} runs have no result: scalechannels reproduce table1")
    return "\n".join(lines)


def ranking_rows(rows: Iterable[RankRow]) -> list[list[str]]:
    return [
        [
            str(row.paper_place),
            row.title,
            f"{row.paper:.2f}",
            plus_minus(row.ours),
            str(row.place or NONE),
            signed(None if row.ours is None else row.ours.mean - row.paper),
        ]
        for row in rows
    ]


def ranking_text(rows: Iterable[RankRow], form: TextForm = "text") -> str:
    return columns(RANKING_HEADS, ranking_rows(rows), form)


def curve_text(results: Results, one: Experiment, form: TextForm = "text") -> str:
    """The accuracies of a figure, panel by panel."""
    axis, digits = ("samples", "g") if one.renderer == "samples" else ("size", ".3f")
    parts = []
    for table in curve_tables(results, one):
        places = sorted({place for column in table.columns.values() for place in column})
        body = [
            [f"{place:{digits}}", *(plus_minus(column.get(place)) for column in table.columns.values())]
            for place in places
        ]
        title = f"{table.title}\n" if form == "text" else f"**{table.title}**\n\n"
        text = columns([axis, *table.columns], body, form) if body else "no results yet"
        missing = ", ".join(f"{label} ({count})" for label, count in table.missing.items())
        parts.append(title + text + (f"\nmissing: {missing}" if missing else ""))
    return "\n\n".join(parts)


def placed_text(results: Results, one: Experiment, form: TextForm = "text") -> str:
    """Accuracies inside and outside the sizes of training, and how far place and scale are off."""
    rows = placed_rows(results, one)
    body = [
        [
            row.network,
            row.trained,
            str(row.seeds or NONE),
            *map(plus_minus, (row.inside, row.outside, row.place, row.evidence, row.scale, row.drift)),
        ]
        for row in rows
    ]
    heads = ["network", "trained on", "seeds", "inside", "outside", "place", "evidence", "scale", "drift"]
    missing = sum(row.missing for row in rows)
    lacking = f"\n\n{missing} runs have no result: scalechannels reproduce {one.id}" if missing else ""
    legend = (
        "Inside, outside: test accuracy in per cent at the sizes of training and at the others, mean ± "
        "standard deviation over seeds. Place, evidence: how far the deciding window and the centre of the "
        "evidence are off the digit, in pixels; scale: how far the deciding scale is off its median, in "
        "octaves, all medians over images; drift: "
        "by how much that median over the digit's size differs between test sizes."
    )
    title = one.title if form == "text" else f"**{one.title}**"
    return f"{title}\n\n{columns(heads, body, form)}\n\n{legend} {one.caption}{lacking}"


def factorial_text(results: Results, one: Experiment, form: TextForm = "text") -> str:
    """The rows of an experiment and, below, their differences."""
    rows = [
        [
            row.title,
            NONE if row.parameters is None else f"{row.parameters:,}",
            str(row.seeds),
            *(plus_minus(row.by.get(column)) for column in one.columns),
        ]
        for row in factorial_rows(results, one)
    ]
    heads = ["row", "parameters", "seeds", *one.columns]
    found = comparisons(results, one.id)
    return rows_and_differences(one.title, columns(heads, rows, form), found, one.columns, one.caption, form)


def outside_texts(results: Results, form: TextForm = "text") -> str:
    """Those of digits and of photographs."""
    return "\n\n\n".join(outside_text(results, table, form) for table in TABLES)


def outside_text(results: Results, table: Outside, form: TextForm = "text") -> str:
    """What survives outside the range of the recipes; of a table without results, only that it has none."""
    place, over = results.folder.parent, [*table.columns]
    rows = [
        [row.title, str(row.seeds), *(plus_minus(row.by[name]) for name in over)]
        for row in outside_rows(place, table)
    ]
    if not rows:
        return f"{table.title}: not run yet, see benchmarks/outside.py"
    told = columns(["row", "seeds", *over], rows, form)
    return rows_and_differences(
        table.title, told, outside_differences(place, table), over, table.caption, form
    )


def rows_and_differences(
    title: str, table: str, found: Sequence[Comparison], over: Sequence[str], caption: str, form: TextForm
) -> str:
    """A table of accuracies, that of their differences where any are asked for, and what both mean."""
    if not found:
        return "\n\n".join([title if form == "text" else f"### {title}", table, caption])
    return "\n\n".join(
        [
            title if form == "text" else f"### {title}",
            table,
            columns(["difference of", "and", *over, "seeds"], comparison_rows(found, over), form),
            f"{caption} Differences in percentage points, with 95 % intervals over seeds and test "
            "images; * different at the level of 5 % after Holm's correction for "
            f"{sum(len(row.by) for row in found)} comparisons; – no result yet.",
        ]
    )


def comparison_rows(found: Iterable[Comparison], over: Iterable[str], between: str = ", ") -> list[list[str]]:
    """Cells as text; `between` stands between the seeds of the two networks."""
    rows = []
    for one in found:
        cells = [difference_cell(one, where) for where in over]
        seeds = between.join(map(str, next(iter(one.by.values())).seeds)) if one.by else NONE
        rows.append([one.network, one.other, *cells, seeds])
    return rows


def difference_cell(one: Comparison, over: str) -> str:
    """+0.12 [+0.05, +0.20]*, with true minus signs."""
    return f"{one.by[over]}{'*' * (over in one.clear)}".replace("-", "−") if over in one.by else NONE


def comparison_text(results: Results, form: TextForm = "text") -> str:
    """Those of MNIST Large Scale and, below, those of CIFAR-10."""
    tables = {id: comparisons(results, id) for id in BEYOND}
    lacking = [not one.by for found in tables.values() for one in found]
    waiting = f" {sum(lacking)} of {len(lacking)} wait for runs." if any(lacking) else ""
    mnist, cifar10 = (
        columns(
            ["network", "compared with", *experiment(id).columns, "seeds"],
            comparison_rows(found, experiment(id).columns),
            form,
        )
        for id, found in tables.items()
    )
    digits, photos = map(experiment, BEYOND)
    return "\n\n".join([mnist, photos.heading, cifar10, digits.caption + waiting])


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]], form: TextForm) -> str:
    if form == "markdown":
        return markdown(heads, rows)
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    lines = ["  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)) for row in (heads, *rows)]
    return "\n".join(line.rstrip() for line in lines)


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
