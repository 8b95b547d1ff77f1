"""Which scale channel decides at which size: a diagonal where a network selects scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scalechannels.report.curves import fraction
from scalechannels.report.theme import FIRST, INK, LINE, PANEL, SOFT

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def selection_picture(
    sizes: Sequence[float],
    scales: Sequence[float],
    shares: Sequence[Sequence[float]],
    *,
    across: str = "size of the digits in the test",
    upwards: str = "scale channel σ",
) -> Figure:
    """A heat map: test sizes across, channels upwards; the stronger the colour, the larger the share.

    shares   for each size, the mean contribution of each channel to the winning class
    """
    import math

    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    if len(shares) != len(sizes) or any(len(row) != len(scales) for row in shares):
        raise ValueError(f"one share for each of {len(sizes)} sizes and {len(scales)} channels is needed")
    figure = Figure(figsize=(7.2, 6.0), facecolor=PANEL, layout="constrained")
    axes = figure.add_subplot(facecolor=PANEL)
    strongest = max(max(row) for row in shares)
    for column, row in enumerate(shares):
        for channel, share in enumerate(row):
            box = (column - 0.46, channel - 0.46), 0.92, 0.92
            axes.add_patch(Rectangle(*box, facecolor=LINE, alpha=0.35, linewidth=0))
            if share > 0.004 * strongest:
                axes.add_patch(Rectangle(*box, facecolor=FIRST, alpha=min(1, share / strongest), linewidth=0))
    axes.set_xlim(-0.5, len(sizes) - 0.5)
    axes.set_ylim(-0.5, len(scales) - 0.5)
    for axis, values in ((axes.xaxis, sizes), (axes.yaxis, scales)):
        whole = [
            i for i, value in enumerate(values) if abs(math.log2(value) - round(math.log2(value))) < 1e-6
        ]
        axis.set_ticks(whole, [fraction(2.0 ** round(math.log2(values[i]))) for i in whole])
    axes.set_xlabel(across, color=SOFT)
    axes.set_ylabel(upwards, color=SOFT)
    axes.tick_params(length=0, labelcolor=INK, labelsize=11, pad=6)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return figure
