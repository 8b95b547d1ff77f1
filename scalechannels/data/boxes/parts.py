"""Which labelled images are learnt from, and which are kept to test on.

Of the images with objects, and of those without, a quarter each is kept, where there are at least `FEWEST`.
Law: every class that has objects keeps an image to learn from.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from scalechannels.data.boxes.labelled import (
    BoxedImages,
    LabelledImage,
    LabelsError,
    SkippedLabelsWarning,
)
from scalechannels.data.decoding import UnreadableImageError
from scalechannels.data.image_files import find_images, warn_of_left_out, written
from scalechannels.data.pictures import check_image

HELD, FEWEST = 0.25, 4


class Parts(NamedTuple):
    learnt: BoxedImages
    held: list[LabelledImage]
    """With objects; none of too few."""
    quiet: list[LabelledImage]
    """Without objects; none of too few."""


def parts(boxed: BoxedImages, negatives: Sequence[LabelledImage], seed: int) -> Parts:
    """Divides the labelled images, and more without objects, by chance."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(images: list[LabelledImage]) -> list[LabelledImage]:
        return [images[index] for index in torch.randperm(len(images), generator=generator).tolist()]

    shown = [image for image in boxed.images if len(image.labels)]
    empty = [*(image for image in boxed.images if not len(image.labels)), *negatives]
    held: list[LabelledImage] = []
    images_of = torch.zeros(len(boxed.classes), dtype=torch.int64)  # that show each class
    for image in shown:
        images_of[image.labels.unique()] += 1
    for image in drawn(shown) if len(shown) >= FEWEST else ():
        own = image.labels.unique()
        if len(held) < max(1, round(HELD * len(shown))) and bool((images_of[own] > 1).all()):
            images_of[own] -= 1
            held.append(image)
    quiet = drawn(empty)[: round(HELD * len(empty))] if len(empty) >= FEWEST else []
    kept = {id(image) for image in (*held, *quiet)}
    return Parts(
        boxed.only([image for image in (*boxed.images, *negatives) if id(image) not in kept]), held, quiet
    )


def new_ones(boxed: BoxedImages, negatives: Sequence[LabelledImage]) -> list[LabelledImage]:
    """The negatives that are not among the labelled images; an error for one in which objects are labelled.

    Limit: a copy is a file with the same bytes.
    """
    known = {image.content: image for image in boxed.images}
    for one in negatives:
        same = known.get(one.content)
        if same is not None and len(same.labels):
            raise LabelsError(
                f"'{written(one.path)}', of --negatives, is a copy of '{written(same.path)}', which has "
                "labelled objects: they would be learnt as background. Remove it from that folder"
            )
    return [one for one in negatives if one.content not in known]


def without_objects(folder: Path, max_pixels: int, *, skip: bool = False) -> list[LabelledImage]:
    """The images of a folder, taken to show no object; with `skip`, damaged ones are left out."""
    if not folder.is_dir():
        raise ValueError(f"--negatives must be a folder of images without objects; got '{folder}'")
    images, nothing = [], torch.zeros(0, 4, dtype=torch.float64)
    found = find_images(folder)
    warn_of_left_out(folder, found.left_out)
    for path in found.images:
        try:
            seen = check_image(path, max_pixels)
        except UnreadableImageError as error:
            said = f"'{written(path)}', of --negatives, cannot be read: {error}"
            if not skip:
                raise LabelsError(f"{said}; remove it, or give --skip-corrupt") from None
            warnings.warn(f"left out: {said}", SkippedLabelsWarning, stacklevel=3)
            continue
        none = torch.zeros(0, dtype=torch.int64)
        images.append(LabelledImage(path, seen.height, seen.width, seen.grey, nothing, none, nothing))
    if not images:
        raise ValueError(f"'{folder}' has no images to use as --negatives")
    return images
