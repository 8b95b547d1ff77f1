"""Arrays to images: which shapes, colours and values are taken, and what is refused.

    (N, H, W)  (N, H, W, 1)          grey                    ┐
    (N, H, W, 3)                     colour                  ├─▶ a tensor (C, H, W) for each image: bytes as
    (N, H·W)                         flat rows, see `rows`   │   they are, all else from 0 to 1
    a list or an object array        images of any sizes     ┘

Law: what a number means is said by its type or by `value_range`, never by the other numbers beside it.
Unsigned integers of 8 or 16 bits have all of their range and floating point is from 0 to 1, as in image
files; anything else is refused until its range is given. Arrays of another type, range or number of colours
than those of `fit` are refused. Limit: what is wrong within the range nobody can see, such as images that are
darker by a constant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from scalechannels.training.config.own_images import SMALLEST_OBJECT

Range = tuple[float, float]
COLOURS = 3
TOLERANCE = 1e-6
"""By how much of its range a value may be outside: float32 rounds."""
NO_VALUES = ("P", "PA", "CMYK", "YCbCr", "LAB", "HSV")
"""Modes of Pillow's pictures whose numbers are neither grey values nor red, green and blue."""
LISTED = "(N, H, W), (N, H, W, 3), or a list of images (H, W) or (H, W, 3) of any sizes"


@dataclass(frozen=True)
class Kind:
    """What all images of a classifier have in common."""

    colours: int
    family: str
    """The type of their values: float, bool, uint8, …"""
    low: float
    high: float
    given: bool
    """Whether the range was said, and not taken from the type."""


def is_listed(X: Any) -> bool:
    """Whether images come one by one: a list, tuple or object array of arrays of two or three axes."""
    if isinstance(X, np.ndarray) and not (X.dtype == object and X.ndim == 1):
        return False
    if not isinstance(X, (list, tuple, np.ndarray)) or not len(X):
        return False
    return all(np.ndim(one) >= 2 for one in X)


def count_axes(X: Any) -> int:
    """Of anything that NumPy takes for an array."""
    if hasattr(X, "ndim"):
        return X.ndim
    try:
        return np.asarray(X).ndim
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"X must be {LISTED}; it is no array: {error}") from error


def listed(X: Any) -> list[np.ndarray]:
    """The images (H, W) or (H, W, C) of a list, Pillow's pictures among them."""
    for number, one in enumerate(X):
        if isinstance(one, Image.Image) and one.mode in NO_VALUES:
            raise ValueError(
                f"image {number} of X is a picture of Pillow's mode {one.mode}, whose numbers are no values "
                "of grey or of red, green and blue: give image.convert('RGB')"
            )
    return [np.asarray(one) for one in X]


def stacked(X: np.ndarray) -> list[np.ndarray]:
    """The images of an array (N, H, W) or (N, H, W, C)."""
    if X.ndim == 3 and X.shape[2] in (COLOURS, COLOURS + 1):
        raise ValueError(
            f"X of shape {X.shape} is ambiguous: grey images of {X.shape[2]} pixels across, or one colour "
            f"image? Give one image as X[None]; objects need {SMALLEST_OBJECT} pixels or more"
        )
    if X.ndim not in (3, 4):
        raise ValueError(f"X must be {LISTED}; got the shape {X.shape}")
    return list(X)


def shape_of_rows(features: int, given: Sequence[int] | None) -> tuple[int, ...]:
    """What a flat row stands for: the shape that was given, or a square grey image."""
    if given is not None:
        shape = tuple(given)
        if len(shape) not in (2, 3) or not all(isinstance(side, int) and side > 0 for side in shape):
            raise ValueError(f"image_shape must be (H, W) or (H, W, 3); got {given!r}")
        if math.prod(shape) != features:
            raise ValueError(
                f"image_shape {shape} has {math.prod(shape)} values, but the rows of X have {features}"
            )
        return shape
    side = math.isqrt(features)
    if side**2 != features or side < SMALLEST_OBJECT:
        raise ValueError(
            f"X has n_features={features}, which is no square grey image of {SMALLEST_OBJECT} pixels a side "
            f"or more: give image_shape=(H, W) or (H, W, 3), or X as {LISTED}"
        )
    return side, side


def kind_of(images: Sequence[np.ndarray], value_range: Range | None) -> Kind:
    """What the images to learn from have in common; an error where they differ or where nothing says it."""
    colours = {_colours(image, number) for number, image in enumerate(images)}
    if len(colours) > 1:
        raise ValueError("X has grey and colour images; give all as (H, W) or all as (H, W, 3)")
    families = {_family(image.dtype) for image in images}
    if len(families) > 1:
        raise ValueError(f"X has images of the types {', '.join(sorted(families))}; give all in one")
    (family,) = families
    low, high = _range(family, value_range)
    return Kind(colours.pop(), family, low, high, value_range is not None)


def tensors(images: Sequence[np.ndarray], kind: Kind) -> list[Tensor]:
    """Each image as (C, H, W): bytes as they are, all else from 0 to 1; an error for another kind."""
    return [_tensor(image, number, kind) for number, image in enumerate(images)]


def _tensor(image: np.ndarray, number: int, kind: Kind) -> Tensor:
    if (colours := _colours(image, number)) != kind.colours:
        fitted, got = ("grey" if count == 1 else "colour" for count in (kind.colours, colours))
        raise ValueError(f"image {number} of X is {got}, but fit had {fitted} images; convert it")
    family = _family(image.dtype)
    if family != kind.family and not kind.given:
        raise ValueError(
            f"image {number} of X has values of type {family}, but fit had {kind.family}, from "
            f"{kind.low:g} to {kind.high:g}: convert them, or say by value_range what all values mean"
        )
    if not np.isfinite(image).all():
        raise ValueError(f"image {number} of X has values that are NaN or infinite (inf)")
    low, high, slack = float(image.min()), float(image.max()), TOLERANCE * (kind.high - kind.low)
    if low < kind.low - slack or high > kind.high + slack:
        raise ValueError(
            f"the values of X must be from {kind.low:g} to {kind.high:g}, {_said(kind)}; image {number} has "
            f"{low:g} to {high:g}. Convert them, or give value_range=(low, high) before fit"
        )
    planes = np.moveaxis(image.reshape(*image.shape[:2], -1), -1, 0)  # (C, H, W)
    if family == "uint8" and (kind.low, kind.high) == (0, 255):
        return torch.from_numpy(planes.copy())
    shares = (planes.astype(np.float64) - kind.low) / (kind.high - kind.low)
    return torch.from_numpy(shares.clip(0, 1).astype(np.float32))


def _colours(image: np.ndarray, number: int) -> int:
    shape = image.shape
    if image.ndim not in (2, 3) or 0 in shape:
        raise ValueError(f"image {number} of X must be (H, W) or (H, W, 3); got the shape {shape}")
    colours = 1 if image.ndim == 2 else shape[2]
    if colours not in (1, COLOURS):
        hint = ""
        if shape[0] in (1, COLOURS):
            hint = "; colours come last: X.transpose(0, 2, 3, 1)"
        elif colours == COLOURS + 1:
            hint = "; put what is transparent on a background first"
        raise ValueError(f"image {number} of X must be (H, W) or (H, W, 3); got the shape {shape}{hint}")
    return colours


def _family(dtype: np.dtype) -> str:
    return "float" if dtype.kind == "f" else dtype.name


def _range(family: str, given: Range | None) -> Range:
    """The values of black and white."""
    if given is not None:
        low, high = given
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"value_range must be (low, high) with low < high; got {given!r}")
        return float(low), float(high)
    known = {"float": 1.0, "bool": 1.0, "uint8": 255.0, "uint16": 65535.0}
    if family not in known:
        raise ValueError(
            f"nothing says which values of type {family} are black and white: give value_range=(low, high), "
            "or X as uint8, uint16, bool, or floating point from 0 to 1"
        )
    return 0.0, known[family]


def _said(kind: Kind) -> str:
    return "as value_range says" if kind.given else f"as those of type {kind.family} are"
