"""Images with their classes and sizes: what every generator here returns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor
from torch.utils.data import TensorDataset

Split = Literal["train", "validation", "test"]
Scale = float | tuple[float, ...]
"""The scale factors of a set: one for all images, a low and a high one, or three or more to choose from."""


def require_one_of(choices: Any, **given: str) -> None:
    """A clear error unless the given word, named by its keyword, is one of a Literal's."""
    for name, word in given.items():
        if word not in get_args(choices):
            raise ValueError(f"{name} must be one of {', '.join(get_args(choices))}; got {word!r}")


def drawn_scales(scale: Scale, draws: Tensor) -> Tensor:
    """The factor of each draw in [0, 1): log-uniform from a low to a high one, or one of three or more."""
    choices = scale if isinstance(scale, tuple) else (scale,)
    low, high = choices[0], choices[-1]
    if not all(0 < one < math.inf for one in choices) or (len(choices) == 2 and low > high):
        raise ValueError(f"scale must be positive, or a range (low, high); got {scale}")
    if len(choices) > 2:
        place = (draws * len(choices)).long()
        return torch.tensor(choices, dtype=draws.dtype, device=draws.device)[place]
    return low * (high / low) ** draws  # uniform on a logarithmic scale


@dataclass(frozen=True)
class ImageSet:
    """Images, classes and relative scales in memory, on one device."""

    images: Tensor  # (N, C, H, W) float32
    labels: Tensor  # (N,) int64
    scales: Tensor  # (N,) float64: the factor each image was rescaled by; NaN where it is not known
    places: Tensor | None = None  # (N, 2) float64: row and column of each object; None: at the centre
    in_memory: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.images.ndim != 4:
            raise ValueError(f"images must be (N, C, H, W); got the shape {tuple(self.images.shape)}")
        for name in ("labels", "scales"):
            shape = getattr(self, name).shape
            if shape != self.images.shape[:1]:
                raise ValueError(f"{name} must have the shape ({len(self.images)},); got {tuple(shape)}")
        if self.places is not None and self.places.shape != (len(self.images), 2):
            shape = self.places.shape
            raise ValueError(f"places must have the shape ({len(self.images)}, 2); got {tuple(shape)}")

    def __len__(self) -> int:
        return len(self.images)

    def to(self, device: torch.device | str) -> ImageSet:
        parts = (self.images, self.labels, self.scales, self.places)
        return ImageSet(*(None if part is None else part.to(device) for part in parts))  # type: ignore[arg-type]

    def dataset(self) -> TensorDataset:
        """A torch Dataset of (image, label) over the same memory, for a DataLoader."""
        return TensorDataset(self.images, self.labels)
