"""Accuracy against cost: every method of a protocol as a point, and the frontier drawn through the best."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.figure import Figure

from scalechannels.compare.protocols import Protocol
from scalechannels.compare.table import Row
from scalechannels.report.theme import FIRST, INK, LINE, SECOND, SOFT, bare, blank, named

SIZE = (7.4, 4.6)
"""Inches."""


def draw(protocol: Protocol, rows: Sequence[Row]) -> Figure:
    """Upwards the accuracy outside the training sizes (inside, where there are no others), with the spread.

    Law: what is drawn is in the rows; methods without results or costs are named below the picture.
    """
    figure = blank(*SIZE)
    axes = figure.subplots()
    shown = [row for row in rows if row.accuracy is not None and row.cost]
    over = "outside" if any(row.outside for row in shown) else "inside"
    axes.set_xscale("log")
    named(axes, "million multiplications for an image", f"accuracy {over} the training sizes (%)")
    bare(axes, labelsize=9)
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.grid(color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_title(protocol.title, color=INK, fontsize=10.5)
    best = sorted((row for row in shown if row.frontier), key=lambda row: row.cost["multiplications"])
    if best:
        axes.step(
            [row.cost["multiplications"] / 1e6 for row in best],
            [row.accuracy or 0.0 for row in best],
            where="post",
            color=SOFT,
            linewidth=1.2,
            linestyle=(0, (4, 2)),
            label="frontier",
        )
    costs = [row.cost["multiplications"] / 1e6 for row in shown]
    middle = math.sqrt(min(costs) * max(costs)) if costs else 1.0
    for row in sorted(shown, key=lambda row: row.accuracy or 0):
        value = row.outside or row.inside
        assert value is not None
        across, colour = row.cost["multiplications"] / 1e6, FIRST if row.method.ours else SECOND
        axes.errorbar(across, value.mean, yerr=value.std or 0, color=colour, fmt="o", markersize=6, capsize=2)
        left = across > middle  # so that no name leaves the picture
        axes.annotate(
            row.method.title,
            (across, value.mean),
            xytext=(-7 if left else 7, 4),
            textcoords="offset points",
            ha="right" if left else "left",
            color=colour,
            fontsize=8,
        )
    axes.margins(x=0.18, y=0.12)
    lacking = [row.method.title for row in rows if row not in shown]
    if not shown:
        axes.text(0.5, 0.5, "no results yet", color=SOFT, ha="center", transform=axes.transAxes)
    if lacking:
        figure.supxlabel(f"no results: {', '.join(lacking)}", color=SOFT, fontsize=7.5)
    return figure
