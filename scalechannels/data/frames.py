"""Images of differing sizes in one tensor, with every object at its own scale.

Resizing all images to one size would be the end of what scale channels are for: an object of 50 pixels and
one of 200 would look the same. So nothing here changes the scale of one image against another's:

- A frame is cropped or extended about the image's centre; beyond the image its edge pixels are repeated, as
  the networks see it. Where frame and image differ by an odd number of pixels the image lies half a pixel up
  and to the left.
- A reduction is the same factor for all images.
- A simulated size rescales an image about its centre (bicubic, anti-aliased below 1; see `rescale`).
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from scalechannels.data.rescale import full_precision, rescaling_matrices
from scalechannels.sampling import resample
from scalechannels.scales import ScaleGrid

Frame = int | tuple[int, int]
"""The side of a square frame in pixels, or its height and width."""


def framed(image: Tensor, frame: Frame) -> Tensor:
    """(C, H, W) in a frame: cropped about the centre where larger, its edges repeated elsewhere."""
    height, width = sides(frame)
    for axis, side in ((1, height), (2, width)):
        surplus = max(image.shape[axis] - side, 0)
        # Rounded so that cropping and extending err to the same side.
        image = image.narrow(axis, (surplus + 1) // 2, image.shape[axis] - surplus)
    top, left = (height - image.shape[1]) // 2, (width - image.shape[2]) // 2
    bottom, right = height - image.shape[1] - top, width - image.shape[2] - left
    return F.pad(image, (left, right, top, bottom), mode="replicate")


def sides(frame: Frame) -> tuple[int, int]:
    """The height and the width of a frame."""
    return (frame, frame) if isinstance(frame, int) else frame


def reduced(image: Tensor, factor: int) -> Tensor:
    """(C, H, W) with `factor` times fewer pixels along each side, rounded up.

    Pixels are averaged by a triangle, and the centre stays the centre: nothing is moved by the rounding.
    """
    if factor < 1:
        raise ValueError(f"the factor must be a whole number, 1 or more; got {factor}")
    if factor == 1:
        return image
    height, width = (-(-length // factor) for length in image.shape[1:])
    return resample(image[None], ScaleGrid.of(factor), (height, width), antialias=True)[0, 0]


def simulated(image: Tensor, size: float, frame: Frame) -> Tensor:
    """(C, H, W) as it would look at `size` times its size, in a frame, with values from 0 to 1.

    Limit: a camera that comes closer sees detail that no enlargement can make.
    """
    if size == 1:
        return framed(image, frame)
    lengths = zip(image.shape[1:], sides(frame), strict=True)
    rows, columns = (_matrix(size, length, side).to(image.device) for length, side in lengths)
    with full_precision():
        return (rows @ image @ columns.mT).clamp(0, 1)


def rescaled(image: Tensor, size: float) -> Tensor:
    """(C, H, W) to (C, ⌈size·H⌉, ⌈size·W⌉): the crop of an object that is `size` times as large."""
    height, width = (max(1, math.ceil(size * length - 1e-6)) for length in image.shape[1:])
    return simulated(image, size, (height, width))


@lru_cache(maxsize=256)
def _matrix(size: float, length: int, side: int) -> Tensor:
    scales = torch.tensor([size], dtype=torch.float64)
    return rescaling_matrices(scales, length, side, continuation="border")[0].float()  # (side, length)
