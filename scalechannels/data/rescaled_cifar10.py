"""Rescaled CIFAR-10: images of the same 32 x 32 pixels; the paper trains on the original ones.

Factors lie in [1/2, 2]. Below 1 the image shrinks and is continued by mirroring; above 1 its centre is
cropped. The paper says no more, so: bicubic (Keys, a = −1/2), anti-aliased below 1, mirrored about the edge
pixel, which is not repeated (see `rescale`); over- and undershoot is clipped to the range of the pixels. The
mirrored continuation is that of the original image, rescaled with it: mirroring the shrunken image instead
would need its size to be a whole number of pixels.

The limit: CIFAR-10 is at the edge of being undersampled and tightly cropped, so these images are not what a
camera would have seen at another distance. That is what the paper tests here.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from scalechannels.data.anywhere import ObjectPlaces, drawn_offsets
from scalechannels.data.image_set import ImageSet, Scale, Split, drawn_scales, require_one_of
from scalechannels.data.rescale import rescaled_bytes
from scalechannels.data.sources import TrainAndTest, load_cifar10

SMALLEST, LARGEST = 0.5, 2.0
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
VALIDATION = 10_000


class RescaledCifar10:
    """Makes sets from CIFAR-10, on any device."""

    def __init__(
        self,
        root: Path | str | None = None,
        *,
        cifar10: TrainAndTest | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.cifar10 = load_cifar10(root) if cifar10 is None else cifar10
        self.device = torch.device(device)

    def make(
        self,
        split: Split,
        factor: Scale = 1.0,
        *,
        hold_out: bool = False,
        seed: int = 0,
        side: int | None = None,
        places: ObjectPlaces = "centre",
    ) -> ImageSet:
        """Images with values from 0 to 1, at one factor, in a range or at several, drawn by the seed.

        `side` is that of the images, by default the original one. Anywhere, the rescaled photo lies at a
        random place of a larger image, as far as it stays inside, continued by mirroring on all sides.

        All 50,000 training images or, with `hold_out`, their first 40,000 for training and their last 10,000
        for validation: the paper chose its schedule with these held out, and trained on all.
        """
        require_one_of(Split, split=split)
        if split == "validation" and not hold_out:
            raise ValueError(
                "validation images exist with hold_out=True only: without, they are training images"
            )
        several = factor if isinstance(factor, tuple) else (factor,)
        if not all(SMALLEST <= one <= LARGEST for one in several):
            raise ValueError(f"factor must be from {SMALLEST} to {LARGEST}; got {factor}")
        data = self.cifar10
        if split == "test":
            images, labels = data.test_images, data.test_labels
        else:
            held = VALIDATION if hold_out else 0
            if held >= len(data.train_images):
                raise ValueError(
                    f"{held} validation images leave none of {len(data.train_images)} for training"
                )
            first = len(data.train_images) - held
            part = slice(0, first) if split == "train" else slice(first, None)
            images, labels = data.train_images[part], data.train_labels[part]
        generator = torch.Generator().manual_seed(seed)
        scales = drawn_scales(factor, torch.rand(len(images), generator=generator, dtype=torch.float64))
        images, size = images.to(self.device), images.shape[-1] if side is None else side
        offsets = where = None
        if places == "anywhere":
            offsets = drawn_offsets(scales, size, generator, box=images.shape[-1])
            where = ((size - 1) / 2 + offsets.double()).to(self.device)
        own = scales.to(self.device) if isinstance(factor, tuple) else factor
        made = rescale_cifar10(images, own, size, offsets)
        return ImageSet(made, labels.to(self.device), scales.to(self.device), where)


def rescale_cifar10(
    images: Tensor,
    factor: float | Tensor,
    side: int | None = None,
    offsets: Tensor | None = None,
    *,
    chunk: int = 1000,
) -> Tensor:
    """Images (N, C, n, n) of bytes at one factor or one each, as float32 (N, C, side, side) from 0 to 1.

    `side` is n by default. At the factor 1 and that side they are the original pixels. `offsets` (N, 2) as in
    `rescale`.
    """
    if images.ndim != 4:
        raise ValueError(f"images must be square, (N, C, n, n); got the shape {tuple(images.shape)}")
    return rescaled_bytes(images, factor, side, continuation="reflect", offsets=offsets, chunk=chunk)
