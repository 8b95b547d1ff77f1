"""Figures that show images: samples of the data, foveated windows, and a network's output code.

Each is drawn from the file that `image_files` made for it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalechannels.data.sizes import CIFAR_SIZES, MNIST_SIZES
from scalechannels.paper.figures.image_files import read_strip
from scalechannels.report.theme import INK, LINE, PANEL, SOFT, fraction, size_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CODE_SIZES = (1.0, 2.0, 4.0)
"""The sizes whose output codes are shown."""
RINGS = ("#d1495b", "#edae49", "#2a9d5b", "#1f6fd0", "#9b59b6")
"""The colours of the windows σ = 1/2, 1, 2, 4 in the image; 8 is larger than the image."""


def mnist_figure(path: Path) -> Figure:
    """One digit at the 17 sizes, from 1/2 at the top left to 8 at the bottom right."""
    (images,) = read_strip(path, 112)  # (17, 1, 112, 112)
    figure = _figure(2.5)
    plots = list(figure.subplots(2, 9).flat)
    for plot in plots:
        plot.set_axis_off()
    for plot, image, size in zip(plots, images, MNIST_SIZES, strict=False):
        plot.imshow(image[0].numpy(), cmap="gray", vmin=0, vmax=1)
        _name(plot, size)
    return figure


def cifar_figure(path: Path) -> Figure:
    """A frog and a truck at nine factors."""
    rows = read_strip(path, 32)  # (2, 9, 3, 32, 32)
    figure = _figure(2.3)
    for row, line in zip(figure.subplots(2, 9), rows, strict=True):
        for plot, image, factor in zip(row, line, CIFAR_SIZES, strict=True):
            plot.set_axis_off()
            plot.imshow(image.movedim(0, -1).numpy(), interpolation="nearest")
            _name(plot, factor)
    return figure


def windows_figure(path: Path) -> Figure:
    """A digit, the regions that five channels see of it, and what each of them sees: 28 by 28 pixels."""
    from matplotlib.patches import Rectangle

    from scalechannels.sampling import Foveate
    from scalechannels.scales import ScaleGrid

    digit = read_strip(path, 112)[0, MNIST_SIZES.index(2.0)]  # (1, 112, 112)
    grid = ScaleGrid(0.5, 8, ratio=2)
    windows = Foveate(grid)(digit[None])[0, :, 0]  # (S, 28, 28)
    figure = _figure(2.1)
    plots = figure.subplots(1, 1 + len(grid), width_ratios=[1.35] + [1] * len(grid))
    for plot in plots:
        plot.set_axis_off()
    plots[0].imshow(digit[0].numpy(), cmap="gray", vmin=0, vmax=1)
    plots[0].set_title("image, 112 × 112", fontsize=8, color=SOFT, pad=3)
    for sigma, colour, plot, window in zip(grid, RINGS, plots[1:], windows, strict=True):
        side = 28 * sigma
        if side <= 112:
            corner = (111 - side) / 2
            plots[0].add_patch(Rectangle((corner, corner), side, side, fill=False, edgecolor=colour, lw=1.6))
        plot.imshow(window.numpy(), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        plot.add_patch(Rectangle((-0.5, -0.5), 28, 28, fill=False, edgecolor=colour, lw=2.5))
        plot.set_title(f"σ = {fraction(sigma)}: {side:g} pixels as 28", fontsize=8, color=SOFT, pad=3)
    return figure


def code_figure(path: Path) -> Figure:
    """The logit of the winning class in every channel, for one digit at three sizes."""
    code: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    figure = _figure(2.8)
    winner = max(set(code["winner"]), key=code["winner"].count)
    curves = {}
    for size in CODE_SIZES:
        index = min(range(len(code["sizes"])), key=lambda i: abs(code["sizes"][i] - size))
        curves[size] = [row[winner] for row in code["logits"][index]]
    top = max(max(curve) for curve in curves.values())
    bottom = min(0.0, *(min(curve) for curve in curves.values()))
    for plot, (size, curve), colour in zip(
        figure.subplots(1, len(curves), sharey=True), curves.items(), RINGS[1:], strict=False
    ):
        size_axis(plot, code["scales"])
        plot.set_facecolor(PANEL)
        plot.fill_between(code["scales"], curve, 0, color=colour, alpha=0.2, linewidth=0)
        plot.plot(code["scales"], curve, color=colour, marker="o", markersize=3.5)
        plot.axhline(max(curve), color=SOFT, linewidth=1, linestyle=(0, (4, 2)))
        plot.axhline(0, color=LINE, linewidth=1)
        plot.axvline(size, color=SOFT, linewidth=1, linestyle=(0, (1, 2)))
        plot.set_ylim(bottom - 1, top * 1.12)
        plot.set_title(f"the digit {winner} at size {fraction(size)}", fontsize=10, color=INK)
        plot.set_xlabel("scale channel σ", color=SOFT)
    figure.axes[0].set_ylabel("logit of its class", color=SOFT)
    return figure


def _figure(height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(9.0, height), facecolor=PANEL, layout="constrained")


def _name(plot: Axes, size: float) -> None:
    plot.set_title(fraction(round(size, 3)), fontsize=8, color=SOFT, pad=3)
