"""Several objects in each image, and one question: is there one of this class among them?

    some objects ──▶ each of its own size at its own place ──▶ ink over a background (N, 1, H, W), label 0, 1

Law: every second image has one object of the wanted class (label 1), the others have none (label 0); all
other objects are of other classes. Boxes lie inside the image, as in `anywhere`, and do not overlap where
`TRIES` places, tried one after the other, leave room; else they overlap as little as these tries allow, and
both objects' ink is seen. `places` and `scales` are those of the wanted object; where there is none, `places`
is NaN, and the scale is that of one of the others.

Limit: a yes-or-no question for one class at a time. Which the others are, and where, is not asked.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from scalechannels.data.anywhere import (
    Objects,
    Surroundings,
    covers,
    drawn_offsets,
    over_background,
    require_images,
)
from scalechannels.data.image_set import ImageSet, Scale, drawn_scales
from scalechannels.data.strokes import BOX

SIDE = 128
"""Of an image, in pixels, where none is given."""
NUMBER = 3
"""Of objects in an image, where none is given."""
TRIES = 32


def several(
    objects: Objects,
    wanted: int,
    count: int,
    scale: Scale = (0.5, 2.0),
    seed: int = 0,
    *,
    number: int = NUMBER,
    side: int = SIDE,
    background: Surroundings = "plain",
    device: torch.device | str = "cpu",
) -> ImageSet:
    """`count` images of `number` objects each; the class `wanted` is looked for."""
    require_images(len(objects.labels), count, side, background)
    largest = BOX * max(scale if isinstance(scale, tuple) else (scale,))
    if number < 1 or math.floor(side / largest) ** 2 < number:
        raise ValueError(
            f"an image of {side} x {side} pixels must have room for all of its objects, of up to "
            f"{largest:g} pixels each; got {number}"
        )
    found = objects.labels == wanted
    if not found.any() or found.all():
        raise ValueError(
            f"objects of the class {wanted} and of others are needed; there are none of one kind"
        )
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 2
    draws = torch.rand(number, count, generator=generator, dtype=torch.float64)
    scales = drawn_scales(scale, draws)  # (number, N)
    offsets = apart(scales, side, generator)  # (number, N, 2)
    chosen = torch.stack([_any_of(~found, count, generator) for _ in range(number)])  # (number, N)
    chosen[0] = torch.where(labels == 1, _any_of(found, count, generator), chosen[0])
    cover = covers(objects[chosen[0]], scales[0], offsets[0], side, device)
    for own, size, offset in zip(chosen[1:], scales[1:], offsets[1:], strict=True):
        torch.maximum(cover, covers(objects[own], size, offset, side, device), out=cover)
    images = over_background(cover, objects.values, background, offsets[0], scales[0], generator)
    places = (side - 1) / 2 + offsets[0].double()
    places[labels == 0] = math.nan
    return ImageSet(*(part.to(images.device) for part in (images, labels, scales[0], places)))


def apart(scales: Tensor, side: int, generator: torch.Generator) -> Tensor:
    """Offsets (number, N, 2) of objects (number, N) from the centre, their boxes apart as the module says."""
    halves = BOX * scales / 2
    placed = [drawn_offsets(scales[0], side, generator)]
    for size, half in zip(scales[1:], halves[1:], strict=True):
        tried = torch.stack([drawn_offsets(size, side, generator) for _ in range(TRIES)])  # (TRIES, N, 2)
        # How many pixels lie between the boxes, along the axis that has more; negative where they overlap.
        between = [
            (tried - other).abs().amax(2) - half - own for other, own in zip(placed, halves, strict=False)
        ]
        gaps = torch.stack(between).amin(0).clamp_max(0)  # (TRIES, N)
        best = gaps.argmax(0)  # the first without overlap
        placed.append(tried[best, torch.arange(len(best))])
    return torch.stack(placed)


def _any_of(these: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """The indices of `count` objects, drawn from these."""
    among = these.nonzero()[:, 0]
    return among[torch.randint(len(among), (count,), generator=generator)]
