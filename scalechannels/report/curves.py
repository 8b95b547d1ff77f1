"""Accuracy against size as curves: the picture that scale-channel networks are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from scalechannels.report.theme import FIRST, INK, LINE, PANEL, SECOND, SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (FIRST, SECOND)
MARKERS = ("o", "s")


def accuracy_curves(
    columns: Mapping[str, Mapping[float, float]],
    trained: Sequence[float],
    title: str | None = None,
    *,
    objects: str = "digits",
    guessing: float = 10.0,
) -> Figure:
    """One curve for each of at most two networks, named at its end; the sizes of training are marked.

    columns   name of a network → size → accuracy in per cent
    trained   one size, or a low and a high one
    objects   what is recognised
    guessing  the accuracy of who knows nothing
    """
    if not 1 <= len(columns) <= len(COLOURS):
        raise ValueError(f"one or two curves fit into this picture, got {list(columns)}")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), facecolor=PANEL, layout="constrained")
    axes = figure.add_subplot(facecolor=PANEL)
    tested = sorted({size for column in columns.values() for size in column})
    size_axis(axes, tested)
    axes.set_xlabel(f"size of the {objects} in the test", color=SOFT)
    axes.set_ylim(0, 104)
    axes.set_yticks(range(0, 101, 20), [f"{value} %" for value in range(0, 101, 20)])
    axes.set_ylabel("found right", color=SOFT)
    axes.grid(axis="y", color=LINE, linewidth=1)
    axes.axhline(guessing, color=SOFT, linewidth=1, linestyle=(0, (1, 3)))
    below_line = guessing > 8  # where there is room, and curves come from above
    axes.text(
        tested[0],
        guessing - 1.2 if below_line else guessing + 1.5,
        "guessing",
        color=SOFT,
        fontsize=9,
        va="top" if below_line else "bottom",
    )
    axes.axvspan(trained[0] / 1.02, trained[-1] * 1.02, color=SOFT, alpha=0.25, linewidth=0)
    axes.text(
        trained[-1] * 1.04,
        3,
        "the one size of training" if len(trained) == 1 else "trained",
        color=SOFT,
        fontsize=9,
    )
    for (name, column), colour, marker in zip(columns.items(), COLOURS, MARKERS, strict=False):
        sizes = sorted(column)
        values = [column[size] for size in sizes]
        axes.plot(sizes, values, color=colour, marker=marker, markersize=5, linewidth=2.2, clip_on=False)
        below = max(values) > 90 and min(values[len(values) // 2 :]) > 60
        last = max(-4, -len(sizes))
        # Above its last points, where a falling curve does not run through the name.
        x = sizes[last] if below else (sizes[last] * sizes[-1]) ** 0.5
        y = values[last] - 7 if below else max(values[last:]) + 3
        axes.text(
            x,
            y,
            name,
            color=colour,
            fontsize=11.5,
            fontweight="bold",
            ha="center",
            va="top" if below else "bottom",
        )
    if title:
        axes.set_title(title, color=INK, fontsize=13, fontweight="bold", loc="left", pad=12)
    return figure


def size_axis(axes: Axes, sizes: Sequence[float]) -> None:
    """A logarithmic axis of sizes, with ticks where sizes are powers of two; no frame but the ticks' text."""
    import math

    axes.set_xscale("log", base=2)
    powers = [
        2.0**k
        for k in range(math.ceil(math.log2(sizes[0]) - 1e-9), math.floor(math.log2(sizes[-1]) + 1e-9) + 1)
    ]
    axes.set_xticks(powers, [fraction(size) for size in powers])
    axes.minorticks_off()
    axes.tick_params(length=0, labelcolor=INK, labelsize=11, pad=6)
    for spine in axes.spines.values():
        spine.set_visible(False)


def fraction(size: float) -> str:
    """Powers of two as they are said: ½, 1, 2."""
    named = {0.125: "⅛", 0.25: "¼", 0.5: "½"}
    return named.get(size, f"{size:.3g}")
