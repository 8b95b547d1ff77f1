"""Images with labelled boxes, and what is checked before anything learns from them.

    a file of labels ──coco, yolo, voc, table──▶ Described images ──checked──▶ BoxedImages

Convention: files count from the image's corner, so that an image of width W reaches from 0 to W. Here, as in
the whole library, boxes are in pixel-centre coordinates: from −1/2 to W − 1/2. No box is changed, except that
one which reaches beyond the image by at most `SLACK` pixels, as rounding makes it, is cut at the edge.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from scalechannels.data.decoding import MAX_PIXELS, UnreadableImageError
from scalechannels.data.image_files import written
from scalechannels.data.pictures import check_image, read_image

SLACK = 2.0
"""Pixels by which a box may reach beyond its image."""
NAMED = 5
"""Of many problems, those that one message names."""
Edges = tuple[float, float, float, float]


class LabelsError(ValueError):
    """Labels that cannot be used; the message names the first of them and says what is wrong."""


class SkippedLabelsWarning(UserWarning):
    """Labels were left out because the user allowed it."""


class Stated(NamedTuple):
    """One box as a file states it."""

    edges: Edges
    """x0, y0, x1, y1 from the image's corner, in pixels or, of YOLO, in shares of the image's sides."""
    label: str
    where: str
    """The file, and the line or number in it, for messages."""
    ignored: bool = False
    """A crowd, or an object too hard to count: neither an object nor background."""


@dataclass
class Described:
    """One image as the labels describe it; nothing of it has been looked at."""

    path: Path
    where: str
    boxes: list[Stated] = field(default_factory=list)
    size: tuple[int, int] | None = None
    """Height and width that the labels state."""
    relative: bool = False
    """Whether the boxes are in shares of the image's sides."""


@dataclass(frozen=True)
class LabelledImage:
    """An image file and the objects in it. One without boxes shows what is no object."""

    path: Path
    height: int
    width: int
    grey: bool
    boxes: Tensor  # (N, 4) float64: x0, y0, x1, y1 in pixel-centre coordinates
    labels: Tensor  # (N,) int64, places in the list of classes
    ignored: Tensor  # (M, 4): regions that count neither as objects nor as background

    def read(self, grey: bool, max_pixels: int = MAX_PIXELS) -> Tensor:
        """The image (C, H, W) from 0 to 1."""
        return read_image(self.path, grey=grey, max_pixels=max_pixels)

    @property
    def sizes(self) -> Tensor:
        """The longer side of each box in pixels: (N,)."""
        return (self.boxes[:, 2:] - self.boxes[:, :2]).amax(1)


@dataclass(frozen=True)
class BoxedImages:
    """Checked images with the boxes of objects of these classes."""

    source: Path
    classes: list[str]
    images: list[LabelledImage]

    @property
    def grey(self) -> bool:
        """Whether every file stores grey values."""
        return all(image.grey for image in self.images)

    @property
    def objects(self) -> int:
        return sum(len(image.labels) for image in self.images)

    @property
    def sizes(self) -> Tensor:
        """The longer sides of all boxes in pixels: (N,)."""
        return torch.cat([image.sizes for image in self.images])

    def counts(self) -> list[int]:
        """How many objects there are of each class."""
        labels = torch.cat([image.labels for image in self.images])
        return torch.bincount(labels, minlength=len(self.classes)).tolist()

    def only(self, images: Sequence[LabelledImage]) -> BoxedImages:
        """The same classes with some of the images."""
        return BoxedImages(self.source, self.classes, list(images))


def checked(
    source: Path,
    described: Sequence[Described],
    classes: Sequence[str],
    problems: Iterable[str] = (),
    *,
    skip: bool = False,
    max_pixels: int = MAX_PIXELS,
) -> BoxedImages:
    """The images with every box checked and every file decoded once.

    problems   what the reader of the labels has found already
    skip       leave out what cannot be used, with a warning, instead of refusing it all
    """
    found, images = list(problems), []
    number = {name: index for index, name in enumerate(classes)}
    for one in described:
        try:
            images.append(_image(one, number, found, max_pixels))
        except LabelsError as error:
            found.append(str(error))
    if found:
        more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
        told = "; ".join(found[:NAMED]) + more
        if not skip:
            count = "1 problem" if len(found) == 1 else f"{len(found)} problems"
            raise LabelsError(f"'{written(source)}' has {count}: {told}. Mend them, or give --skip-corrupt")
        warnings.warn(f"left out of '{written(source)}': {told}", SkippedLabelsWarning, stacklevel=3)
    boxed = BoxedImages(source, list(classes), images)
    if not images or boxed.objects == 0:
        raise LabelsError(f"'{written(source)}' has no boxes of objects; label at least one")
    return boxed


def _image(one: Described, number: dict[str, int], found: list[str], max_pixels: int) -> LabelledImage:
    if not one.path.is_file():
        raise LabelsError(f"{one.where}: the image '{written(one.path)}' does not exist")
    try:
        seen = check_image(one.path, max_pixels)
    except UnreadableImageError as error:
        raise LabelsError(f"the image '{written(one.path)}' cannot be read: {error}") from None
    height, width = seen.height, seen.width
    if one.size not in (None, (height, width)):
        stated = f"{one.size[1]} x {one.size[0]}" if one.size else ""
        turned = " (turned by its EXIF orientation?)" if one.size == (width, height) else ""
        raise LabelsError(
            f"{one.where}: '{written(one.path)}' has {width} x {height} pixels, its labels say "
            f"{stated}{turned}"
        )
    boxes: list[Edges] = []
    labels: list[int] = []
    ignored: list[Edges] = []
    for stated_box in one.boxes:
        edges, label = stated_box.edges, stated_box.label
        if one.relative:
            edges = (edges[0] * width, edges[1] * height, edges[2] * width, edges[3] * height)
        if trouble := _trouble(edges, width, height):
            found.append(f"{stated_box.where}: {trouble}")
        else:
            kept = _from_corner(edges, width, height)
            if stated_box.ignored:
                ignored.append(kept)
            else:
                boxes.append(kept)
                labels.append(number[label])
    return LabelledImage(
        one.path,
        height,
        width,
        seen.grey,
        torch.tensor(boxes, dtype=torch.float64).view(-1, 4),
        torch.tensor(labels, dtype=torch.int64),
        torch.tensor(ignored, dtype=torch.float64).view(-1, 4),
    )


def _trouble(edges: Edges, width: int, height: int) -> str | None:
    """What is wrong with a box in an image of this size."""
    x0, y0, x1, y1 = edges
    shown = f"the box {', '.join(f'{edge:g}' for edge in edges)}"
    if not all(map(math.isfinite, edges)):
        return f"{shown} has an edge that is no number"
    if x1 < x0 or y1 < y0:
        return f"{shown} is swapped: x0, y0, x1, y1 must ascend"
    if x1 - x0 < 1 or y1 - y0 < 1:
        return f"{shown} is empty, with less than a pixel along a side"
    if min(x0, y0) < -SLACK or x1 > width + SLACK or y1 > height + SLACK:
        return f"{shown} lies outside its image of {width} x {height} pixels"
    return None


def _from_corner(edges: Edges, width: int, height: int) -> Edges:
    x0, y0, x1, y1 = edges
    return max(x0, 0.0) - 0.5, max(y0, 0.0) - 0.5, min(x1, float(width)) - 0.5, min(y1, float(height)) - 0.5
