"""How a run learns, as options."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scalechannels.training.config.options import require_choice, require_seed

Schedule = Literal["step", "cosine"]
Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True)
class TrainingConfig:
    """How it learns. The defaults are the paper's recipe; its batch size of 16 is our reconstruction."""

    epochs: int | None = None
    """Passes over the training images: 20 by default, 103 for CIFAR-10."""
    batch: int | None = None
    """Images in a step, over all processes: 16 by default, 256 for CIFAR-10."""
    rate: float | None = None
    """The first learning rate: 3e-3 by default, 3e-4 for swmax, 1e-3 for CIFAR-10."""
    floor: float = 5e-5
    """The learning rate never falls below this."""
    schedule: Schedule | None = None
    """step: divided by e every second epoch (default). cosine: to the floor after 75 epochs (CIFAR-10)."""
    period: int | None = None
    """The epochs of one step (2), or until the cosine reaches the floor (75)."""
    seed: int = 0
    """Of the initial weights, the order of the images and the dropout."""
    precision: Precision | None = None
    """bfloat16 autocast or float32. By default bfloat16 on a GPU and float32 on a CPU."""
    smoothing: float = 0.0
    """The share of the target that is spread evenly over all classes."""
    average: float = 0.0
    """The decay, per step, of a moving average of the weights, which is what is tested; 0 for none."""
    visible: float = 1.0
    """Every second image is cut off beyond a random share of its object's frame, at least this; 1: none."""
    detail: float = 1.0
    """Every second image loses detail, as if first made smaller by a factor of at least this; 1: none."""
    jitter: int = 0
    """Every window is shifted by at most so many of its pixels in each direction, at random."""
    flips: bool = False
    """CIFAR-10: mirror every second image left to right."""
    crops: int = 0
    """CIFAR-10: shift each image by at most so many pixels in each direction, mirrored beyond its edge."""
    images: int | None = None
    """Images in an epoch; by default as many as there are. If there are fewer, they come again and again."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "period", "images"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"training.{name} is at least 1, got {value}")
        if self.rate is not None and not 0 < self.rate < math.inf:
            raise ValueError(f"training.rate is positive, got {self.rate}")
        if not 0 <= self.floor < math.inf:
            raise ValueError(f"training.floor is zero or more, got {self.floor}")
        if self.rate is not None and self.rate < self.floor:
            raise ValueError(
                f"training.rate {self.rate:g} is below training.floor {self.floor:g}; lower both"
            )
        require_seed("training.seed", self.seed)
        for name in ("smoothing", "average"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"training.{name} is in [0, 1), got {getattr(self, name)}")
        if not 0 < self.visible <= 1:
            raise ValueError(f"training.visible is a share in (0, 1], got {self.visible}")
        if not 0 < self.detail <= 1:
            raise ValueError(f"training.detail is a share in (0, 1], got {self.detail}")
        for name in ("crops", "jitter"):
            if getattr(self, name) < 0:
                raise ValueError(f"training.{name} is zero or more pixels, got {getattr(self, name)}")
        if self.schedule is not None:
            require_choice("training.schedule", self.schedule, Schedule)
        if self.precision is not None:
            require_choice("training.precision", self.precision, Precision)

    def rate_at(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0; constant within an epoch."""
        assert self.rate is not None
        assert self.period is not None
        if self.schedule == "step":
            return max(self.rate * math.exp(-(epoch // self.period)), self.floor)
        progress = min(epoch / self.period, 1.0)
        return self.floor + (self.rate - self.floor) * (1 + math.cos(math.pi * progress)) / 2
