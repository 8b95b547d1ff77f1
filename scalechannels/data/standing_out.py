"""What stands out of an image: how large it is, where it lies, and the same image with it at another size.

An object stands out where its pixels differ from the colour of the image's border by more than the border
itself varies. Limit: in a photograph whose background is as lively as the object nothing stands out.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from scalechannels.data.frames import simulated

CONTRAST = 0.1
"""The least difference from the border's colour, of values from 0 to 1."""
FAR = 0.5
"""An object that is off the centre by more of its own size is far off it."""


class Standing(NamedTuple):
    """An object that stands out of its image."""

    extent: float
    """Its longer side as a share of that of its image."""
    offset: float
    """How far it is off the image's centre along the axis where that is more, as a share of that side."""
    centre: tuple[float, float]
    """Its row and its column."""


def standing_out(image: Tensor) -> Standing | None:
    """What stands out of an image (C, H, W); None where nothing does."""
    height, width = image.shape[1:]
    ring = max(1, round(0.05 * max(height, width)))
    inner = torch.zeros(height, width, dtype=torch.bool)
    inner[ring : height - ring, ring : width - ring] = True
    if not inner.any():
        return None
    ground = image[:, ~inner].median(1).values  # (C,)
    differs = (image - ground[:, None, None]).abs().amax(0)  # (H, W)
    stands_out = differs > max(CONTRAST, 1.5 * float(differs[~inner].quantile(0.75)))
    if float(stands_out.float().mean()) < 0.005:
        return None
    ends = [_span(stands_out.sum(axis).double()) for axis in (1, 0)]  # of the rows, and of the columns
    side = max(last - first + 1 for first, last in ends)
    row, column = ((first + last) / 2 for first, last in ends)
    offset = max(abs(row - (height - 1) / 2), abs(column - (width - 1) / 2))
    return Standing(side / max(height, width), offset / side, (row, column))


def at_size(image: Tensor, size: float) -> Tensor:
    """A frame (C, H, W) that stays, with its object at `size` times its size.

    About the image's centre; where an object stands out far from it, about the object, which stays where it
    is or moves inwards until it is inside the frame. Else it would leave the frame as it grows.
    """
    shape = image.shape[1:]
    found = standing_out(image) if size != 1 else None
    if found is None or found.offset <= FAR:
        return simulated(image, size, (shape[0], shape[1]))
    room = [max(0.0, (side - size * found.extent * max(shape)) / 2) for side in shape]
    before = [round(at - (side - 1) / 2) for at, side in zip(found.centre, shape, strict=True)]
    after = [round(min(max(off, -left), left)) for off, left in zip(before, room, strict=True)]
    centred = _moved(image, before)
    wide = [side + 2 * abs(off) for side, off in zip(shape, after, strict=True)]
    made = simulated(centred, size, (wide[0], wide[1]))
    (top, left), (height, width) = (abs(off) - off for off in after), shape
    return made[:, top : top + height, left : left + width]


def _moved(image: Tensor, off: list[int]) -> Tensor:
    """The image, extended by its edges until what was so far off its centre lies there."""
    down, right = (2 * side for side in off)
    around = (max(0, -right), max(0, right), max(0, -down), max(0, down))
    return F.pad(image, around, mode="replicate")


def _span(counts: Tensor) -> tuple[int, int]:
    """The first and last place between which all but 1 % of the counts lie, on either side."""
    shares = counts.cumsum(0) / counts.sum()
    return int((shares < 0.01).sum()), int((shares < 0.99).sum())
