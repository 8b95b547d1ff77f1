"""Histograms of selected scales: test sizes across, channels upwards, darker where a channel gives more.

As in the paper, the grey levels of each histogram go from its smallest to its largest share.
"""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from scalechannels.paper.figures.curves import no_results
from scalechannels.paper.recipes import Experiment, Panel, scales_of
from scalechannels.paper.results import Results
from scalechannels.report.theme import PANEL, SOFT, bare, cell_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_selection(axes: Axes, results: Results, one: Experiment, panel: Panel) -> None:
    """One panel: the histogram of one network, the mean over its seeds."""
    (curve,) = panel.curves
    found = [result.selection for result in results.of(curve)]
    axes.set_facecolor(PANEL)
    axes.set_xlabel("size of the test digits", color=SOFT)
    axes.set_ylabel("scale channel σ", color=SOFT)
    bare(axes, labelsize=9, pad=4)
    if not found:
        axes.set_xticks([])
        axes.set_yticks([])
        no_results(axes)
        return
    sizes, scales = sorted(found[0]), scales_of(curve.configs[0])
    shares = [
        [fmean(seed[size][channel] for seed in found) for size in sizes] for channel in range(len(scales))
    ]  # (channels, sizes)
    axes.imshow(shares, cmap="gray_r", origin="lower", interpolation="nearest", aspect="auto")
    cell_ticks(axes.xaxis, sizes)
    cell_ticks(axes.yaxis, scales)
