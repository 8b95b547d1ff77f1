"""Images that lie in memory as arrays, in place of a folder of files: what is trained on is the same.

Law: of the same pixels, classes and options, a folder of PNG files and an `ImageArrays` train the same
weights, bit for bit, where they come in the same order and the same ones are held out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from scalechannels.data.folder import ImageFolder, Parts


@dataclass(frozen=True)
class ImageArrays(ImageFolder):
    """Images with their classes, and how many of each class are not trained on.

    Its paths are the numbers of the images: nothing is read from there.
    """

    pixels: tuple[Tensor, ...] = ()  # (C, H, W) each: bytes, or values from 0 to 1
    held_out: float = 0.0  # the share of each class to choose by; nothing is kept for a report

    @classmethod
    def of(
        cls, pixels: Sequence[Tensor], labels: Sequence[int], classes: Sequence[str], held_out: float = 0.0
    ) -> ImageArrays:
        """Images (C, H, W) of one number of colours, and the class of each, counted from 0."""
        return cls(
            Path(),
            tuple(classes),
            tuple(Path(str(number)) for number in range(len(pixels))),
            tuple(labels),
            grey=len(pixels[0]) == 1,
            sizes=tuple((one.shape[1], one.shape[2]) for one in pixels),
            pixels=tuple(pixels),
            held_out=held_out,
        )

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return from_zero_to_one(self.pixels[index]), self.labels[index]

    @cached_property
    def contents(self) -> tuple[str, ...]:
        """The checksum of each image: copies of one have the same."""
        return tuple(
            hashlib.sha256(f"{one.dtype} {tuple(one.shape)}".encode() + one.contiguous().numpy().tobytes())
            .hexdigest()
            for one in self.pixels
        )  # fmt: skip

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        return tuple(range(len(self)))

    @cached_property
    def sides(self) -> list[tuple[int, int]]:
        return list(self.sizes)

    def parts(self, validation: float, test: float, seed: int = 0) -> Parts:
        """As `held_out` says, whatever a configuration says of the shares of a folder."""
        return super().parts(self.held_out, 0.0, seed)

    def _subset(self, indices: Sequence[int]) -> ImageArrays:
        kept: Any = super()._subset(indices)
        return replace(kept, pixels=tuple(self.pixels[index] for index in indices))


def from_zero_to_one(pixels: Tensor) -> Tensor:
    """Bytes as an image file's are read; other values are from 0 to 1 already."""
    return pixels.float().div_(255) if pixels.dtype == torch.uint8 else pixels
