"""Scenes: large images with many objects at random places and sizes, and where and what they are.

An object of size s has a box of side 28 s pixels. The boxes lie wholly inside the image and do not overlap;
sizes are log-uniform in a range. Coordinates are those of the whole library, in which pixel (0, 0) has its
*centre* at (0, 0), and an image of width W reaches from -1/2 to W - 1/2.

The limit: objects are placed by trial, the largest first; a cleverer packing could fit more of them.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from scalechannels.data.image_set import require_one_of
from scalechannels.data.pictures import BACKGROUND, GAIN, MIDDLE, as_shown, png_path
from scalechannels.data.strokes import BOX, strokes
from scalechannels.files import atomic_path, write_text

Background = Literal["plain", "noisy", "textured"]

TRIES = 2000  # places tried for one object before the scene is refused
INK = -BACKGROUND  # of MNIST Large Scale: 0.763
BRIGHTEST = 0.1
"""Of what lies behind objects: darker than ink, so that they stand out."""


@dataclass(frozen=True)
class Scene:
    """One image and its ground truth."""

    image: Tensor  # (1, H, W) float32, -0.76 to 0.76
    boxes: Tensor  # (N, 4) float64: x0, y0, x1, y1 in pixel-centre coordinates
    labels: Tensor  # (N,) int64
    sizes: Tensor  # (N,) float64: the side of a box is 28 times it

    @property
    def centres(self) -> Tensor:
        """Middles of the boxes as rows and columns (N, 2), the form in which foveation takes centres."""
        return (self.boxes[:, :2] + self.boxes[:, 2:]).flip(1) / 2


def scene(
    count: int = 12,
    seed: int = 0,
    *,
    height: int = 512,
    width: int = 768,
    sizes: tuple[float, float] = (0.5, 4.0),
    background: Background | Tensor = "plain",
    objects: Any = None,
) -> Scene:
    """A scene of `count` objects, the same one for the same arguments.

    background: how the scene looks behind the objects, or a picture (height, width) from 0 to 1, darkened.
    objects: `Strokes`, or what draws itself as they do; drawn without repetition where there are enough. By
    default built-in digits of the test split with the scene's seed, so that nothing was seen in training.
    """
    if count < 0:
        raise ValueError(f"count must not be negative; got {count}")
    smallest, largest = sizes
    if not 0 < smallest <= largest < math.inf:
        raise ValueError(f"sizes must be a range (smallest, largest) of positive numbers; got {sizes}")
    if patch_side(largest) > min(height, width):
        raise ValueError(
            f"an object of size {largest:g} needs {patch_side(largest)} pixels, but the scene has "
            f"{height} x {width}; make the scene larger or the sizes smaller"
        )
    if not isinstance(background, Tensor):
        require_one_of(Background, background=background)
    elif background.shape != (height, width):
        raise ValueError(
            f"a picture behind the objects must have the scene's {height} x {width} pixels; got "
            f"{tuple(background.shape)}"
        )
    objects = strokes(max(count, 1), seed, "test") if objects is None else objects
    available = len(objects.labels)
    if not available:
        raise ValueError("objects is empty: at least one object is needed to draw a scene")
    generator = torch.Generator().manual_seed(seed)
    rounds = [torch.randperm(available, generator=generator) for _ in range(math.ceil(count / available))]
    chosen = torch.cat([torch.empty(0, dtype=torch.int64), *rounds])[:count]
    exponents = torch.rand(count, generator=generator, dtype=torch.float64)
    drawn_sizes = smallest * (largest / smallest) ** exponents  # (N,)
    corners = place(drawn_sizes, height, width, generator)  # (N, 2)

    if isinstance(background, Tensor):
        canvas = darkened(background)
    else:
        canvas = backdrop(background, height, width, generator)
    boxes = torch.empty(count, 4, dtype=torch.float64)
    for number, (index, size) in enumerate(zip(chosen.tolist(), drawn_sizes.tolist(), strict=True)):
        side = patch_side(size)
        left, top = corners[number].tolist()
        middle = corners[number] + (side - 1) / 2
        boxes[number] = torch.cat((middle - BOX * size / 2, middle + BOX * size / 2))
        cover = as_shown(objects[index : index + 1].render(size, side)[0, 0])  # 0 background, 1 ink
        canvas[top : top + side, left : left + side].lerp_(torch.full((), INK), cover)
    return Scene(canvas[None], boxes, objects.labels[chosen].clone(), drawn_sizes)


def save_scene(made: Scene, path: Path | str) -> Path:
    """Write a scene as a grey PNG, and its objects beside it as JSON: class, box and size of each.

    The file holds the grey values of MNIST before their arctan, 0 to 255, from which `predict` and `detect`
    make the scene's own values again.
    """
    path = png_path(path)
    grey = (torch.tan(made.image[0].double() * math.pi / 2) / GAIN + MIDDLE).clamp(0, 255)
    with atomic_path(path) as temporary:
        Image.fromarray(grey.round().byte().numpy()).save(temporary, format="png")
    objects = [
        {"class": str(label), "box": [round(edge, 3) for edge in box], "size": round(size, 4)}
        for label, box, size in zip(
            made.labels.tolist(), made.boxes.tolist(), made.sizes.tolist(), strict=True
        )
    ]
    write_text(path.with_suffix(".json"), json.dumps({"objects": objects}, indent=1) + "\n")
    return path


def patch_side(size: float) -> int:
    """Pixels of the square image that holds an object's box, whatever its corner is."""
    return math.ceil(BOX * size)


def place(sizes: Tensor, height: int, width: int, generator: torch.Generator) -> Tensor:
    """Corners (N, 2), x and y, of square patches that lie inside the image and do not overlap."""
    corners = torch.zeros(len(sizes), 2, dtype=torch.int64)
    sides = torch.tensor([patch_side(size) for size in sizes.tolist()], dtype=torch.int64)
    placed: list[int] = []
    for number in sizes.argsort(descending=True).tolist():  # the largest first: they are the hardest to place
        side = int(sides[number])
        room = torch.tensor([width - side + 1, height - side + 1])
        tried = (torch.rand(TRIES, 2, generator=generator, dtype=torch.float64) * room).long()  # (TRIES, 2)
        apart = (tried[:, None] >= corners[placed] + sides[placed, None]) | (
            tried[:, None] + side <= corners[placed]
        )  # (TRIES, placed, 2)
        free = apart.any(2).all(1).nonzero()  # boxes are apart when they are apart in x or in y
        if len(free) == 0:
            raise ValueError(
                f"no place for object {len(placed) + 1} of {len(sizes)} (size {float(sizes[number]):.2f}) in "
                f"{height} x {width} pixels after {TRIES} tries; ask for fewer objects, smaller sizes "
                "or a larger scene"
            )
        corners[number] = tried[free[0, 0]]
        placed.append(number)
    return corners


def darkened(picture: Tensor) -> Tensor:
    """A picture from 0 to 1 as what lies behind objects: white becomes `BRIGHTEST`."""
    return BACKGROUND + (BRIGHTEST - BACKGROUND) * picture


def backdrop(kind: Background, height: int, width: int, generator: torch.Generator) -> Tensor:
    """What lies behind the objects, (height, width); darker than ink everywhere, so objects stand out."""
    canvas = torch.full((height, width), BACKGROUND)
    if kind == "noisy":
        # Twelve uniform numbers for a normal one: uniform ones are the same on every platform.
        noise = torch.stack([torch.rand(height, width, generator=generator) for _ in range(12)]).sum(0) - 6
        return (canvas + 0.12 * noise.abs()).clamp_(max=0.0)
    if kind == "textured":
        texture = torch.zeros(height, width)
        for octave in range(5):  # blobs of 64, 32, 16, 8 and 4 pixels: as many scales as the objects have
            step = 2 ** (6 - octave)
            grid = torch.rand(1, 1, height // step + 2, width // step + 2, generator=generator)
            blobs = F.interpolate(grid, scale_factor=step, mode="bicubic", align_corners=False)[0, 0]
            texture += (blobs[:height, :width] - 0.5) * 0.75**octave
        return (canvas + 0.35 * (texture + 1)).clamp_(BACKGROUND, BRIGHTEST)
    return canvas
