"""What a detector finds: one object, its box and how sure the network is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Detection:
    """One object."""

    box: tuple[float, float, float, float]
    """x0, y0, x1, y1 in pixel-centre coordinates."""
    label: int
    """The class, counted from 0 without the background: its name is `detector.classes[label]`."""
    probability: float
    """Of an object of this class."""
    scale: float
    """The object's size: the longer side of its box over that of an object which fits channel 1."""
    at_edge: bool
    """Whether the deciding channel is the first or last of the grid: the object may be smaller or larger."""
    object_probability: float
    """Of an object of any class. The class itself, given an object, has probability / object_probability."""


def enlarged(one: Detection, factor: int, seen: Sequence[int], shape: Sequence[int]) -> Detection:
    """An object found in a reduced image (C, h, w), in pixels of the whole (C, H, W)."""
    right, down = reduced_from(factor, seen, shape)
    x0, y0, x1, y1 = (edge * factor for edge in one.box)
    box = (x0 + right, y0 + down, x1 + right, y1 + down)
    return replace(one, box=box, scale=one.scale * factor)


def reduced_from(factor: int, seen: Sequence[int], shape: Sequence[int]) -> tuple[float, float]:
    """Where the first pixel of a reduced image (C, h, w) lies in the whole (C, H, W): x and y."""
    down, right = (
        (whole - 1 - factor * (side - 1)) / 2 for side, whole in zip(seen[1:], shape[1:], strict=True)
    )
    return right, down
