"""A picture of labelled boxes: some images with every box, its class, and the regions that are ignored."""

from __future__ import annotations

from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from scalechannels.data.boxes.labelled import BoxedImages, LabelledImage
from scalechannels.data.image_files import written
from scalechannels.data.show import panels, save

MOST, SIDE = 6, 900
"""Images on a sheet, and the pixels along the longer side of each."""
COLOURS = (
    "tab:orange",
    "tab:cyan",
    "tab:pink",
    "tab:olive",
    "tab:red",
    "tab:blue",
    "tab:green",
    "tab:purple",
)


def show_boxes(path: Path | str, boxed: BoxedImages, seed: int = 0) -> Path:
    """Write some of the images as PNG, one below the other: those with most kinds of content first drawn."""
    order = torch.randperm(len(boxed.images), generator=torch.Generator().manual_seed(seed)).tolist()
    order.sort(key=lambda index: len(boxed.images[index].labels) == 0)  # negatives last, else as drawn
    chosen = [boxed.images[index] for index in order[:MOST]]
    pictures = [_shrunk(image, boxed.grey) for image in chosen]
    figure, all_axes = panels([picture.shape[1:] for picture, _ in pictures], left=16, top=30)
    for axes, image, (picture, factor) in zip(all_axes, chosen, pictures, strict=True):
        axes.imshow(picture.expand(3, -1, -1).movedim(0, -1).numpy())
        count = "no objects" if len(image.labels) == 0 else f"{len(image.labels)} objects"
        size = f"{image.width} x {image.height} pixels"
        axes.set_title(f"{written(image.path.name)}: {count}, {size}", fontsize=10, pad=4)
        axes.set_axis_off()
        for box, label in zip(image.boxes.tolist(), image.labels.tolist(), strict=True):
            _draw(axes, box, factor, COLOURS[label % len(COLOURS)], boxed.classes[label])
        for box in image.ignored.tolist():
            _draw(axes, box, factor, "white", "ignored", dashed=True)
    return save(figure, path)


def summary(boxed: BoxedImages) -> str:
    """What there is, in lines: classes with their counts and sizes, and the images without boxes."""
    labels = torch.cat([image.labels for image in boxed.images])
    width = max(5, *map(len, boxed.classes))
    lines = [f"{'class':<{width}}  objects  longer side in pixels"]
    for label, name in enumerate(boxed.classes):
        own = boxed.sizes[labels == label]
        spread = f"{own.min():.0f} to {own.max():.0f}, median {own.median():.0f}" if len(own) else "–"
        lines.append(f"{name:<{width}}  {len(own):>7}  {spread}")
    empty = sum(len(image.labels) == 0 for image in boxed.images)
    ignored = sum(len(image.ignored) for image in boxed.images)
    kind = "grey" if boxed.grey else "colour"
    number = len(boxed.images)
    plural = "image" if number == 1 else "images"
    lines.append(f"{number} {plural} ({kind}), {empty} without objects; {ignored} ignored regions")
    return "\n".join(lines)


def _shrunk(image: LabelledImage, grey: bool) -> tuple[Tensor, float]:
    """The picture (C, h, w), made smaller where it is large, and by which factor."""
    picture = image.read(grey)
    factor = min(1.0, SIDE / max(picture.shape[1:]))
    if factor < 1:
        height, width = (max(1, round(side * factor)) for side in picture.shape[1:])
        picture = torch.nn.functional.interpolate(picture[None], (height, width), mode="area")[0]
    return picture, factor


def _draw(
    axes: Axes, box: list[float], factor: float, colour: str, label: str, *, dashed: bool = False
) -> None:
    x0, y0, x1, y1 = ((edge + 0.5) * factor - 0.5 for edge in box)
    style = "--" if dashed else "-"
    axes.add_patch(
        Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor=colour, linewidth=1, linestyle=style)
    )
    below = y0 < 12  # a caption above the box would leave the image
    at = (x0, y1 + 2, "top") if below else (x0, y0 - 2, "bottom")
    axes.text(*at[:2], label, va=at[2], fontsize=7, color=colour, clip_on=True)
