"""Figures that show images: samples of the data, foveated windows, and a network's output code.

What they are drawn from is made once, from downloaded data and a trained network. It is kept as small files
with the results, so that the figures can be drawn anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from scalechannels.data.decoding import decode
from scalechannels.data.mnist_large_scale import large_scale
from scalechannels.data.pictures import as_picture, as_shown, is_grey, to_tensor
from scalechannels.data.rescaled_cifar10 import CLASSES, rescale_cifar10
from scalechannels.data.sizes import CIFAR_SIZES, MNIST_SIZES
from scalechannels.data.sources import load_cifar10, load_mnist
from scalechannels.files import atomic_path, write_text
from scalechannels.paper.experiments import Experiment
from scalechannels.report.theme import INK, LINE, SOFT, blank, fraction, size_axis
from scalechannels.sampling import Foveate
from scalechannels.saving.saved_network import load
from scalechannels.scales import ScaleGrid
from scalechannels.training.fit import fit

DIGIT = 1
"""Which test digit is shown: the second one, a 2, as in the paper's illustration."""
CIFAR_SHOWN = ("frog", "truck")
CODE_SIZES = (1.0, 2.0, 4.0)
"""The sizes whose output codes are shown."""
RINGS = ("#d1495b", "#edae49", "#2a9d5b", "#1f6fd0", "#9b59b6")
"""The colours of the windows σ = 1/2, 1, 2, 4 in the image; 8 is larger than the image."""
WIDTH = 9.0
"""Inches."""


def make_pictures(
    experiments: Sequence[Experiment],
    runs: Path,
    folder: Path,
    device: str,
    options: dict[str, Any],
    say: Callable[[str], None],
) -> None:
    """Make what these experiments show and is not there yet."""
    for experiment in experiments:
        if experiment.id not in IMAGES or (path := folder / IMAGES[experiment.id].file).exists():
            continue
        IMAGES[experiment.id].make(path, options, experiment, runs, device)
        say(f"  {path}")


def write_digits(path: Path, options: dict[str, Any], *_: Any) -> None:
    write_strip(path, as_shown(mnist_samples(options.get("root"))))


def write_photos(path: Path, options: dict[str, Any], *_: Any) -> None:
    """A frog and a truck at nine factors: (2, 9, 3, 32, 32), 0 to 1."""
    data = load_cifar10(options.get("root"))
    first = [int((data.test_labels == CLASSES.index(name)).nonzero()[0]) for name in CIFAR_SHOWN]
    images = [rescale_cifar10(data.test_images[first], factor) for factor in CIFAR_SIZES]
    write_strip(path, torch.stack(images, 1))


def mnist_samples(root: Path | None) -> Tensor:
    """One digit at all 17 sizes: (1, 17, 1, 112, 112)."""
    digit = load_mnist(root).test_images[DIGIT : DIGIT + 1]
    return torch.stack([large_scale(digit, size) for size in MNIST_SIZES], 1)


def write_strip(path: Path, images: Tensor) -> None:
    """Images (rows, columns, C, H, W), 0 to 1, side by side in one PNG, pixel for pixel."""
    R, N, C, H, W = images.shape
    pixels = images.permute(2, 0, 3, 1, 4).reshape(C, R * H, N * W)
    with atomic_path(path) as temporary:
        as_picture(pixels).save(temporary, format="PNG", optimize=True)


def read_strip(path: Path, side: int) -> Tensor:
    """The images (rows, columns, C, side, side) of such a PNG, 0 to 1."""
    image, _ = decode(path)
    pixels = to_tensor(image, is_grey(image))  # (C, H, W)
    return pixels.unfold(1, side, side).unfold(2, side, side).movedim(0, 2)


def write_code(path: Path, options: dict[str, Any], experiment: Experiment, runs: Path, device: str) -> None:
    """Every channel's logits of one digit at several sizes, by the experiment's network."""
    (config,) = experiment.runs(1)
    (run,) = fit([config], runs, device=device, **options)
    network: Any = load(run.folder)
    (images,) = mnist_samples(options.get("root"))  # (17, 1, 112, 112)
    with torch.inference_mode():
        found = network.explain(images)
    assert found.channels is not None  # (17, S, K)
    result = {
        "run": run.config.name,
        "scales": list(network.grid),
        "sizes": list(MNIST_SIZES),
        "winner": found.logits.argmax(1).tolist(),
        "logits": [[[round(v, 4) for v in row] for row in image] for image in found.channels.tolist()],
    }
    write_text(path, json.dumps(result) + "\n")


def sizes_figure(path: Path, side: int, height: float, **how: Any) -> Figure:
    """The images of a strip under their sizes, in two rows of nine: one digit at the 17 sizes, from 1/2 at
    the top left to 8 at the bottom right, or a frog and a truck at nine factors."""
    strip = read_strip(path, side)  # (1, 17, 1, 112, 112) or (2, 9, 3, 32, 32)
    sizes = MNIST_SIZES if len(strip) == 1 else 2 * CIFAR_SIZES
    figure = blank(WIDTH, height)
    plots = list(figure.subplots(2, 9).flat)
    for plot in plots:
        plot.set_axis_off()
    for plot, image, size in zip(plots, strip.flatten(0, 1), sizes, strict=False):
        plot.imshow(image.movedim(0, -1).numpy(), cmap="gray", vmin=0, vmax=1, **how)
        plot.set_title(fraction(round(size, 3)), fontsize=8, color=SOFT, pad=3)
    return figure


def windows_figure(path: Path) -> Figure:
    """A digit, the regions that five channels see of it, and what each of them sees: 28 by 28 pixels."""
    digit = read_strip(path, 112)[0, MNIST_SIZES.index(2.0)]  # (1, 112, 112)
    grid = ScaleGrid(0.5, 8, ratio=2)
    windows = Foveate(grid)(digit[None])[0, :, 0]  # (S, 28, 28)
    figure = blank(WIDTH, 2.1)
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
    figure = blank(WIDTH, 2.8)
    winner = max(set(code["winner"]), key=code["winner"].count)
    logits = dict(zip(code["sizes"], code["logits"], strict=True))
    curves = {size: [row[winner] for row in logits[size]] for size in CODE_SIZES}
    top = max(max(curve) for curve in curves.values())
    bottom = min(0.0, *(min(curve) for curve in curves.values()))
    for plot, (size, curve), colour in zip(
        figure.subplots(1, len(curves), sharey=True), curves.items(), RINGS[1:], strict=False
    ):
        size_axis(plot, code["scales"], "scale channel σ")
        plot.fill_between(code["scales"], curve, 0, color=colour, alpha=0.2, linewidth=0)
        plot.plot(code["scales"], curve, color=colour, marker="o", markersize=3.5)
        plot.axhline(max(curve), color=SOFT, linewidth=1, linestyle=(0, (4, 2)))
        plot.axhline(0, color=LINE, linewidth=1)
        plot.axvline(size, color=SOFT, linewidth=1, linestyle=(0, (1, 2)))
        plot.set_ylim(bottom - 1, top * 1.12)
        plot.set_title(f"the digit {winner} at size {fraction(size)}", fontsize=10, color=INK)
    figure.axes[0].set_ylabel("logit of its class", color=SOFT)
    return figure


class Image(NamedTuple):
    """A figure of images: the file that it is drawn from, what makes this file, and what draws the figure."""

    file: str
    make: Callable[[Path, dict[str, Any], Experiment, Path, str], None]
    draw: Callable[[Path], Figure]


IMAGES = {
    "figure2": Image("mnist.png", write_digits, windows_figure),
    "figure3": Image("code.json", write_code, code_figure),
    "figure4": Image("mnist.png", write_digits, partial(sizes_figure, side=112, height=2.5)),
    "figure14": Image(
        "cifar10.png", write_photos, partial(sizes_figure, side=32, height=2.3, interpolation="nearest")
    ),
}
"""The figures of images by their ids."""
