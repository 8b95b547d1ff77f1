"""Rescaled Fashion-MNIST: clothes of any size in grey images, trained on at size 1, factors in [1/2, 2].

    item (28, 28) ──rescale by s──▶ clip [0, 255] ──▶ its ink over a black image of 72 x 72, from 0 to 1

At the largest factor an item has 56 pixels, so that it moves by 8 pixels each way in the frame of 72: the
images of `anywhere`, centred or not. Rescaled as CIFAR-10 is here (see `rescale`: bicubic, anti-aliased below
1, about pixel centres, no rounding), but on a black background without end, and without the smoothing and the
arctan of MNIST Large Scale. At size 1 an item at the centre has its original pixels.

The limit: factors above 1 add no detail, so that large items are blurred, as in every rescaled data set.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from scalechannels.data.pictures import Values
from scalechannels.data.rescale import rescaled_bytes

SIDE = 72
CLASSES = (
    *("T-shirt", "trouser", "pullover", "dress", "coat"),
    *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
)


@dataclass(frozen=True)
class Clothes:
    """Items of Fashion-MNIST as objects of `anywhere`."""

    images: Tensor  # (N, 28, 28) uint8
    labels: Tensor  # (N,) int64

    @property
    def values(self) -> Values:
        return "unit"

    def __getitem__(self, index: slice | Tensor) -> Clothes:
        return Clothes(self.images[index], self.labels[index])

    def render(self, scale: float | Tensor, size: int, *, device: torch.device | str = "cpu") -> Tensor:
        scales = scale.to(device) if isinstance(scale, Tensor) else scale
        return rescaled_bytes(self.images.to(device)[:, None], scales, size)
