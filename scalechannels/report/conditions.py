"""The conditions under which candidates are compared: other sizes, off the centre, in other surroundings.

Each makes of a held-out image the picture that `predict` would be given. How an image arrives at another size
depends on what the images are:

    crops      the crop grows and shrinks with its object
    frames     the frame stays; a smaller object has more around it, a larger one is cropped; far off the
               centre it keeps its place, as far as that is inside

Limit: pictures are made by resampling. What new surroundings would really look like, nobody knows here:
beyond the image its edges are repeated, and `surroundings` shows what that hides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from scalechannels.data.frames import framed, rescaled
from scalechannels.data.standing_out import at_size
from scalechannels.data.survey import Images

Group = Literal["size", "offset", "surroundings"]
STEPS = 2
"""Test sizes of an octave."""
OFFSETS = (1 / 14, 1 / 7, 2 / 7)
"""Off the centre along both axes, as shares of the object: 2, 4 and 8 of 28 pixels."""
SURROUNDINGS = ("repeated edges", "plain grey", "clouds")
LOOSE = 1.5
"""A loose crop has so many times the side of the image; in a frame, the object is as many times smaller."""


@dataclass(frozen=True)
class Condition:
    """One way in which later images may differ from those of training."""

    group: Group
    value: float
    """The size, the offset as a share of the object, or the place in `SURROUNDINGS`."""

    def scored(self, images: Images) -> bool:
        """Whether it counts in the choice: all sizes, and small offsets.

        In frames up to a seventh of the object; in crops half as much, as later ones are to be as tight.
        """
        furthest = OFFSETS[0] if images == "crops" else OFFSETS[1]
        return self.group == "size" or (self.group == "offset" and self.value <= furthest)


def conditions(low: float, high: float, sizes: Sequence[float] | None = None) -> list[Condition]:
    """All of them for objects of `low` to `high` times their size, or of these sizes."""
    if sizes is None:
        first, last = (math.log2(end) * STEPS for end in (low, high))
        steps = range(math.ceil(first - 1e-6), math.floor(last + 1e-6) + 1)
        within = {2 ** (step / STEPS) for step in steps} | {1.0}
        ends = {end for end in (low, high) if min(abs(end / size - 1) for size in within) > 0.05}
        sizes = sorted(within | ends)
    return [
        *(Condition("size", size) for size in sizes),
        *(Condition("offset", offset) for offset in OFFSETS),
        *(Condition("surroundings", float(kind)) for kind in range(len(SURROUNDINGS))),
    ]


def picture(image: Tensor, condition: Condition, images: Images, object_pixels: float, number: int) -> Tensor:
    """What a network is given of an image (C, H, W) from 0 to 1; `number` draws directions and clouds."""
    height, width = image.shape[1:]
    if condition.group == "size":
        if images == "crops":
            return rescaled(image, condition.value)
        return at_size(image, condition.value)
    if condition.group == "offset":
        return moved(image, max(1, round(condition.value * object_pixels)), number)
    if images == "crops":
        inner, frame = image, (round(LOOSE * height), round(LOOSE * width))
    else:
        inner, frame = rescaled(image, 1 / LOOSE), (height, width)
    kind = SURROUNDINGS[int(condition.value)]
    if kind == "repeated edges":
        return framed(inner, frame)
    ground = torch.full((len(image), *frame), 0.5) if kind == "plain grey" else clouds(image, frame, number)
    top, left = (frame[0] - inner.shape[1]) // 2, (frame[1] - inner.shape[2]) // 2
    ground[:, top : top + inner.shape[1], left : left + inner.shape[2]] = inner
    return ground


def moved(image: Tensor, pixels: int, number: int) -> Tensor:
    """The image with its content moved along both axes, in one of the four diagonal directions."""
    across, down = (pixels if number // k % 2 else -pixels for k in (1, 2))
    around = F.pad(image[None], (pixels,) * 4, mode="replicate")[0]
    height, width = image.shape[1:]
    return around[:, pixels - down : pixels - down + height, pixels - across : pixels - across + width]


def clouds(image: Tensor, frame: tuple[int, int], number: int) -> Tensor:
    """Coarse and fine blots (C, H, W) with about the mean and the contrast of the image."""
    generator = torch.Generator().manual_seed(number)
    made = torch.zeros(len(image), *frame)
    for cells in (4, 12):
        blots = torch.randn(1, len(image), cells, cells, generator=generator)
        made += F.interpolate(blots, size=frame, mode="bicubic", align_corners=False)[0]
    return (image.mean() + made * max(0.1, float(image.std())) / 1.5).clamp(0, 1)
