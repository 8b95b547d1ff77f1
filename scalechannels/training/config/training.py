"""The options of [training]: how a run trains. Each has its range beside it; its docstring is its help."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from scalechannels.training.config.data_sets import Schedule
from scalechannels.training.config.options import (
    Count,
    Degrees,
    Detail,
    Factor,
    Many,
    NotNegative,
    Pixels,
    Rate,
    Seed,
    Share,
    UpToOne,
    refuse,
    require_values,
)

Precision = Literal["float32", "bfloat16"]
ClassWeights = Literal["none", "balanced"]
FLOOR = 5e-5
"""Of the learning rate, as in the paper."""


@dataclass(frozen=True)
class TrainingConfig:
    """How it trains. The defaults are the paper's recipe; its batch size of 16 is our reconstruction."""

    epochs: Count | None = None
    """Passes over the training images. Default: 20; 60 for CIFAR-10 (paper: 103), see --recipe; chosen from
    your own images."""
    batch: Count | None = None
    """Images in a step, over all processes. Default: 16, or fewer for a few images of your own; 256 for
    CIFAR-10."""
    rate: Rate | None = None
    """The initial learning rate. Default: 3e-3; 3e-4 for swmax; 1e-3 for CIFAR-10."""
    floor: NotNegative | None = field(default=None, metadata={"unnamed": FLOOR})
    """The learning rate never falls below this. Default: 5e-5; 0 for CIFAR-10, see --recipe."""
    schedule: Schedule | None = None
    """step: divided by e every training.period epochs (default). cosine: down to the floor after
    training.period epochs (default for CIFAR-10 and your own images)."""
    period: Count | None = None
    """Epochs for each step (default 2), or until the cosine reaches the floor (default: all epochs; by the
    paper's recipe for CIFAR-10, 75)."""
    seed: Seed = 0
    """Seed for the initial weights, the order of the images and the dropout."""
    precision: Precision | None = None
    """bfloat16 autocast or float32. Default: bfloat16 on a GPU, float32 on a CPU."""
    smoothing: UpToOne | None = field(default=None, metadata={"unnamed": 0.0})
    """The share of the target that is spread evenly over all classes. Default: see --recipe; paper: 0."""
    average: UpToOne | None = field(default=None, metadata={"unnamed": 0.0})
    """Test a moving average of the weights, with this decay per step. 0: test the weights themselves.
    Default: see --recipe; paper: 0."""
    average_corrected: bool | None = field(default=None, metadata={"unnamed": False})
    """Leave the initial weights out of the average, and recompute batch norm's statistics. Default: on."""
    visible: Share | None = field(default=None, metadata={"unnamed": 1.0})
    """Crop every second image, on average, so that only a part of the object stays: a random share of it, at
    least this. 1 turns it off. Default: see --recipe; paper: 1."""
    detail: Detail | None = field(default=None, metadata={"unnamed": 1.0})
    """Blur every second image, on average, as if it had been rescaled by a random factor between this,
    at least 0.01, and 1. 1 turns it off. Default: see --recipe; paper: 1."""
    jitter: Pixels = 0
    """Foveated networks: shift every window at random, by at most this many of its pixels."""
    flips: bool | None = field(default=None, metadata={"unnamed": False})
    """Flip each image left to right with probability 1/2. Default: off; on for CIFAR-10, see --recipe."""
    crops: Pixels | None = field(default=None, metadata={"unnamed": 0})
    """Shift each image at random, by at most this many pixels in each direction. Default: 0; 4 for CIFAR-10,
    see --recipe."""
    rotation: Degrees = field(default=0.0, metadata={"unnamed": 0.0})
    """Turn each image at random, by at most this many degrees in each direction."""
    stretch: UpToOne = field(default=0.0, metadata={"unnamed": 0.0})
    """Stretch each image along a random direction and shrink it as much across, so that areas stay. 0.1: by
    up to a tenth."""
    colour: UpToOne = field(default=0.0, metadata={"unnamed": 0.0})
    """Change the brightness, contrast and saturation of each image at random, each by at most this share.
    Not for digits."""
    decoys: Factor = field(default=1.0, metadata={"unnamed": 1.0})
    """Looking everywhere: also look at each image up to so many times finer and coarser than the channels do,
    and learn not to take what is seen there for another class. 1 turns it off."""
    pretrained_share: Share = 0.1
    """A backbone with weights from ImageNet: all its layers but the last learn at this share of the rate."""
    images: Many | None = None
    """Images in an epoch. Default: all. If there are fewer than this, they are repeated."""
    class_weights: ClassWeights | None = field(default=None, metadata={"unnamed": "none"})
    """balanced: in the loss every class counts the same, however few images it has. Default: none; balanced
    for your own images if a class has three times as many as another."""
    patience: Count | None = None
    """Your own images: stop after so many epochs without a smaller loss on the validation images, and keep
    the best epoch. Default: off."""

    def __post_init__(self) -> None:
        require_values("training", self)
        floor = FLOOR if self.floor is None else self.floor
        below = self.rate is not None and self.rate < floor
        refuse(below, f"training.rate must be at least training.floor, {floor}; got {self.rate}")
        refuse(
            bool(self.average_corrected) and not self.average,
            "training.average_corrected needs training.average, the average that it corrects",
        )


# In what follows nothing is left open. `field()`, else it would inherit None as its default.


@dataclass(frozen=True, kw_only=True)
class ResolvedTraining(TrainingConfig):
    """How it trains. A run of an earlier version has no corrected average, and does not say so."""

    epochs: Count = field()
    batch: Count = field()
    rate: Rate = field()
    schedule: Schedule = field()
    period: Count = field()
    precision: Precision = field()
    floor: NotNegative = field(default=FLOOR, metadata={"unnamed": FLOOR})
    smoothing: UpToOne = field(default=0.0, metadata={"unnamed": 0.0})
    average: UpToOne = field(default=0.0, metadata={"unnamed": 0.0})
    average_corrected: bool = field(default=False, metadata={"unnamed": False})
    visible: Share = field(default=1.0, metadata={"unnamed": 1.0})
    detail: Detail = field(default=1.0, metadata={"unnamed": 1.0})
    flips: bool = field(default=False, metadata={"unnamed": False})
    crops: Pixels = field(default=0, metadata={"unnamed": 0})
    class_weights: ClassWeights = field(default="none", metadata={"unnamed": "none"})

    @property
    def augments(self) -> bool:
        """Whether each step changes what it sees at random."""
        changed = self.visible < 1 or self.detail < 1 or self.rotation > 0 or self.stretch > 0
        changed = changed or self.colour > 0 or self.flips or self.crops > 0 or self.jitter > 0
        return changed or self.decoys > 1

    def rate_at(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0; constant within an epoch."""
        if self.schedule == "step":
            return max(self.rate * math.exp(-(epoch // self.period)), self.floor)
        progress = min(epoch / self.period, 1.0)
        return self.floor + (self.rate - self.floor) * (1 + math.cos(math.pi * progress)) / 2
