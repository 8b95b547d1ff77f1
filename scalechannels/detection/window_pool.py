"""What a detector learns from a user's boxes: windows cut from the images, each with what it should say.

    image, boxes ──windows about objects, beside them, anywhere──▶ pool of windows ──▶ batches

An object of longer side L fits a window of scale σ = L / pixels, where `pixels` is the side that an object
has in a window of n. Windows that fit are positives; no image is rescaled, and windows of a wrong scale or
place, as scale channels have in any image, are background: this makes the score peak in scale and in place.

A window's target is its object's class if their squares overlap by an IoU of 0.72 or more, the background up
to 0.45, and a mixture in between. Its box is said relative to that square, of side s = pixels·σ: how far the
middle is to the right and down, over s, and the logarithms of width and height over s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from scalechannels.data.boxes.labelled import LabelledImage
from scalechannels.detection.boxes import areas, intersections, overlap
from scalechannels.sampling import most_digits, sample

# Overlap (IoU) up to which a window is background, and from which it is an object.
NO_OBJECT, OBJECT = 0.45, 0.72
KINDS = (0.4, 0.15, 0.25)
"""Shares of windows that are nearly right, of a wrong scale, and beside an object; the rest is anywhere."""
IGNORED = 0.3
"""The share of a window's square in an ignored region from which nothing is learnt from it."""


class Objects(NamedTuple):
    """The objects of one image, in its own pixels."""

    boxes: Tensor  # (N, 4) x0, y0, x1, y1 in pixel-centre coordinates
    labels: Tensor  # (N,)
    ignored: Tensor  # (M, 4)

    @classmethod
    def of(cls, image: LabelledImage, reduce: int = 1) -> Objects:
        """Those of an image that is made `reduce` times smaller about its centre."""
        return cls(_reduced(image.boxes, image, reduce), image.labels, _reduced(image.ignored, image, reduce))

    @classmethod
    def none(cls) -> Objects:
        empty = torch.zeros(0, 4, dtype=torch.float64)
        return cls(empty, torch.zeros(0, dtype=torch.int64), empty)

    @property
    def middles(self) -> Tensor:
        """Rows and columns: (N, 2)."""
        return ((self.boxes[:, :2] + self.boxes[:, 2:]) / 2).flip(1)

    @property
    def sizes(self) -> Tensor:
        """Their longer sides: (N,)."""
        return (self.boxes[:, 2:] - self.boxes[:, :2]).amax(1)


def _reduced(boxes: Tensor, image: LabelledImage, factor: int) -> Tensor:
    """Boxes in an image that `frames.reduced` makes smaller: centre stays centre."""
    if factor == 1:
        return boxes
    sides = torch.tensor([image.width, image.height], dtype=boxes.dtype)
    smaller = torch.tensor([-(-image.width // factor), -(-image.height // factor)], dtype=boxes.dtype)
    old, new = ((size - 1) / 2 for size in (sides, smaller))
    return ((boxes.view(-1, 2, 2) - old) / factor + new).view(-1, 4)


class Looks(NamedTuple):
    """Where windows look."""

    centres: Tensor  # (M, 2) rows and columns
    sigmas: Tensor  # (M,)


class Pool(NamedTuple):
    """Windows and what a network should say of each."""

    seen: Tensor  # (N, C, n, n) uint8
    targets: Tensor  # (N, K + 1), background last
    boxes: Tensor  # (N, 4): right, down, log width, log height, relative to the window's square
    fits: Tensor  # (N,) 1 where the box counts, 0 where there is none

    def at(self, chosen: Tensor) -> Pool:
        return Pool(*(part[chosen] for part in self))


def joined(pools: list[Pool]) -> Pool:
    return Pool(*(torch.cat(parts) for parts in zip(*pools, strict=True)))


def looks(
    objects: Objects,
    shape: Sequence[int],
    count: int,
    pixels: float,
    scales: tuple[float, float],
    generator: torch.Generator,
) -> Looks:
    """`count` windows onto an image (H, W): mostly about its objects, right and nearly right.

    scales   the smallest and the largest σ that a window may have
    """

    def uniform(low: float, high: float, *more: int) -> Tensor:
        return low + (high - low) * torch.rand(count, *more, generator=generator, dtype=torch.float64)

    low, high = (torch.tensor(scale, dtype=torch.float64).log2() for scale in scales)
    place = uniform(0, 1, 2) * (torch.tensor(shape, dtype=torch.float64) - 1)
    anywhere = Looks(place, uniform(float(low), float(high)).exp2())
    if len(objects.labels) == 0:
        return anywhere
    which = torch.randint(len(objects.labels), (count,), generator=generator)
    size = objects.sizes[which]
    kind = uniform(0, 1)
    right, wrong, beside = (sum(KINDS[: k + 1]) for k in range(3))
    sign = torch.where(uniform(0, 1) < 0.5, -1.0, 1.0)
    octaves, shift = uniform(-0.3, 0.3), uniform(-1 / 8, 1 / 8, 2)
    octaves = torch.where((kind > right) & (kind <= wrong), sign * uniform(0.3, 3), octaves)
    near = (kind > wrong) & (kind <= beside)
    octaves = torch.where(near, uniform(-1.2, 1.2), octaves)
    shift = torch.where(near[:, None], uniform(-0.6, 0.6, 2), shift)
    sigmas = ((size / pixels).log2() + octaves).clamp(low - 0.3, high + 0.3).exp2()
    centres = objects.middles[which] + shift * size[:, None]
    free = kind > beside
    return Looks(
        torch.where(free[:, None], anywhere.centres, centres), torch.where(free, anywhere.sigmas, sigmas)
    )


def cut(image: Tensor, where: Looks, window: int) -> Tensor:
    """The windows (M, C, n, n) uint8 of an image (C, H, W) from 0 to 1, as anti-aliased networks see it."""
    steps = torch.arange(window, dtype=most_digits(image.device), device=image.device) - (window - 1) / 2
    seen = []
    for centre, sigma in zip(where.centres.to(steps), where.sigmas.tolist(), strict=True):
        rows, columns = (at + sigma * steps for at in centre)
        seen.append(sample(image, rows, columns, max(1.0, sigma), outside="border", fill=0.0))
    if not seen:
        return torch.zeros(0, len(image), window, window, dtype=torch.uint8)
    return (torch.stack(seen) * 255).round().clamp(0, 255).byte()


def told(
    where: Looks, objects: Objects, pixels: float, classes: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Targets (M, K + 1), boxes (M, 4) and fits (M,) of windows, and which of them count at all (M,)."""
    count = len(where.sigmas)
    targets, boxes = torch.zeros(count, classes + 1), torch.zeros(count, 4)
    side = pixels * where.sigmas  # (M,)
    squares = square(where.centres, side)
    counts = share_inside(squares, objects.ignored) < IGNORED
    if len(objects.labels) == 0:
        targets[:, classes] = 1
        return targets, boxes, torch.zeros(count), counts
    best, which = overlap(squares, square(objects.middles, objects.sizes)).max(1)
    share = ((best - NO_OBJECT) / (OBJECT - NO_OBJECT)).clamp(0, 1).float()
    targets[torch.arange(count), objects.labels[which]] = share
    targets[:, classes] = 1 - share
    own = objects.boxes[which]
    middle = (objects.middles[which] - where.centres).flip(1) / side[:, None]  # right and down
    boxes = torch.cat((middle, ((own[:, 2:] - own[:, :2]) / side[:, None]).log()), 1).float()
    return targets, boxes, (best > (NO_OBJECT + OBJECT) / 2 - 0.1).float(), counts


def pooled(image: Tensor, where: Looks, objects: Objects, window: int, pixels: float, classes: int) -> Pool:
    """The windows of an image with what a network should say of them."""
    targets, boxes, fits, counts = told(where, objects, pixels, classes)
    where = Looks(where.centres[counts], where.sigmas[counts])
    return Pool(cut(image, where, window), targets[counts], boxes[counts], fits[counts])


def square(centres: Tensor, sides: Tensor) -> Tensor:
    """Boxes (N, 4) of squares about rows and columns (N, 2)."""
    half, corners = sides[:, None] / 2, centres.flip(1)
    return torch.cat((corners - half, corners + half), 1)


def share_inside(squares: Tensor, regions: Tensor) -> Tensor:
    """The largest share of each box that lies in one of the regions: (N,)."""
    if len(regions) == 0:
        return torch.zeros(len(squares), dtype=squares.dtype)
    return (intersections(squares, regions) / areas(squares)[:, None]).amax(1)


def varied(
    windows: Tensor, boxes: Tensor, flips: bool, generator: torch.Generator, turns: bool = False
) -> tuple[Tensor, Tensor]:
    """Windows (B, C, n, n) in other lights, with `flips` half of them mirrored left to right, boxes too.

    turns   half of them are also mirrored top to bottom, and half about the diagonal: with `flips`, all eight
            positions of a square
    """
    count, channels = windows.shape[:2]

    def uniform(*shape: int) -> Tensor:
        return 2 * torch.rand(count, *shape, generator=generator) - 1

    if flips:
        turned = uniform() > 0
        windows = torch.where(turned[:, None, None, None], windows.flip(3), windows)
        boxes = torch.cat((torch.where(turned, -boxes[:, 0], boxes[:, 0])[:, None], boxes[:, 1:]), 1)
    if turns:
        turned, crossed = uniform(1) > 0, uniform(1) > 0  # (B, 1)
        windows = torch.where(turned[..., None, None], windows.flip(2), windows)
        boxes = torch.where(turned, boxes * torch.tensor([1.0, -1, 1, 1]), boxes)
        windows = torch.where(crossed[..., None, None], windows.transpose(2, 3), windows)
        boxes = torch.where(crossed, boxes[:, [1, 0, 3, 2]], boxes)
    gamma, contrast = 2 ** (0.4 * uniform(1, 1, 1)), 2 ** (0.5 * uniform(1, 1, 1))
    level = 0.12 * uniform(1, 1, 1) + 0.04 * uniform(channels, 1, 1) * (channels > 1)
    mean = windows.mean((2, 3), keepdim=True)
    return (windows.clamp_min(1e-4) ** gamma - mean) * contrast + mean + level, boxes
