"""What a folder of images looks like, before anything is trained on it.

Where an object does not stand out, as in a photograph whose background is as lively as the object, it is
taken to fill its image, as in a crop.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor
from torch.nn.functional import avg_pool2d

from scalechannels.data.folder import ImageFolder
from scalechannels.data.standing_out import FAR, standing_out

Images = Literal["crops", "frames"]
LOOKED_AT = 200
"""Images whose objects are measured, spread evenly over the folder."""
ENOUGH = 512
"""Pixels a side in which an object is measured well; a photograph has ten times as many, and takes long."""
FILLED = 0.6
"""An object that takes less of its image's longer side, in the median, lies in a frame."""
MIXED = 1.25
"""Longer sides that differ by more, from one tenth to nine tenths of the images, are of mixed sizes."""
UNBALANCED = 3
"""The largest class has so many times the images of the smallest, or more."""
FEW = 20
"""Images of a class below which accuracies are rough."""
NONE = "none-of-these"
"""A subfolder of this name has images of none of the classes."""


@dataclass(frozen=True)
class Survey:
    """What was seen."""

    classes: dict[str, int]
    """The number of images of each."""
    grey: bool
    sides: tuple[float, float, float]
    """The longer side of the images in pixels: one tenth are smaller, the median, one tenth are larger."""
    extent: float
    """The object's longer side as a share of the image's, the median; 1 where objects do not stand out."""
    seen: float
    """The share of the images in which an object stands out."""
    offset: float
    """How far objects are off the centre, as a share of their size: one tenth are further off."""
    copies: int
    """Files that are copies of an earlier one."""
    contradicting: int
    """Files whose copies lie in another class."""
    leaked: int
    """Images of a given held-out part that are copies of training images, and are left out there."""
    given: dict[str, int]
    """The images of each part, where folders name parts."""

    @property
    def images(self) -> Images:
        """Whether an image is cropped to its object, or a frame around it."""
        return "crops" if self.extent >= FILLED else "frames"

    @property
    def object_size(self) -> float:
        """The objects' longer side in pixels; in crops, that of the image."""
        return self.sides[1] * (1.0 if self.images == "crops" else self.extent)

    @property
    def off_centre(self) -> bool:
        """Whether many objects lie far off the centre of their frames."""
        return self.images == "frames" and self.offset > FAR

    @property
    def balanced(self) -> bool:
        return max(self.classes.values()) < UNBALANCED * min(self.classes.values())

    def lines(self) -> list[str]:
        """A few lines for a user; those that need attention begin with "note:"."""
        low, middle, high = self.sides
        mixed = high > MIXED * low
        shown = ", ".join(f"{name} {count:,}" for name, count in list(self.classes.items())[:12])
        more = f" and {len(self.classes) - 12} more" if len(self.classes) > 12 else ""
        sides = f"{low:.0f} to {high:.0f} pixels, median {middle:.0f}" if mixed else f"{middle:.0f} pixels"
        lines = [
            f"{len(self.classes)} classes: {shown}{more}",
            f"{sum(self.classes.values()):,} {'grey' if self.grey else 'colour'} images of {sides}; "
            + self._objects(),
        ]
        if NONE in self.classes:
            lines.append(
                f"{NONE}: {self.classes[NONE]:,} images of no class; the report says how often they get one"
            )
        if self.given:
            counts = ", ".join(f"{part} {count:,}" for part, count in self.given.items())
            lines.append(f"parts, as the folders say: {counts}")
        if mixed and self.images == "crops":
            lines.append(
                "note: crop sizes differ; either objects differ in size, or crops were cut or rescaled freely"
            )
        if self.off_centre:
            lines.append("note: many objects are far off the centre; scale channels at the centre miss these")
        if not self.balanced:
            few, many = min(self.classes, key=self._count), max(self.classes, key=self._count)
            lines.append(
                f"note: {self.classes[many]:,} images of {many}, but {self.classes[few]:,} of {few}: "
                "accuracies below are balanced, the mean over the classes"
            )
        if min(self.classes.values()) < FEW:
            lines.append(f"note: a class with fewer than {FEW} images is learnt and tested only roughly")
        if self.copies:
            lines.append(f"note: {self.copies:,} files are copies of others; copies stay in one part")
        if self.leaked:
            lines.append(f"note: {self.leaked:,} held-out images are copies of training images: left out")
        if self.contradicting:
            lines.append(f"note: {self.contradicting:,} files have copies in another class")
        return lines

    def _count(self, name: str) -> int:
        return self.classes[name]

    def _objects(self) -> str:
        if self.seen < 0.5:
            return "objects do not stand out from their surroundings: taken to fill their images (crops)"
        share = f"{100 * self.extent:.0f} % of the longer side"
        if self.images == "crops":
            return f"objects fill their images ({share}): crops"
        return f"objects of about {self.object_size:.0f} pixels, {share}: frames"


def smaller(image: Tensor) -> Tensor:
    """An image (C, H, W) of less than twice `ENOUGH` pixels a side, in which its object is seen as well."""
    factor = max(1, max(image.shape[1:]) // ENOUGH)
    return avg_pool2d(image, (min(factor, image.shape[1]), min(factor, image.shape[2])))


def survey(images: ImageFolder, watch: Callable[[str, int], None] = lambda name, count: None) -> Survey:
    """Look at a folder that was decoded; of its images, at most 200 are measured.

    watch    called with the name of each that was measured, and how many there are
    """
    sides = sorted(float(max(size)) for size in images.sizes)
    with_object = [
        index for index in range(len(images)) if images.classes[images.labels[index]] != NONE
    ] or list(range(len(images)))
    step = max(1, -(-len(with_object) // LOOKED_AT))
    found = []
    for index in with_object[::step]:
        found.append(standing_out(smaller(images[index][0])))
        watch(images.paths[index].name, len(with_object[::step]))
    told = [one for one in found if one is not None]
    # An image in which nothing stands out may be full of its object.
    extents = [1.0 if one is None else one.extent for one in found]
    offsets = sorted(one.offset for one in told)
    counts = Counter(images.labels)
    classes_of: dict[str, set[int]] = {}
    parts_of: dict[str, set[str]] = {}
    for index, content in enumerate(images.contents):
        classes_of.setdefault(content, set()).add(images.labels[index])
        parts_of.setdefault(content, set()).add(images.given[index] if images.given else "train")
    copied = Counter(images.contents)
    return Survey(
        classes={name: counts[label] for label, name in enumerate(images.classes)},
        grey=images.grey,
        sides=(sides[len(sides) // 10], statistics.median(sides), sides[-1 - len(sides) // 10]),
        extent=statistics.median(extents),
        seen=len(told) / len(found),
        offset=offsets[-1 - len(offsets) // 10] if offsets else 0.0,
        copies=len(images) - len(copied),
        contradicting=sum(len(classes_of[content]) > 1 for content in images.contents),
        leaked=sum(
            part != "train" and "train" in parts_of[content]
            for content, part in zip(images.contents, images.given, strict=False)
        ),
        given=dict(Counter(images.given)),
    )
