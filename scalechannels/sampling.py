"""Samples of an image at any positions along its two axes, exact in images of any size.

The conventions are those of `foveate` (bilinear or anti-aliased, border, reflect or constant); the positions
here are float64 whatever the image is, and only the pixels that are needed are touched, so that a tile of a
large image costs what a small image costs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from scalechannels.foveate import Outside, _fold


class Taps(NamedTuple):
    """Which pixels of an axis each sample reads, and with what weight."""

    pixels: Tensor  # (m, T) int64
    weight: Tensor  # (m, T) of the image's type; 0 where a constant takes the pixel's place


def taps(
    positions: Tensor,
    sigma: float,
    size: int,
    *,
    outside: Outside = "border",
    antialias: bool = False,
    dtype: torch.dtype = torch.float32,
) -> Taps:
    """The taps of samples at `positions` (m,) float64, spaced σ apart, along an axis of `size` pixels."""
    width = max(1.0, sigma) if antialias else 1.0
    reach = torch.arange(math.ceil(2 * width) + 1 if width > 1 else 2, device=positions.device)
    first = (positions - width).floor() if width > 1 else positions.floor()
    index = first.long()[:, None] + reach  # (m, T)
    weight = (1 - (positions[:, None] - index).abs() / width).clamp_min(0)
    weight = weight / weight.sum(1, keepdim=True)
    if outside == "constant":
        weight = weight * ((index >= 0) & (index < size))
    return Taps(_fold(index, size, outside), weight.to(dtype))


def sample(image: Tensor, rows: Taps, columns: Taps, *, outside: Outside, fill: float = 0.0) -> Tensor:
    """The image (C, H, W) at the product of two axes of samples: (C, h, w)."""
    if not torch.compiler.is_compiling():  # an exported graph knows no pixel numbers
        (top, bottom), (left, right) = (
            (int(axis.pixels.min()), int(axis.pixels.max()) + 1) for axis in (rows, columns)
        )
        image = image[:, top:bottom, left:right]
        rows, columns = Taps(rows.pixels - top, rows.weight), Taps(columns.pixels - left, columns.weight)
    if outside == "constant":
        image = image - fill  # so that a weight of zero stands for the constant
    image = _along(image, rows, 1)
    image = _along(image, columns, 2)
    return image + fill if outside == "constant" else image


def _along(image: Tensor, axis: Taps, dimension: int) -> Tensor:
    shape = (-1, 1) if dimension == 1 else (1, -1)
    total: Tensor | None = None
    for tap in range(axis.pixels.shape[1]):
        part = image.index_select(dimension, axis.pixels[:, tap]) * axis.weight[:, tap].view(shape)
        total = part if total is None else total.add_(part)
    assert total is not None
    return total
