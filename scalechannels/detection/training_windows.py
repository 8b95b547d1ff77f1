"""What a detector learns from: windows onto canvases of digits that all have one size.

    digits (28, 28) of size 1 ──▶ canvas with neighbours, background, noise ──▶ windows of many scales

No digit is ever rescaled: a canvas holds digits of size 1 alone. Windows of a wrong scale or place, as scale
channels have in any image, are background: this makes the score peak in scale and in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from scalechannels.data.pictures import BACKGROUND
from scalechannels.data.strokes import BOX
from scalechannels.sampling import grid_lattice

CELLS, PITCH = 5, 36  # a canvas has 5x5 places of 36 pixels, each with at most one digit of 28
SIDE = CELLS * PITCH
# Overlap (IoU) up to which a window is background, and from which it is an object.
NO_OBJECT, OBJECT = 0.45, 0.72


class Digits(NamedTuple):
    """Digits of size 1 as shares of ink."""

    cover: Tensor  # (N, 28, 28), 0 background to 1 ink
    labels: Tensor  # (N,) int64


class Canvases(NamedTuple):
    images: Tensor  # (B, 1, SIDE, SIDE)
    middles: Tensor  # (B, CELLS², 2) rows and columns of the digits' centres
    labels: Tensor  # (B, CELLS²), -1 where there is no digit


Behind = Callable[[int, torch.Generator], Tensor]


def canvases(
    digits: Digits, count: int, generator: torch.Generator, pictured: Behind | None = None
) -> Canvases:
    """Digits at random places, not overlapping, up to touching; some canvases are nearly empty.

    pictured   gives other backgrounds (B, SIDE, SIDE) for a third of them
    """
    places = CELLS**2
    density = torch.rand(count, 1, generator=generator)
    present = torch.rand(count, places, generator=generator) < density  # (B, places)
    chosen = torch.randint(len(digits.labels), (count, places), generator=generator)
    corners = torch.randint(PITCH - BOX + 1, (count, places, 2), generator=generator)
    steps = torch.arange(BOX)
    cells = torch.zeros(count, places, PITCH, PITCH)
    rows, columns = corners[..., 0, None] + steps, corners[..., 1, None] + steps  # (B, places, 28)
    batch, place = torch.arange(count)[:, None, None, None], torch.arange(places)[:, None, None]
    cells[batch, place, rows[..., :, None], columns[..., None, :]] = (
        digits.cover[chosen] * present[..., None, None]
    )
    cover = cells.view(count, CELLS, CELLS, PITCH, PITCH).transpose(2, 3).reshape(count, SIDE, SIDE)
    cover = cover * (1 - 0.3 * torch.rand(count, 1, 1, generator=generator))  # less contrast
    behind = backgrounds(count, generator)
    if pictured is not None:
        behind[: count // 3] = pictured(count // 3, generator)
    images = behind + cover * (-BACKGROUND - behind)  # ink over background, as scenes do it
    index = torch.arange(CELLS) * PITCH
    origin = torch.stack(torch.meshgrid(index, index, indexing="ij"), -1).view(places, 2)
    middles = origin + corners + (BOX - 1) / 2
    labels = torch.where(present, digits.labels[chosen], -1)
    return Canvases(softened(images, generator)[:, None], middles, labels)


def backgrounds(count: int, generator: torch.Generator) -> Tensor:
    """Plain, with noise of any strength, with blobs of any size, or with both: (B, SIDE, SIDE)."""
    kind = torch.rand(count, 1, 1, generator=generator)
    level = 0.3 * torch.rand(count, 1, 1, generator=generator) ** 3
    strength = 0.4 * torch.rand(count, 1, 1, generator=generator) ** 1.5
    noise = torch.randn(count, SIDE, SIDE, generator=generator).abs() * strength
    step = int(2 ** (1 + 5 * float(torch.rand((), generator=generator))))
    grid = torch.rand(count, 1, SIDE // step + 2, SIDE // step + 2, generator=generator)
    blobs = F.interpolate(grid, scale_factor=step, mode="bicubic", align_corners=False)[:, 0, :SIDE, :SIDE]
    blobs = blobs * 0.6 * torch.rand(count, 1, 1, generator=generator)
    behind = BACKGROUND + level + noise * (kind > 1 / 3) + blobs * (kind > 2 / 3)
    # Half of the blobs without fine noise on them.
    behind = torch.where(kind > 5 / 6, BACKGROUND + level + blobs, behind)
    return behind.clamp(max=0.1)


def softened(images: Tensor, generator: torch.Generator) -> Tensor:
    """Half of the canvases smoothed a little, as interpolation does to small objects."""
    share = 0.22 * torch.rand(len(images), 1, 1, generator=generator)
    share = share * (torch.rand(len(images), 1, 1, generator=generator) < 0.5)
    for axis in (1, 2):
        before, after = images.roll(1, axis), images.roll(-1, axis)
        images = images * (1 - 2 * share) + share * (before + after)
    return images


def windows(
    made: Canvases, each: int, classes: int, generator: torch.Generator, one_scale: bool = False
) -> tuple[Tensor, Tensor]:
    """`each` windows onto every canvas, (B·M, 1, 28, 28), and their targets (B·M, K + 1), background last.

    A window's target is its digit's class if their boxes overlap by an IoU of 0.72 or more, the background up
    to 0.45, and a mixture in between. one_scale: all windows have scale 1, to train a plain CNN that slides.
    """
    centres, octaves = look(made, each, generator)
    if one_scale:
        octaves = torch.zeros_like(octaves)
    sigma = 2.0**octaves  # (B, M)
    seen = cut(made.images, centres, sigma)
    B = len(made.images)
    overlap = overlaps(centres, sigma, made)  # (B, M, places)
    best, which = overlap.max(2)
    share = ((best - NO_OBJECT) / (OBJECT - NO_OBJECT)).clamp(0, 1).flatten()
    label = made.labels.gather(1, which).clamp_min(0).flatten()
    targets = torch.zeros(B * each, classes + 1)
    targets[torch.arange(B * each), label] = share
    targets[:, classes] = 1 - share
    return seen, targets


def cut(images: Tensor, centres: Tensor, sigma: Tensor) -> Tensor:
    """Windows (B·M, 1, 28, 28) onto images (B, 1, H, W), about centres (B, M, 2), of scales (B, M)."""
    steps = torch.arange(BOX) - (BOX - 1) / 2
    at = centres[..., None] + sigma[..., None, None] * steps  # (B, M, 2, 28)
    height, width = images.shape[2:]
    lattice = grid_lattice(at[:, :, 0], at[:, :, 1], (height, width))  # (B, M, 28, 28, 2)
    B, M = sigma.shape
    seen = F.grid_sample(
        images, lattice.reshape(B, M * BOX, BOX, 2), padding_mode="border", align_corners=True
    )
    return seen.reshape(B * M, 1, BOX, BOX)


def look(made: Canvases, each: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Centres (B, M, 2) and scales in octaves (B, M): mostly about digits, right and nearly right."""
    B = len(made.images)

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(B, each, *shape, generator=generator)

    kind = uniform(0, 1)
    weights = (made.labels >= 0).float() + 1e-6  # a canvas without digits: any place
    digit = torch.multinomial(weights, each, replacement=True, generator=generator)  # (B, M)
    middle = made.middles.gather(1, digit[..., None].expand(-1, -1, 2))
    octaves = uniform(-0.3, 0.3)  # right, or nearly
    centres = middle + uniform(-3.5, 3.5, 2)
    wrong_scale = (kind > 0.4) & (kind <= 0.55)
    sign = torch.where(uniform(0, 1) < 0.5, -1.0, 1.0)
    octaves = torch.where(wrong_scale, sign * uniform(0.3, 3), octaves)
    beside = (kind > 0.55) & (kind <= 0.8)
    octaves = torch.where(beside, uniform(-1.2, 1.2), octaves)
    centres = torch.where(beside[..., None], middle + uniform(-16, 16, 2), centres)
    anywhere = kind > 0.8
    octaves = torch.where(anywhere, uniform(-3, 2.6), octaves)
    centres = torch.where(anywhere[..., None], uniform(-4, SIDE + 3, 2), centres)
    return centres, octaves


def overlaps(centres: Tensor, sigma: Tensor, made: Canvases) -> Tensor:
    """IoU of every window with every digit's box: (B, M, places); 0 where there is no digit."""
    half, own = BOX * sigma[:, :, None, None] / 2, BOX / 2  # (B, M, 1, 1)
    window, digit = centres[:, :, None], made.middles[:, None]  # (B, M, 1, 2) and (B, 1, places, 2)
    shared = torch.minimum(window + half, digit + own) - torch.maximum(window - half, digit - own)
    area = shared.clamp_min(0).prod(3)  # (B, M, places)
    union = (2 * half[..., 0]) ** 2 + BOX**2 - area
    return area / union * (made.labels >= 0)[:, None]
