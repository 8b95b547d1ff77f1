"""Objects anywhere: one object in each image, of any size, at any place, on any background.

    digits of size s about the centre ──▶ moved to their places ──▶ ink over a background (N, 1, H, W)

Law: an object of size s has a box of 28 s pixels, which lies inside the image wherever there is room for it;
its centre is at `places`. Objects move by whole pixels, so that no interpolation tells a place from another.
The same arguments give the same images on every device.

Limit: one object of each image has the label. Clutter is made of parts of other objects, about half as high
and as wide as a digit; a part of an 8 may look like a 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from scalechannels.data.image_set import ImageSet, Scale, drawn_scales, require_one_of
from scalechannels.data.mnist_large_scale import large_scale
from scalechannels.data.pictures import BACKGROUND, as_shown
from scalechannels.data.scenes import INK
from scalechannels.data.strokes import BOX

Surroundings = Literal["plain", "noisy", "cluttered"]
SIDE = 64
"""Of an image, in pixels, where none is given."""
NOISE = 0.12
"""How strong noise is, as in scenes: the standard deviation before its sign is dropped."""
PARTS, PART, SHARE = 6, 9, 0.35
"""Clutter: so many parts in an image, each a square of at most so many pixels and of that share of a box."""
DRAWN = 1 << 20
"""Values of noise that are drawn; every image begins elsewhere among them."""


class Objects(Protocol):
    """What can be drawn at any size: `Strokes`, or images that are rescaled."""

    @property
    def labels(self) -> Tensor: ...
    def __getitem__(self, index: slice | Tensor) -> Objects: ...
    def render(self, scale: float | Tensor, size: int, *, device: torch.device | str) -> Tensor:
        """Each at one size, about the centre of an image: (N, 1, size, size), −0.76 to 0.76."""
        ...


@dataclass(frozen=True)
class Pictures:
    """Grey pictures such as MNIST's as objects: rescaled and smoothed as in MNIST Large Scale."""

    images: Tensor  # (N, 28, 28) uint8
    labels: Tensor  # (N,) int64

    def __getitem__(self, index: slice | Tensor) -> Pictures:
        return Pictures(self.images[index], self.labels[index])

    def render(self, scale: float | Tensor, size: int, *, device: torch.device | str = "cpu") -> Tensor:
        scales = scale.to(device) if isinstance(scale, Tensor) else scale
        return large_scale(self.images.to(device), scales, size)


def anywhere(
    objects: Objects,
    count: int,
    scale: Scale = (0.5, 2.0),
    seed: int = 0,
    *,
    side: int = SIDE,
    background: Surroundings = "plain",
    device: torch.device | str = "cpu",
) -> ImageSet:
    """`count` images of side x side pixels; where there are fewer objects, they come again elsewhere.

    scale   of the objects, see `drawn_scales`: one, a range, or several to choose from
    """
    require_one_of(Surroundings, background=background)
    available = len(objects.labels)
    if not available or count < 1:
        raise ValueError(f"at least one object and one image are needed; got {available} and {count}")
    if side < PART:
        raise ValueError(f"images must have {PART} pixels or more on each side; got {side}")
    generator = torch.Generator().manual_seed(seed)
    scales = drawn_scales(scale, torch.rand(count, generator=generator, dtype=torch.float64))
    offsets = drawn_offsets(scales, side, generator)  # (N, 2)
    chosen = objects[torch.arange(count) % available]
    rendered = chosen.render(scales, side, device=device)[:, 0]  # (N, side, side)
    cover = moved(as_shown(rendered), offsets.to(rendered.device))
    behind = torch.full_like(cover, BACKGROUND)
    if background == "noisy":
        behind = (behind + noise(cover, generator)).clamp_(max=0.0)
    if background == "cluttered":
        cover = cluttered(cover, offsets, scales, generator)
    images = behind.lerp_(torch.full((), INK, device=cover.device), cover)
    places = (side - 1) / 2 + offsets.double()
    return ImageSet(
        images[:, None],
        chosen.labels.to(cover.device),
        scales.to(cover.device),
        places.to(cover.device),
    )


def drawn_offsets(scales: Tensor, side: int, generator: torch.Generator) -> Tensor:
    """By how many rows and columns (N, 2) each object is moved: as far as its box stays inside."""
    room = ((side - BOX * scales) / 2).floor().clamp_min(0)  # (N,)
    draws = torch.rand(len(scales), 2, generator=generator, dtype=torch.float64)
    return (draws * (2 * room + 1)[:, None]).floor().long() - room.long()[:, None]


def moved(images: Tensor, offsets: Tensor) -> Tensor:
    """Images (N, H, H) moved by whole pixels (N, 2), down and to the right; zeros come in."""
    for axis in (1, 2):
        side = images.shape[axis]
        origin = torch.arange(side, device=images.device) - offsets[:, axis - 1, None]  # (N, H)
        inside = (origin >= 0) & (origin < side)
        shape = (-1, side, 1) if axis == 1 else (-1, 1, side)
        images = images.take_along_dim(origin.clamp(0, side - 1).view(shape), axis) * inside.view(shape)
    return images


def noise(like: Tensor, generator: torch.Generator) -> Tensor:
    """Noise of the shape (N, H, W), each image from another place of one long row of numbers."""
    # Twelve uniform numbers for a normal one: uniform ones are the same on every platform.
    row = torch.rand(12, DRAWN, generator=generator).sum(0) - 6
    first = torch.randint(DRAWN, (len(like), 1), generator=generator)
    pixels = torch.arange(like[0].numel(), device=like.device)
    at = (first.to(like.device) + pixels) % DRAWN  # (N, H·W)
    return NOISE * row.abs().to(like.device)[at].view_as(like)


def cluttered(cover: Tensor, offsets: Tensor, scales: Tensor, generator: torch.Generator) -> Tensor:
    """The covers (N, H, H) with parts of other images' objects strewn over them; the ink is the darker one's.

    A part is cut at a random point of another object's box.
    """
    count, side = len(cover), cover.shape[-1]
    images = torch.arange(count, device=cover.device)[:, None, None]
    steps = torch.arange(PART, device=cover.device)
    whole, cover = cover, cover.clone()
    for _ in range(PARTS):
        others = (
            torch.arange(count) + torch.randint(1, max(2, count), (count,), generator=generator)
        ) % count
        point, target = torch.rand(2, count, 2, generator=generator, dtype=torch.float64)
        about = (side - 1) / 2 + offsets[others] + (point - 0.5) * BOX * scales[others, None]
        cut = (about - PART / 2).round().long().clamp(0, side - PART)  # (N, 2)
        put = (target * (side - PART + 1)).long()
        from_rows, from_columns, to_rows, to_columns = (
            corner[:, axis, None].to(cover.device) + steps for corner in (cut, put) for axis in range(2)
        )  # (N, PART) each
        kept = steps < (SHARE * BOX * scales[others, None]).to(cover.device)  # (N, PART)
        part = whole[others.to(cover.device)[:, None, None], from_rows[:, :, None], from_columns[:, None]]
        at = images, to_rows[:, :, None], to_columns[:, None]
        cover[at] = torch.maximum(cover[at], part * (kept[:, :, None] & kept[:, None]))
    return cover
