"""How good a detector of a user's objects is: at all sizes, where there is none, and its threshold."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from scalechannels.data.boxes.labelled import LabelledImage
from scalechannels.detection.measuring import MOST_PIXELS, Finder, Measured, alarms, calibrated, measure
from scalechannels.detection.textures import texture

SIZES = (0.25, 0.5, 1.0, 2.0, 4.0)
QUIET_PICTURES, QUIET_SIDE = 16, 256
"""Textures that were not trained on, to count false alarms in."""
MEASURED = 8
"""Images that are measured at most."""
QUIET_PIXELS = 24e6
"""Pixels of images without objects that are looked at, and no image more."""


@dataclass
class Outcome:
    """What a detector found at each size, and where there is nothing."""

    sizes: list[Measured]
    quiet: Measured
    """Images without objects that were kept for the test, if there are any."""
    textures: Tensor
    """The probabilities of what was found in made-up textures."""
    texture_megapixels: float
    threshold: float

    @property
    def own(self) -> Measured:
        """At the size of the images."""
        return next(one for one in self.sizes if one.size == 1)


@dataclass(frozen=True)
class HeldOut:
    """What detectors are tested on.

    images   with objects, of which the first `MEASURED` count
    quiet    without objects
    """

    images: Sequence[LabelledImage]
    quiet: Sequence[LabelledImage]
    low: float
    high: float
    grey: bool
    channels: int
    max_pixels: int
    seed: int

    def __call__(self, find: Finder, say: Callable[[str], None]) -> Outcome:
        sizes = [size for size in SIZES if self.low / 1.001 <= size <= self.high * 1.001]
        options: dict[str, Any] = {"grey": self.grey, "max_pixels": self.max_pixels}
        shown, area, begun = self.images[:MEASURED], 0.0, time.monotonic()
        whole = sum(size**2 for size in sizes)
        measured = []
        for size in sizes:
            left = (time.monotonic() - begun) / area * (whole - area) if area else None
            say(f"measuring at size {size:g}" + ("" if left is None else f", about {left:.0f} s left") + " …")
            measured.append(measure(find, shown, size, **options))
            area += size**2
        quiet = measure(find, some_of(self.quiet), 1.0, **options)
        generator = torch.Generator().manual_seed(self.seed + 1)
        pictures = (texture(self.channels, QUIET_SIDE, generator) for _ in range(QUIET_PICTURES))
        false, megapixels = alarms(find, pictures)
        near = [one for one in measured if 0.4 < one.size < 2.5]
        everywhere = torch.cat((false, *(one.scores for one in quiet.found)))
        threshold = calibrated(near, everywhere, megapixels + quiet.pixels / 1e6)
        return Outcome(measured, quiet, false, megapixels, threshold)


def some_of(images: Sequence[LabelledImage]) -> list[LabelledImage]:
    """The first ones, up to `QUIET_PIXELS`."""
    kept, pixels = [], 0
    for image in images:
        if pixels >= QUIET_PIXELS:
            break
        kept.append(image)
        pixels += image.height * image.width
    return kept


def numbers(tested: Outcome) -> dict[str, Any]:
    """What the report says of one detector."""
    sizes = []
    for one in tested.sizes:
        if not one.objects:
            continue
        average = one.precision()
        sizes.append(
            {
                "size": one.size,
                "ap": round(average.mean, 4),
                "ap50": round(average.half, 4),
                "ap75": round(average.three_quarters, 4),
                "images": len(one.images),
                "objects": one.objects,
                "seconds_a_megapixel": round(one.seconds / max(one.pixels / 1e6, 1e-9), 2),
            }
        )
    found = {
        "textures": (QUIET_PICTURES, tested.texture_megapixels, tested.textures),
        "negatives": (
            len(tested.quiet.images),
            tested.quiet.pixels / 1e6,
            torch.cat([torch.zeros(0), *(one.scores for one in tested.quiet.found)]),
        ),
    }
    false = {}
    for name, (pictures, megapixels, scores) in found.items():
        count = int((scores >= tested.threshold).sum())
        each = round(count / megapixels, 3) if pictures else None
        false[name] = {
            "pictures": pictures,
            "megapixels": round(megapixels, 2),
            "alarms": count,
            "a_megapixel": each,
        }
    return {
        "threshold": tested.threshold,
        "sizes": sizes,
        "own": next(one for one in sizes if one["size"] == 1),
        "false_alarms": false,
    }


def not_measured(test: HeldOut, tested: Outcome) -> list[str]:
    """What was left out, so that nobody takes the numbers for more than they are."""
    said = []
    if (count := len(test.images)) > MEASURED:
        said.append(f"of {count} images with objects to test on, {MEASURED} were measured")
    if (count := len(test.quiet)) > len(tested.quiet.images):
        said.append(f"of {count} images without objects, {len(tested.quiet.images)} were looked at")
    for one in tested.sizes:
        if one.too_large:
            said.append(
                f"at size {one.size:g}, {one.too_large} of the images were left out: enlarged, they have "
                f"more than {MOST_PIXELS / 1e6:.0f} megapixels"
            )
    return said
