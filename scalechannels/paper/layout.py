"""Tables as text, Markdown and rows for a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from scalechannels.paper.published import COLUMNS
from scalechannels.paper.tables import CurveTable, Figure, RankRow, TableRow

TextForm = Literal["text", "markdown"]
NONE = "–"


def plus_minus(figure: Figure | None) -> str:
    """99.32 ± 0.02; a single seed has no ±."""
    if figure is None:
        return NONE
    return f"{figure.mean:.2f}" + ("" if figure.std is None else f" ± {figure.std:.2f}")


def signed(difference: float | None) -> str:
    """With its sign, a true minus; what rounds to zero has none."""
    if difference is None:
        return NONE
    rounded = round(difference, 2)
    return "0.00" if rounded == 0 else f"{rounded:+.2f}".replace("-", "−")


def main_cells(row: TableRow) -> list[str]:
    """Ours ± std, the paper's value and the difference, for each range."""
    cells = []
    for column in COLUMNS:
        paper = NONE if row.paper is None else f"{row.paper[column]:.2f}"
        cells += [plus_minus(row.ours.get(column)), paper, signed(row.difference(column))]
    return cells


def main_text(rows: Sequence[TableRow], form: TextForm = "text") -> str:
    """Table 1."""
    if form == "markdown":
        heads = ["", "seeds", *COLUMNS]
        body = [
            [row.label + _mark(row), str(row.seeds), *(_cell(row, column) for column in COLUMNS)]
            for row in rows
        ]
        note = (
            "Each cell: our mean ± standard deviation over seeds (the paper's value, the difference). "
            "(ours): a network that the paper does not have."
        )
        return markdown(heads, body) + f"\n\n{note}"
    width, part = max((len(row.label) + 1 for row in rows), default=0), (14, 7, 7)
    lines = [
        " " * width + "".join(f"{column:^{sum(part)}}" for column in COLUMNS),
        " " * width + f"{'ours':>{part[0]}}{'paper':>{part[1]}}{'diff':>{part[2]}}" * len(COLUMNS),
    ]
    for before, row in zip([None, *rows], rows, strict=False):
        if before is not None and before.title != row.title:
            lines.append("")
        cells = zip(main_cells(row), part * len(COLUMNS), strict=True)
        lines.append(f"{row.label:<{width}}" + "".join(f"{cell:>{w}}" for cell, w in cells) + _mark(row))
    lines.append("")
    lines.append("Test accuracy in per cent, mean ± standard deviation over seeds, beside the paper's value.")
    lacking = sum(row.missing for row in rows if row.train != "mean")
    if lacking:
        lines.append(f"{lacking} runs have no result: scalechannels reproduce table1")
    return "\n".join(lines)


def _mark(row: TableRow) -> str:
    return "" if row.source == "paper" else " (ours)"


def _cell(row: TableRow, column: str) -> str:
    if row.paper is None:
        return plus_minus(row.ours.get(column))
    return f"{plus_minus(row.ours.get(column))} ({row.paper[column]:.2f}, {signed(row.difference(column))})"


def ranking_rows(rows: Sequence[RankRow]) -> list[list[str]]:
    return [
        [
            str(row.paper_place),
            row.title,
            f"{row.paper:.2f}",
            plus_minus(row.ours),
            NONE if row.place is None else str(row.place),
            signed(None if row.ours is None else row.ours.mean - row.paper),
        ]
        for row in rows
    ]


RANKING_HEADS = ("place", "network", "paper", "ours", "our place", "difference")


def ranking_text(rows: Sequence[RankRow], form: TextForm = "text") -> str:
    return columns(RANKING_HEADS, ranking_rows(rows), form)


def curve_text(tables: Sequence[CurveTable], form: TextForm = "text", axis: str = "size") -> str:
    """The accuracies of a figure, panel by panel."""
    parts = []
    for table in tables:
        places = sorted({place for column in table.columns.values() for place in column})
        heads = [axis, *table.columns]
        body = [
            [f"{place:g}" if axis == "samples" else f"{place:.3f}"]
            + [plus_minus(column.get(place)) for column in table.columns.values()]
            for place in places
        ]
        title = f"{table.title}\n" if form == "text" else f"**{table.title}**\n\n"
        text = columns(heads, body, form) if body else "no results yet"
        parts.append(title + text + missing_text(table))
    return "\n\n".join(parts)


def missing_text(table: CurveTable) -> str:
    if not table.missing:
        return ""
    return "\nmissing: " + ", ".join(f"{label} ({count})" for label, count in table.missing.items())


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]], form: TextForm) -> str:
    if form == "markdown":
        return markdown(heads, rows)
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    lines = ["  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)) for row in (heads, *rows)]
    return "\n".join(line.rstrip() for line in lines)


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
