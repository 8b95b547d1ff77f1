"""Images with labelled boxes: as a file describes them, and as they are once every box is checked.

    a file of labels ──coco, yolo, voc, table──▶ Described images ──checking──▶ BoxedImages

Convention: files count from the image's corner, so that an image of width W reaches from 0 to W. Here, as in
the whole library, boxes are in pixel-centre coordinates: from −1/2 to W − 1/2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from scalechannels.data.decoding import MAX_PIXELS
from scalechannels.data.pictures import read_image

Edges = tuple[float, float, float, float]


class LabelsError(ValueError):
    """Labels that cannot be used; the message names the first of them and says what is wrong."""


class SkippedLabelsWarning(UserWarning):
    """Labels were left out because the user allowed it."""


class LabelsWarning(UserWarning):
    """Labels are used, but not quite as they stand, or not everything in the folder is."""


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

    @cached_property
    def content(self) -> str:
        """The checksum of the file: copies of one have the same."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

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

    def with_objects(self) -> BoxedImages:
        """The same images without the classes that have no object: nothing could be learnt of them."""
        there = [label for label, count in enumerate(self.counts()) if count]
        number = torch.full((len(self.classes),), -1)
        number[there] = torch.arange(len(there))
        images = [replace(image, labels=number[image.labels]) for image in self.images]
        return BoxedImages(self.source, [self.classes[label] for label in there], images)
