"""Histograms of selected scales: test sizes across, channels upwards, darker where a channel gives more.

As in the paper, the grey levels of each histogram go from its smallest to its largest share.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from scalechannels.paper.claims.selection import scales_of
from scalechannels.paper.recipes import Experiment, Panel
from scalechannels.paper.results import Results
from scalechannels.report.curves import fraction
from scalechannels.report.theme import INK, PANEL, SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_selection(axes: Axes, results: Results, one: Experiment, panel: Panel) -> None:
    """One panel: the histogram of one network, the mean over its seeds."""
    (curve,) = panel.curves
    found = [result.selection for result in results.of(curve)]
    axes.set_facecolor(PANEL)
    axes.set_xlabel("size of the test digits", color=SOFT)
    axes.set_ylabel("scale channel σ", color=SOFT)
    for spine in axes.spines.values():
        spine.set_visible(False)
    if not found:
        axes.set_xticks([])
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no results yet", color=SOFT, ha="center", va="center", transform=axes.transAxes)
        return
    sizes, scales = sorted(found[0]), scales_of(curve.configs[0])
    shares = [
        [sum(one[size][channel] for one in found) / len(found) for size in sizes]
        for channel in range(len(scales))
    ]  # (channels, sizes)
    axes.imshow(shares, cmap="gray_r", origin="lower", interpolation="nearest", aspect="auto")
    for axis, values in ((axes.xaxis, sizes), (axes.yaxis, scales)):
        whole = [i for i, v in enumerate(values) if abs(math.log2(v) - round(math.log2(v))) < 1e-6]
        axis.set_ticks(whole, [fraction(2.0 ** round(math.log2(values[i]))) for i in whole])
    axes.tick_params(length=0, labelcolor=INK, labelsize=9, pad=4)
