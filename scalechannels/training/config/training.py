"""How a run trains, as options."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from scalechannels.training.config.options import (
    AT_LEAST_1,
    BELOW_1,
    POSITIVE,
    SEED,
    SHARE,
    ZERO_OR_MORE,
    refuse,
    require_values,
)

Schedule = Literal["step", "cosine"]
Precision = Literal["float32", "bfloat16"]
RANGES = {
    **dict.fromkeys(("epochs", "batch", "period", "images"), AT_LEAST_1),
    **dict.fromkeys(("floor", "crops", "jitter"), ZERO_OR_MORE),
    **dict.fromkeys(("smoothing", "average"), BELOW_1),
    **dict.fromkeys(("visible", "detail"), SHARE),
    "rate": POSITIVE,
    "seed": SEED,
}


@dataclass(frozen=True)
class TrainingConfig:
    """How it trains. The defaults are the paper's recipe; its batch size of 16 is our reconstruction."""

    epochs: int | None = None
    """Passes over the training images: 20 by default, 103 for CIFAR-10."""
    batch: int | None = None
    """Images in a step, over all processes: 16 by default, 256 for CIFAR-10."""
    rate: float | None = None
    """The initial learning rate: 3e-3 by default, 3e-4 for swmax, 1e-3 for CIFAR-10."""
    floor: float = 5e-5
    """The learning rate never falls below this."""
    schedule: Schedule | None = None
    """step: divided by e every two epochs (default). cosine: to the floor after 75 epochs (CIFAR-10)."""
    period: int | None = None
    """Epochs for each step (default 2), or until the cosine reaches the floor (default 75)."""
    seed: int = 0
    """Seed for the initial weights, the order of the images and the dropout."""
    precision: Precision | None = None
    """bfloat16 autocast or float32. By default bfloat16 on a GPU and float32 on a CPU."""
    smoothing: float = 0.0
    """The share of the target that is spread evenly over all classes."""
    average: float = 0.0
    """Decay for each step of a moving average of the weights, which is then tested; 0 for none."""
    visible: float = 1.0
    """Crop half of the images, at random, to a share of the object's frame between this and 1; 1 for none."""
    detail: float = 1.0
    """Blur half of the images, at random, as if shrunk by a factor between this and 1; 1 for none."""
    jitter: int = 0
    """Shift every window at random, by at most this many pixels in each direction."""
    flips: bool = False
    """CIFAR-10: flip each image left to right with probability 1/2."""
    crops: int = 0
    """CIFAR-10: shift each image by at most this many pixels in each direction, reflected at its edges."""
    images: int | None = None
    """Images in an epoch; by default all. If there are fewer than this, they are repeated."""

    def __post_init__(self) -> None:
        require_values("training", self, RANGES)
        below = self.rate is not None and self.rate < self.floor
        refuse(below, f"training.rate {self.rate} is below training.floor {self.floor}; lower both")

    @property
    def augments(self) -> bool:
        """Whether each step changes what it sees at random."""
        return self.flips or self.crops > 0 or self.jitter > 0 or self.visible < 1 or self.detail < 1


@dataclass(frozen=True, kw_only=True)
class ResolvedTraining(TrainingConfig):
    """The same with nothing left open. `field()`, else they would inherit None as their default."""

    epochs: int = field()
    batch: int = field()
    rate: float = field()
    schedule: Schedule = field()
    period: int = field()
    precision: Precision = field()

    def rate_at(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0; constant within an epoch."""
        if self.schedule == "step":
            return max(self.rate * math.exp(-(epoch // self.period)), self.floor)
        progress = min(epoch / self.period, 1.0)
        return self.floor + (self.rate - self.floor) * (1 + math.cos(math.pi * progress)) / 2
