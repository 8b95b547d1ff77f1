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

from scalechannels.data.image_set import ImageSet, Scale, Split, drawn_scales, require_one_of
from scalechannels.data.rescale import as_scales, rescale
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

    def make(self, split: Split, factor: Scale = 1.0, *, hold_out: bool = False, seed: int = 0) -> ImageSet:
        """Images with values from 0 to 1, at one factor, in a range or at several, drawn by the seed.

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
        made = rescale_cifar10(images.to(self.device), scales if isinstance(factor, tuple) else factor)
        return ImageSet(made, labels.to(self.device), scales.to(self.device))


def rescale_cifar10(images: Tensor, factor: float | Tensor, *, chunk: int = 1000) -> Tensor:
    """Images (N, C, n, n) of bytes at one factor or one each, as float32 of the same shape from 0 to 1.

    At the factor 1 they are the original pixels. Made `chunk` images at a time, which bounds the memory.
    """
    if images.ndim != 4 or images.shape[-1] != images.shape[-2]:
        raise ValueError(f"images must be square, (N, C, n, n); got the shape {tuple(images.shape)}")
    factors = as_scales(factor, len(images), images.device)
    result = torch.empty(images.shape, dtype=torch.float32, device=images.device)
    for start in range(0, len(images), chunk):
        part = slice(start, start + chunk)
        own = factors[part] if len(factors) == len(images) > 1 else factors[0]
        result[part] = rescale(images[part], own, continuation="reflect").clamp_(0, 255).div_(255)
    return result
