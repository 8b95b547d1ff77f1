"""Objects anywhere: one object in each image, of any size, at any place, on any background.

    objects of size s about the centre ──▶ moved to their places ──▶ ink over a background (N, 1, H, W)

Law: an object of size s has a box of 28 s pixels, which lies inside the image wherever there is room for it;
its centre is at `places`. Objects move by whole pixels, so that no interpolation tells a place from another.
The same arguments give the same images on every device. Places "centre" differ in nothing but the place.

Limit: an object whose box is larger than the image stays at the centre and leaves the image on all sides.
Clutter is made of parts of other objects, about half as high and as wide as a digit; a part of an 8 may look
like a 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from scalechannels.data.image_set import ImageSet, Scale, drawn_scales, require_one_of
from scalechannels.data.mnist_large_scale import large_scale
from scalechannels.data.pictures import BACKGROUND, Values, as_shown
from scalechannels.data.scenes import INK
from scalechannels.data.strokes import BOX

Surroundings = Literal["plain", "noisy", "cluttered"]
ObjectPlaces = Literal["centre", "anywhere"]
SIDE = 64
"""Of an image, in pixels, where none is given."""
ENDS: dict[Values, tuple[float, float]] = {"digits": (BACKGROUND, INK), "unit": (0.0, 1.0)}
"""What an empty image and full ink are."""
NOISE = 0.12 / (INK - BACKGROUND)
"""How strong noise is, as a share of the ink: its standard deviation before its sign is dropped."""
PARTS, PART, SHARE = 6, 9, 0.35
"""Clutter: so many parts in an image, each a square of at most so many pixels and of that share of a box."""
DRAWN = 1 << 18
"""Values of noise that are drawn, or two for each pixel of an image; every image begins elsewhere."""


class Objects(Protocol):
    """What can be drawn at any size: `Strokes`, or images that are rescaled."""

    @property
    def labels(self) -> Tensor: ...
    @property
    def values(self) -> Values:
        """The range of what `render` gives: −0.76 to 0.76, or 0 to 1."""
        ...

    def __getitem__(self, index: slice | Tensor) -> Objects: ...
    def render(self, scale: float | Tensor, size: int, *, device: torch.device | str) -> Tensor:
        """Each at one size, about the centre of an image: (N, 1, size, size)."""
        ...


@dataclass(frozen=True)
class Pictures:
    """Grey pictures such as MNIST's as objects: rescaled and smoothed as in MNIST Large Scale."""

    images: Tensor  # (N, 28, 28) uint8
    labels: Tensor  # (N,) int64

    @property
    def values(self) -> Values:
        return "digits"

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
    places: ObjectPlaces = "anywhere",
    background: Surroundings = "plain",
    device: torch.device | str = "cpu",
) -> ImageSet:
    """`count` images of side x side pixels; where there are fewer objects, they come again elsewhere.

    scale   of the objects, see `drawn_scales`: one, a range, or several to choose from
    """
    require_one_of(ObjectPlaces, places=places)
    require_images(len(objects.labels), count, side, background)
    generator = torch.Generator().manual_seed(seed)
    scales, offsets = drawn(count, scale, side, generator, places)
    chosen = objects[torch.arange(count) % len(objects.labels)]
    cover = covers(chosen, scales, offsets, side, device)
    images = over_background(cover, objects.values, background, offsets, scales, generator)
    return ImageSet(
        images,
        chosen.labels.to(images.device),
        scales.to(images.device),
        ((side - 1) / 2 + offsets.double()).to(images.device),
    )


def require_images(objects: int, count: int, side: int, background: str) -> None:
    """A clear error for images that cannot be made."""
    require_one_of(Surroundings, background=background)
    if not objects or count < 1:
        raise ValueError(f"at least one object and one image are needed; got {objects} and {count}")
    if side < PART:
        raise ValueError(f"images must have {PART} pixels or more on each side; got {side}")


def drawn(
    count: int, scale: Scale, side: int, generator: torch.Generator, places: ObjectPlaces = "anywhere"
) -> tuple[Tensor, Tensor]:
    """The scales (N,) of the objects, and by how many rows and columns (N, 2) each is off the centre."""
    scales = drawn_scales(scale, torch.rand(count, generator=generator, dtype=torch.float64))
    offsets = drawn_offsets(scales, side, generator)
    return scales, offsets if places == "anywhere" else torch.zeros_like(offsets)


def drawn_offsets(scales: Tensor, side: int, generator: torch.Generator, box: float = BOX) -> Tensor:
    """By how many rows and columns (N, 2) each object is moved: as far as its box stays inside.

    box   of an object of size 1, in pixels
    """
    room = ((side - box * scales) / 2).floor().clamp_min(0)  # (N,)
    draws = torch.rand(len(scales), 2, generator=generator, dtype=torch.float64)
    return (draws * (2 * room + 1)[:, None]).floor().long() - room.long()[:, None]


def covers(
    objects: Objects, scales: Tensor, offsets: Tensor, side: int, device: torch.device | str
) -> Tensor:
    """How much of each pixel the object covers, from 0 to 1: (N, side, side)."""
    rendered = objects.render(scales, side, device=device)[:, 0]
    return moved(as_shown(rendered) if objects.values == "digits" else rendered, offsets)


def moved(images: Tensor, offsets: Tensor) -> Tensor:
    """Images (N, H, H) moved by whole pixels (N, 2), down and to the right; zeros come in."""
    if not offsets.any():
        return images
    return (
        _moved_one_by_one(images, offsets) if images.device.type == "cpu" else _moved_at_once(images, offsets)
    )


def _moved_one_by_one(images: Tensor, offsets: Tensor) -> Tensor:
    """For a CPU, where a loop that copies rows is several times faster."""
    result = np.zeros(images.shape, np.float32)
    for source, target, (down, right) in zip(images.numpy(), result, offsets.tolist(), strict=True):
        rows, columns = (slice(max(0, step), min(0, step) or None) for step in (down, right))
        back = (slice(max(0, -step), min(0, -step) or None) for step in (down, right))
        target[rows, columns] = source[tuple(back)]
    return torch.from_numpy(result)


def _moved_at_once(images: Tensor, offsets: Tensor) -> Tensor:
    """For a GPU: the windows of padded images, each by the place of its first pixel."""
    margin = int(offsets.abs().max())
    padded = F.pad(images, (margin,) * 4)
    count, side, width = len(images), images.shape[-1], padded.shape[-1]
    windows = padded.as_strided(  # nothing is copied yet
        (count, 2 * margin * (width + 1) + 1, side, side), (width * width, 1, width, 1)
    )
    first = (margin - offsets[:, 0]) * width + margin - offsets[:, 1]
    return windows[torch.arange(count, device=images.device), first.to(images.device)]


def over_background(
    cover: Tensor,
    values: Values,
    background: Surroundings,
    offsets: Tensor,
    scales: Tensor,
    generator: torch.Generator,
) -> Tensor:
    """Images (N, 1, H, H) with the ink of the covers (N, H, H) over a background.

    offsets, scales   of an object of each image, for clutter
    """
    empty, ink = ENDS[values]
    behind = torch.full_like(cover, empty)
    if background == "noisy":
        behind = noise(cover, generator).mul_(ink - empty).add_(empty).clamp_(max=(empty + ink) / 2)
    if background == "cluttered":
        cover = cluttered(cover, offsets, scales, generator)
    return behind.lerp_(torch.full((), ink, device=cover.device), cover)[:, None]


def noise(like: Tensor, generator: torch.Generator) -> Tensor:
    """Noise of the shape (N, H, W), each image from another place of one long row of numbers."""
    # Twelve uniform numbers for a normal one: uniform ones are the same on every platform.
    pixels = like[0].numel()
    length = max(DRAWN, 2 * pixels)
    row = NOISE * (torch.rand(12, length, generator=generator).sum(0) - 6).abs()
    first = torch.randint(length - pixels + 1, (len(like),), generator=generator)
    return row.to(like.device).unfold(0, pixels, 1)[first.to(like.device)].view_as(like)


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
