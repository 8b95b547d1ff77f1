"""The coordinate formula of foveation in plain loops: slow, obvious, the oracle of the tests."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from scalechannels.sampling import Outside
from scalechannels.scales import ScaleGrid


def foveate(
    images: Tensor,
    grid: ScaleGrid,
    window: int,
    *,
    outside: Outside = "border",
    fill: float = 0.0,
    antialias: bool = False,
    centres: Tensor | None = None,
) -> Tensor:
    """Images (B, C, H, W) to windows (B, S, C, n, n), one output value at a time, in float64."""
    B, C, H, W = images.shape
    stack = torch.zeros(B, len(grid), C, window, window, dtype=torch.float64)
    for b in range(B):
        row, column = ((H - 1) / 2, (W - 1) / 2) if centres is None else centres[b].tolist()
        for s, sigma in enumerate(grid):
            half_width = max(1.0, sigma) if antialias else 1.0
            for i in range(window):
                y = row + sigma * (i - (window - 1) / 2)
                for j in range(window):
                    x = column + sigma * (j - (window - 1) / 2)
                    for c in range(C):
                        stack[b, s, c, i, j] = _value_at(
                            images[b, c].double().tolist(), y, x, half_width, outside, fill
                        )
    return stack


def _value_at(
    image: list[list[float]], y: float, x: float, half_width: float, outside: Outside, fill: float
) -> float:
    """The triangle-weighted mean of the pixels around (y, x); half-width 1 is bilinear interpolation."""
    total = weight = 0.0
    for i in range(math.ceil(y - half_width), math.floor(y + half_width) + 1):
        for j in range(math.ceil(x - half_width), math.floor(x + half_width) + 1):
            w = (1 - abs(y - i) / half_width) * (1 - abs(x - j) / half_width)
            total += w * _pixel(image, i, j, outside, fill)
            weight += w
    return total / weight


def _pixel(image: list[list[float]], i: int, j: int, outside: Outside, fill: float) -> float:
    height, width = len(image), len(image[0])
    if outside == "border":
        return image[min(max(i, 0), height - 1)][min(max(j, 0), width - 1)]
    if outside == "reflect":
        return image[_reflected(i, height)][_reflected(j, width)]
    return image[i][j] if 0 <= i < height and 0 <= j < width else fill


def _reflected(i: int, size: int) -> int:
    while not 0 <= i < size:  # 3 2 1 | 0 1 2 3 | 2 1 0: the edge pixel is not repeated
        if size == 1:
            return 0
        i = -i if i < 0 else 2 * (size - 1) - i
    return i
