"""Pictures without objects, made up: what a detector has to stay quiet on beside the user's own images.

Three kinds, each of random strength and coarseness, which together have what photographs have: shapes that
cover one another (edges, corners, round and straight ones, at all sizes), noise whose contrast is the same at
all sizes, and stripes. Limit: they are no photographs; a detector that still takes these for objects needs
some among its images, without boxes.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

SHAPES = 120
"""That cover one another in a picture."""


def texture(channels: int, side: int, generator: torch.Generator) -> Tensor:
    """A picture (C, side, side) from 0 to 1."""
    kind = int(torch.randint(4, (), generator=generator))
    makers = (leaves, leaves, cloud, stripes)
    picture = makers[kind](side, generator).expand(3, -1, -1)
    if kind > 1 or channels == 3:  # a colour of its own for dark and for bright
        ends = torch.rand(2, 3, 1, 1, generator=generator)
        tint = float(torch.rand((), generator=generator)) ** 2
        picture = picture * (1 - tint) + tint * (ends[0] + (ends[1] - ends[0]) * picture)
    noise = torch.randn(3, side, side, generator=generator) * 0.06 * _uniform(generator) ** 2
    picture = (picture + noise).clamp(0, 1)
    return picture if channels == 3 else picture.mean(0, keepdim=True)


def _uniform(generator: torch.Generator, low: float = 0.0, high: float = 1.0) -> float:
    return low + (high - low) * float(torch.rand((), generator=generator))


def leaves(side: int, generator: torch.Generator) -> Tensor:
    """Discs, rectangles and half-planes of all sizes, each plain, shaded or rough, the last ones on top."""
    y, x = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    rough = cloud(side, generator)[0]
    picture = torch.full((side, side), _uniform(generator))
    for _ in range(SHAPES):
        size = 0.02 * side * 2 ** _uniform(generator, 0, 5)
        angle = _uniform(generator, 0, 2 * math.pi)
        row, column = _uniform(generator, 0, side), _uniform(generator, 0, side)
        reach = int(size * 1.5) + 1
        top, left = max(int(row) - reach, 0), max(int(column) - reach, 0)
        part = (slice(top, int(row) + reach + 1), slice(left, int(column) + reach + 1))
        down, across = y[part] - row, x[part] - column
        along = across * math.cos(angle) + down * math.sin(angle)
        beside = down * math.cos(angle) - across * math.sin(angle)
        stretch = 2 ** _uniform(generator, -1, 0)
        if _uniform(generator) < 0.4:
            inside = (along**2 + (beside / stretch) ** 2) < size**2
        else:
            inside = (along.abs() < size) & (beside.abs() < size * stretch)
        value = _uniform(generator) + _uniform(generator, -0.3, 0.3) * along / size
        value = value + _uniform(generator, 0, 0.8) * (_uniform(generator) < 0.5) * (rough[part] - 0.5)
        picture[part] = torch.where(inside, value, picture[part])
    soft = _uniform(generator, 0, 0.3)
    for axis in (0, 1):
        picture = picture * (1 - 2 * soft) + soft * (picture.roll(1, axis) + picture.roll(-1, axis))
    return picture.clamp(0, 1)[None]


def cloud(side: int, generator: torch.Generator) -> Tensor:
    """Noise of as much contrast in every octave, or more in the coarse ones."""
    decay = 2 ** -_uniform(generator, -0.3, 1)
    picture, strength = torch.zeros(1, 1, side, side), 1.0
    cells = 2
    while cells <= side // 2:
        noise = torch.randn(1, 1, cells + 3, cells + 3, generator=generator)
        grown = F.interpolate(noise, size=(side + 8, side + 8), mode="bicubic", align_corners=False)
        picture = picture + strength * grown[..., 4 : side + 4, 4 : side + 4]
        cells, strength = cells * 2, strength * decay
    contrast = _uniform(generator, 0.05, 0.35)
    level = _uniform(generator, 0.2, 0.8)
    return (level + contrast * picture[0] / picture.std().clamp_min(1e-6)).clamp(0, 1)


def stripes(side: int, generator: torch.Generator) -> Tensor:
    """Waves of one direction or two crossing, hard or soft, bent a little."""
    y, x = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    bent = 0.15 * side * _uniform(generator) ** 3 * (cloud(side, generator)[0] - 0.5)
    waves = torch.zeros(side, side)
    for _ in range(1 + int(_uniform(generator) < 0.5)):
        angle, length = _uniform(generator, 0, math.pi), 4 * 2 ** _uniform(generator, 0, 4.5)
        phase = (x * math.cos(angle) + y * math.sin(angle) + bent) * (2 * math.pi / length)
        waves = waves + (phase.sin() * 10 ** _uniform(generator, -0.3, 1)).tanh()
    contrast = _uniform(generator, 0.05, 0.4)
    return (_uniform(generator, 0.3, 0.7) + contrast * waves)[None].clamp(0, 1)
