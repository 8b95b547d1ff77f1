"""Images with their classes and sizes: what every generator here returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.utils.data import TensorDataset

Split = Literal["train", "validation", "test"]


def require_split(split: str) -> None:
    if split not in get_args(Split):
        raise ValueError(f"a split is one of {', '.join(get_args(Split))}, got {split!r}")


@dataclass(frozen=True)
class ImageSet:
    """Images, classes and relative scales in memory, on one device."""

    images: Tensor  # (N, C, H, W) float32
    labels: Tensor  # (N,) int64
    scales: Tensor  # (N,) float64: the factor each image was rescaled by; NaN where it is not known

    def __post_init__(self) -> None:
        if self.images.ndim != 4:
            raise ValueError(f"images (N, C, H, W) are needed, got the shape {tuple(self.images.shape)}")
        for name in ("labels", "scales"):
            shape = getattr(self, name).shape
            if shape != self.images.shape[:1]:
                raise ValueError(f"one of {name} for each of {len(self.images)} images, got {tuple(shape)}")

    def __len__(self) -> int:
        return len(self.images)

    def to(self, device: torch.device | str) -> ImageSet:
        return ImageSet(self.images.to(device), self.labels.to(device), self.scales.to(device))

    def dataset(self) -> TensorDataset:
        """A torch Dataset of (image, label) over the same memory, for a DataLoader."""
        return TensorDataset(self.images, self.labels)
