"""Every data set: what it is, but for its images, which `training/datasets.py` opens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scalechannels.data.sizes import CIFAR_SIZES, EMOJI_SIZES, MNIST_SCALE_SIZES, MNIST_SIZES, OWN_SIZES

Schedule = Literal["step", "cosine"]
DataName = Literal["strokes", "mnist", "fashion", "mnist-scale", "cifar10", "emoji", "folder"]
ANYWHERE = 64
"""The side of an image with an object anywhere, in pixels, where none is given."""
STROKES = 10_000
"""Built-in digits to train on, where no number is given."""


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """What a data set is, whatever is asked of it. The defaults are the paper's recipe for MNIST."""

    title: str
    test_sizes: tuple[float, ...]
    """The sizes that it is tested at, where none are given."""
    sizes: tuple[float, float] = (0.0, math.inf)
    """The smallest and the largest size that it can have."""
    side: int | None = 28
    """Of the square that holds an object of size 1, and of a window, in pixels; your own images say it."""
    image: int = 112
    """The side of an image in pixels."""
    values: Literal["digits", "unit"] = "digits"
    """The range of its values: −0.76 to 0.76, or 0 to 1."""
    outside: Literal["border", "reflect"] = "border"
    """What continues an image beyond its edge."""
    smooth: bool = False
    """Its objects are smoothed in proportion to their size."""
    takes: tuple[
        Literal["samples", "redrawn samples", "hold_out", "places", "background", "redrawn backgrounds"], ...
    ] = ()
    """Which options it has beside those of all: some of its images, these redrawn, a part for validation,
    objects anywhere in images of any size, these in front of a background and several in one image, new
    backgrounds in every epoch."""
    roaming: int = ANYWHERE
    """The side of an image with an object anywhere in it."""
    samples: int | None = None
    """How many images are trained on, where no number is given; None: all."""
    backbone: Literal["mnist", "cifar10"] = "mnist"
    """Whose backbone of the paper it has."""
    low: float = 0.5
    high: float = 8.0
    dropout: float = 0.15
    epochs: int = 20
    batch: int = 16
    rate: float = 3e-3
    schedule: Schedule = "step"
    period: int | None = 75
    """Epochs until a cosine reaches the floor; None: all."""

    @property
    def of_user(self) -> bool:
        """Whether it is a folder of your own images."""
        return self.side is None

    @property
    def filled(self) -> bool:
        """Whether its objects fill their images, so that there is nothing to search."""
        return self.side == self.image


DATA_SETS: dict[DataName, DataSet] = {
    "strokes": DataSet(
        title="The built-in digits",
        test_sizes=MNIST_SIZES,
        smooth=True,
        takes=("samples", "redrawn samples", "places", "background"),
        samples=STROKES,
    ),
    "mnist": DataSet(
        title="MNIST Large Scale",
        test_sizes=MNIST_SIZES,
        smooth=True,
        takes=("samples", "places", "background"),
    ),
    "fashion": DataSet(
        title="Rescaled Fashion-MNIST",
        test_sizes=CIFAR_SIZES,
        sizes=(CIFAR_SIZES[0], CIFAR_SIZES[-1]),
        image=72,
        values="unit",
        takes=("samples", "redrawn samples", "places", "background"),
        roaming=72,
        high=4.0,
    ),
    "mnist-scale": DataSet(
        title="MNIST-Scale",
        test_sizes=MNIST_SCALE_SIZES,
        sizes=(MNIST_SCALE_SIZES[0], MNIST_SCALE_SIZES[-1]),
        image=28,
        values="unit",
        takes=("samples", "redrawn samples"),
        low=0.25,
        high=1.0,
    ),
    "cifar10": DataSet(
        title="CIFAR-10",
        test_sizes=CIFAR_SIZES,
        sizes=(CIFAR_SIZES[0], CIFAR_SIZES[-1]),
        side=32,
        image=32,
        values="unit",
        outside="reflect",
        takes=("hold_out", "places"),
        backbone="cifar10",
        high=2.0,
        dropout=0.0,
        epochs=103,
        batch=256,
        rate=1e-3,
        schedule="cosine",
    ),
    "emoji": DataSet(
        title="Emoji",
        test_sizes=EMOJI_SIZES,
        sizes=(EMOJI_SIZES[0], EMOJI_SIZES[-1]),
        side=64,
        image=512,
        values="unit",
        takes=("hold_out", "redrawn backgrounds"),
        backbone="cifar10",
        low=0.25,
        dropout=0.2,
        epochs=30,
        batch=32,
        rate=1e-3,
        schedule="cosine",
        period=None,
    ),
    "folder": DataSet(
        title="A folder", test_sizes=OWN_SIZES, side=None, values="unit", schedule="cosine", period=None
    ),
}
"""Everything that a data set is, but for its images: `training/datasets.py` opens these."""
