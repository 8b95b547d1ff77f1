"""MNIST-Scale: MNIST digits of sizes from 0.3 to 1 in images of the original 28 x 28 pixels.

The protocol that scale-equivariant networks are compared by: 10,000 digits for training, 2,000 for validation
and 50,000 for testing, all of them at sizes drawn uniformly (not log-uniformly) from 0.3 to 1. Papers average
over several draws; here the seed makes the draw, of the digits of each split and of their sizes.

    digit (28, 28) ──rescale by s about the centre──▶ clip [0, 255] ──▶ (1, 28, 28), from 0 to 1

What papers leave open was chosen: bicubic, anti-aliased, about pixel centres, no rounding (see `rescale`).

The limit: the three splits are drawn from all 70,000 digits of MNIST, so its own test digits are in all of
them. A network that was trained on MNIST, or on a split of another seed, has seen some of the test digits.
"""

from __future__ import annotations

from pathlib import Path

import torch

from scalechannels.data.image_set import ImageSet, Scale, Split, drawn_scales, require_one_of
from scalechannels.data.mnist_large_scale import balanced_subset
from scalechannels.data.rescale import rescaled_bytes
from scalechannels.data.sources import TrainAndTest, load_mnist

SMALLEST, LARGEST = 0.3, 1.0
COUNTS: dict[Split, int] = {"train": 10_000, "validation": 2_000, "test": 50_000}


class MnistScale:
    """Makes the splits of a draw, on any device; of fewer digits than MNIST's, smaller ones."""

    def __init__(
        self,
        root: Path | str | None = None,
        *,
        mnist: TrainAndTest | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        data = load_mnist(root) if mnist is None else mnist
        self.images = torch.cat([data.train_images, data.test_images])
        self.labels = torch.cat([data.train_labels, data.test_labels])
        self.device = torch.device(device)

    def make(
        self,
        split: Split,
        scale: Scale = (SMALLEST, LARGEST),
        seed: int = 0,
        *,
        sizes_seed: int | None = None,
        samples: int | None = None,
    ) -> ImageSet:
        """A split of the seed's draw.

        scale       a low and a high one: uniform between them; else as in `drawn_scales`
        sizes_seed  where given, the same digits have other sizes
        samples     so many of the split's digits, balanced over the classes
        """
        require_one_of(Split, split=split)
        several = scale if isinstance(scale, tuple) else (scale,)
        if not all(SMALLEST <= one <= LARGEST for one in several):
            raise ValueError(f"scale must be from {SMALLEST} to {LARGEST}; got {scale}")
        chosen = self._chosen(split, seed)
        # Not the seed of the digits: the order of a permutation would tell the sizes.
        generator = torch.Generator().manual_seed(1 + (seed if sizes_seed is None else sizes_seed))
        draws = torch.rand(len(self.labels), generator=generator, dtype=torch.float64)[chosen]
        if len(several) == 2:
            low, high = several
            scales = low + (high - low) * draws
        else:
            scales = drawn_scales(scale, draws)
        if samples is not None:
            kept = balanced_subset(self.labels[chosen], samples, seed)
            chosen, scales = chosen[kept], scales[kept]
        scales = scales.to(self.device)
        images = rescaled_bytes(self.images[chosen].to(self.device)[:, None], scales)
        return ImageSet(images, self.labels[chosen].to(self.device), scales)

    def _chosen(self, split: Split, seed: int) -> torch.Tensor:
        """Which digits a split has: after those of the splits before it, in an order drawn by the seed."""
        order = torch.randperm(len(self.labels), generator=torch.Generator().manual_seed(seed))
        share = min(1.0, len(order) / sum(COUNTS.values()))
        first = 0
        for name, count in COUNTS.items():
            last = first + int(count * share)
            if name == split:
                return order[first:last]
            first = last
        raise AssertionError(split)
