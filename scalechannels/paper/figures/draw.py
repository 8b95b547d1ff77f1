"""Every figure of the paper that has data, from results alone: `draw(id, results)`.

Law: what is drawn is in the results; what is missing is named in the picture. Limit: the paper's own curves
are not drawn, since it gives no numbers for them.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scalechannels.files import atomic_path
from scalechannels.paper.experiments import EXPERIMENTS, Experiment, Panel, experiment
from scalechannels.paper.placed import ring_means
from scalechannels.paper.recipes import scales_of
from scalechannels.paper.results import PICTURES, Results
from scalechannels.paper.tables import curve_means
from scalechannels.report.theme import (
    COLOURS,
    INK,
    LINE,
    PANEL,
    SOFT,
    bare,
    blank,
    cells,
    count_axis,
    named,
    size_axis,
)

PANEL_SIZE = (4.6, 3.3)
"""Inches."""
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHED = (0, (4, 2))
GREY = (DASHED, (0, (1, 1.2)), (0, (7, 2, 1.5, 2)))
"""Curves to compare with are told apart by their dashes."""


def with_pictures() -> list[Experiment]:
    """The experiments that are figures."""
    return [one for one in EXPERIMENTS if not one.is_table]


def draw(id: str, results: Results) -> Figure:
    """The whole figure."""
    one = _figure_of(id)
    across = 3 if len(one.panels) in (3, 5, 6) else min(2, len(one.panels))
    return _arranged(results, one, range(len(one.panels)), across)


def draw_panels(id: str, results: Results) -> list[Figure]:
    """The panels as figures of their own, for pages that arrange them; images stay whole."""
    one = _figure_of(id)
    count = len(one.panels) if one.renderer in PANELS else 1
    return [_arranged(results, one, [place], 1) for place in range(count)]


def save(figure: Figure, path: Path) -> list[Path]:
    """As PNG and as SVG, beside each other."""
    written = []
    for kind in ("png", "svg"):
        target = path.with_name(f"{path.name}.{kind}")
        with atomic_path(target) as temporary:
            metadata = {"Date": None} if kind == "svg" else None
            figure.savefig(temporary, format=kind, dpi=160, metadata=metadata)
        written.append(target)
    return written


def _figure_of(id: str) -> Experiment:
    one = experiment(id, "figure")
    if one.is_table:
        raise ValueError(f"'{id}' is a table, not a figure: scalechannels table {id.removeprefix('table')}")
    return one


def _arranged(results: Results, one: Experiment, places: Sequence[int], across: int) -> Figure:
    """A figure of some panels, so many beside each other, or of images."""
    if one.renderer not in PANELS:
        return _image(one, results)
    down = -(-len(places) // across)
    figure = blank(PANEL_SIZE[0] * across, PANEL_SIZE[1] * down)
    plots = figure.subplots(down, across, squeeze=False).flat
    for place, axes in zip(places, plots, strict=False):
        PANELS[one.renderer](axes, results, one, one.panels[place])
        letter = f"({string.ascii_lowercase[place]}) " if len(one.panels) > 1 else ""
        axes.set_title(letter + one.panels[place].title, color=INK, fontsize=10.5)
    for spare in figure.axes[len(places) :]:
        spare.set_axis_off()
    if one.renderer == "placed":
        _legend(figure, figure.axes[0], loc="outside lower center", ncols=4 if across > 1 else 2)
    return figure


def _image(one: Experiment, results: Results) -> Figure:
    from scalechannels.paper.figures.images import IMAGES  # torch, which curves do without

    if one.id not in IMAGES:
        kind = f"{one.renderer!r} is neither in PANELS"
        raise ValueError(f"nothing draws {one.id}: {kind} nor is {one.id} in IMAGES")
    path = results.folder.parent / PICTURES / IMAGES[one.id].file
    if path.exists():
        return IMAGES[one.id].draw(path)
    figure = blank(6.0, 1.5)
    figure.text(0.5, 0.5, f"not made yet: scalechannels reproduce {one.id}", color=SOFT, ha="center")
    return figure


def draw_curves(axes: Axes, results: Results, one: Experiment, panel: Panel) -> None:
    """Accuracy against the size of the test or the number of samples; the legend names what is missing."""
    if panel.across == "offset":
        named(axes, "pixels off the centre", "accuracy (%)")
        bare(axes)
    elif one.renderer == "samples":
        counts = [config.data.samples or 0 for config in panel.curves[0].configs]
        count_axis(axes, counts, "number of training samples", "accuracy (%)")
    else:
        data = panel.curves[0].configs[0].data.about
        across = "size of the test digits" if data.values == "digits" else "scale factor of the test images"
        size_axis(axes, data.test_sizes, across, "accuracy (%)")
        low, *_, high = data.test_sizes
        axes.set_xlim(low / (high / low) ** 0.04, high * (high / low) ** 0.04)
    low, high = panel.shown
    axes.set_ylim(low - 0.02 * (high - low), high + 0.02 * (high - low))
    axes.grid(color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    drawn = [_draw(axes, results, one, panel, place) for place in range(len(panel.curves))]
    if not any(drawn):
        _no_results(axes)
    if one.renderer != "placed":  # whose panels have the same many curves: one legend serves all
        labels = axes.get_legend_handles_labels()[1]
        # Below the axis: curves of this kind leave no corner free.
        place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2)}
        _legend(axes, axes, ncols=3 if max(map(len, labels)) < 12 else 2, **place)


def _legend(owner: Axes | Figure, axes: Axes, **place: Any) -> None:
    """Names the curves of the axes, in a panel or below all of them."""
    handles, labels = axes.get_legend_handles_labels()
    legend = owner.legend(
        handles,
        labels,
        fontsize=8,
        facecolor=PANEL,
        edgecolor="none",
        framealpha=0.8,
        labelcolor=INK,
        handlelength=2.4,
        **place,
    )
    for text in legend.get_texts():
        if text.get_text().endswith("(no result)"):
            text.set_color(SOFT)


def draw_selection(axes: Axes, results: Results, one: Experiment, panel: Panel) -> None:
    """Test sizes across, channels upwards, darker where a channel gives more, the mean over seeds.

    As in the paper, the grey levels of each histogram go from its smallest to its largest share.
    """
    (curve,) = panel.curves
    found = [result.selection for result in results.of(curve.configs[0])]
    sizes, scales = (sorted(found[0]), scales_of(curve.configs[0])) if found else ([], [])
    cells(axes, sizes, scales, "size of the test digits", "scale channel σ", labelsize=9, pad=4)
    if not found:
        _no_results(axes)
        return
    shares = [
        [fmean(seed[size][channel] for seed in found) for size in sizes] for channel in range(len(scales))
    ]  # (channels, sizes)
    axes.imshow(shares, cmap="gray_r", origin="lower", interpolation="nearest", aspect="auto")


def _no_results(axes: Axes) -> None:
    axes.text(0.5, 0.5, "no results yet", color=SOFT, ha="center", va="center", transform=axes.transAxes)


def _draw(axes: Axes, results: Results, one: Experiment, panel: Panel, place: int) -> bool:
    curve = panel.curves[place]
    means = ring_means(results, curve) if panel.across == "offset" else curve_means(results, one, curve)
    number = place if curve.colour is None else curve.colour
    colour = SOFT if curve.reference else COLOURS[number % len(COLOURS)]
    if not means:
        axes.plot([], [], color=colour, linewidth=1.2, alpha=0.5, label=f"{curve.label} (no result)")
        return False
    places = sorted(means)
    values = np.array([means[at].mean for at in places])
    axes.plot(
        places,
        values,
        color=colour,
        marker="" if curve.reference else MARKERS[(place if curve.dashed else number) % len(MARKERS)],
        markersize=3.5,
        linewidth=1.4 if curve.reference else 1.8,
        linestyle=GREY[number % len(GREY)] if curve.reference else DASHED if curve.dashed else "-",
        label=curve.label,
    )
    spread = np.array([means[at].std or 0.0 for at in places])
    if spread.any():
        axes.fill_between(places, values - spread, values + spread, color=colour, alpha=0.15, linewidth=0)
    return True


PANELS = {"curves": draw_curves, "samples": draw_curves, "placed": draw_curves, "selection": draw_selection}
"""What draws a panel of each kind of figure (`Renderer`)."""
