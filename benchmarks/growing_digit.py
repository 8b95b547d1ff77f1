"""The animation of docs/how_it_works.md: a digit grows, and the channel that decides moves with it.

python -m benchmarks.growing_digit   # writes docs/images/growing-digit.webp, the same every time
"""

from __future__ import annotations

import io
from pathlib import Path

import torch
from matplotlib.patches import Rectangle
from PIL import Image
from torch import Tensor

from scalechannels import Explanation, ScaleChannelNetwork, load
from scalechannels.data.strokes import Strokes, strokes
from scalechannels.report.theme import FIRST, INK, LINE, SECOND, SOFT, bare, blank, fraction

PICTURE = Path(__file__).parents[1] / "docs/images/growing-digit.webp"
DIGIT, SIDE = 3, 112
SIZES = tuple(0.75 * 2 ** (k / 8) for k in range(4, 21))
"""Of the digit, relative to MNIST's: it grows from 1.06 to 4.2 times, where it still fits the image."""
SHOWN = (2, 6, 10, 14)
"""The channels whose windows are drawn."""
MILLISECONDS = 160


def digit() -> Strokes:
    """The first test digit of its class: one that no network has learnt."""
    drawn = strokes(100, split="test")
    return drawn[(drawn.labels == DIGIT).nonzero()[0]]


def looked_at(network: ScaleChannelNetwork) -> tuple[Tensor, Tensor, Explanation]:
    """The images (F, 1, H, W) of all frames, the windows (F, S, 1, n, n), and what the network says."""
    one = digit()
    images = torch.cat([one.render(size, SIDE) for size in SIZES])
    with torch.no_grad():
        return images, network.foveate(images), network.explain(images)


def frame(
    image: Tensor, windows: Tensor, shares: Tensor, answer: int, size: float, scales: list[float]
) -> Image.Image:
    """One picture: the image with the windows of some channels, what these see, and all contributions."""
    figure = blank(7.2, 3.9)
    grid = figure.add_gridspec(2, 1 + len(SHOWN), width_ratios=(2.1, *(1 for _ in SHOWN)))
    low, high = float(image.min()), float(image.max())
    whole = figure.add_subplot(grid[:, 0])
    whole.imshow(image[0], cmap="gray", vmin=low, vmax=high)
    whole.set_title(f"size {size:.2f}: it reads {answer}", color=INK, fontsize=11)
    strongest = int(shares.argmax())
    side = windows.shape[-1]
    for place, channel in enumerate(SHOWN):
        colour = SECOND if abs(channel - strongest) <= 1 else FIRST
        extent = scales[channel] * side
        corner = (SIDE - 1 - extent) / 2
        whole.add_patch(
            Rectangle((corner, corner), extent, extent, fill=False, edgecolor=colour, linewidth=1.4)
        )
        view = figure.add_subplot(grid[0, 1 + place])
        view.imshow(windows[channel, 0], cmap="gray", vmin=low, vmax=high)
        view.set_title(f"σ = {scales[channel]:.2g}", color=colour, fontsize=10)
        view.set_axis_off()
    whole.set(xlim=(-0.5, SIDE - 0.5), ylim=(SIDE - 0.5, -0.5))
    whole.set_axis_off()
    bars = figure.add_subplot(grid[1, 1:])
    colours = [SECOND if channel == strongest else FIRST for channel in range(len(scales))]
    bars.bar(range(len(scales)), shares, color=colours)
    bars.axhline(0, color=LINE, linewidth=1)
    bars.set(ylim=(0, 1), yticks=[])
    bars.set_xticks(range(0, len(scales), 4), [fraction(scales[k]) for k in range(0, len(scales), 4)])
    bars.set_title("contribution of each channel σ", color=SOFT, fontsize=10)
    bare(bars, labelsize=9)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    return Image.open(buffer).convert("RGB")


def draw(picture: Path = PICTURE) -> Path:
    """The animation as a WebP that grows and shrinks again without end."""
    network = load("fovlse-mnist")
    images, windows, said = looked_at(network)
    assert said.contributions is not None
    answers, scales = said.logits.argmax(1).tolist(), list(network.grid)
    seen = zip(images, windows, said.contributions, answers, SIZES, strict=True)
    frames = [frame(*one, scales) for one in seen]
    first, *others = [*frames, *reversed(frames[1:-1])]
    first.save(
        picture, save_all=True, append_images=others, duration=MILLISECONDS, loop=0, quality=60, method=4
    )
    return picture


if __name__ == "__main__":
    written = draw()
    print(f"{written}: {written.stat().st_size / 1000:.0f} KB")
