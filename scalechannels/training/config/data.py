"""What a run learns from, as options."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from scalechannels.training.config.options import require_choice, require_seed

DataName = Literal["strokes", "mnist", "cifar10", "folder"]
ImageColour = Literal["grey", "rgb"]
OF_OWN_IMAGES = (
    *("folder", "checksum", "colour", "validation", "object_size", "reduce"),
    *("pixel_size", "deploy_pixel_sizes", "skip_corrupt", "max_pixels"),
)


@dataclass(frozen=True)
class DataConfig:
    """What is learnt from."""

    name: DataName = "strokes"
    """Built-in digits, MNIST Large Scale, CIFAR-10, or a folder of own images."""
    sizes: tuple[float, ...] = (1.0,)
    """The size of the training objects: one factor, or a smallest and a largest (log-uniform in between)."""
    samples: int | None = None
    """How many training images, balanced over the classes. By default all, and 10,000 built-in digits."""
    seed: int = 0
    """Which subset, which sizes of a range, which built-in digits, which own images are for validation."""
    redraw: bool = False
    """With two sizes: draw each image's anew in every epoch, which is augmentation by scale."""
    hold_out: bool = False
    """CIFAR-10: keep the last 10,000 training images for validation."""
    # What follows is for own images alone. Where they lie is not what they are, so it is not compared.
    folder: str | None = field(default=None, compare=False)
    """Own images: a folder with a subfolder of images for each class. Takes --data.name folder."""
    checksum: str | None = None
    """Own images: of all names and contents. Filled in, and checked when the run goes on."""
    colour: ImageColour | None = None
    """Own images: by default RGB unless every image is grey."""
    validation: float | None = None
    """Own images: the share of each class that is not learnt from: 1/4 by default."""
    object_size: float | None = None
    """Own images: the objects' size in pixels, by default the median of the images' longer sides."""
    reduce: int | None = None
    """Own images: all are made so many times smaller first; by default as far as no detail is lost."""
    pixel_size: float | None = None
    """Own images: what a pixel measures, in any unit; with deploy_pixel_sizes it sets the channels."""
    deploy_pixel_sizes: tuple[float, ...] | None = None
    """Own images: what a pixel will measure where the network is used, in the same unit; one or more."""
    skip_corrupt: bool = False
    """Own images: leave unreadable files out instead of refusing the folder."""
    max_pixels: int | None = None
    """Own images: larger files are unreadable; 48 million by default."""

    def __post_init__(self) -> None:
        require_choice("data.name", self.name, DataName)
        if len(self.sizes) not in (1, 2) or not all(0 < size < math.inf for size in self.sizes):
            raise ValueError(f"data.sizes is one positive size or a low and a high one, got {self.sizes}")
        if len(self.sizes) == 2 and self.sizes[0] >= self.sizes[1]:
            raise ValueError(f"data.sizes goes from low to high, got {self.sizes}")
        if self.samples is not None and self.samples < 10:
            raise ValueError(f"data.samples is at least 10, one for each class, got {self.samples}")
        require_seed("data.seed", self.seed)
        if self.redraw and (len(self.sizes) == 1 or (self.name == "mnist" and self.samples is not None)):
            raise ValueError("data.redraw draws sizes from a low to a high one, for all samples of mnist")
        # An option that would have no effect is an error: the run's name would promise what it does not do.
        if self.name == "cifar10" and self.sizes != (1.0,):
            raise ValueError(f"CIFAR-10 is learnt at its own size 1, got data.sizes = {self.sizes}")
        if self.name == "cifar10" and self.samples is not None:
            raise ValueError(f"CIFAR-10 is learnt from all of its images, got data.samples = {self.samples}")
        if self.name != "cifar10" and self.hold_out:
            raise ValueError(f"data.hold_out is for cifar10; {self.name} has validation images of its own")
        self._check_own_images()

    def _check_own_images(self) -> None:
        if self.name != "folder":
            given = [name for name in OF_OWN_IMAGES if getattr(self, name) not in (None, False)]
            if given:
                raise ValueError(
                    f"data.{given[0]} is for own images (--data FOLDER), not for {self.name}; "
                    "with data.folder, data.name is folder"
                )
            return
        if self.folder is None:
            raise ValueError("data.name folder needs data.folder, a folder with a subfolder for each class")
        if self.sizes != (1.0,) or self.samples is not None:
            raise ValueError("own images are learnt at their own size, all of them: no data.sizes or samples")
        if self.colour is not None:
            require_choice("data.colour", self.colour, ImageColour)
        if self.validation is not None and not 0 < self.validation < 1:
            raise ValueError(f"data.validation is a share between 0 and 1, got {self.validation}")
        for name in ("object_size", "pixel_size"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"data.{name} is positive, got {value}")
        for name in ("reduce", "max_pixels"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"data.{name} is at least 1, got {value}")
        if (self.pixel_size is None) != (self.deploy_pixel_sizes is None):
            raise ValueError(
                "data.pixel_size and data.deploy_pixel_sizes set the channels together: give both"
            )
        sizes = self.deploy_pixel_sizes
        if sizes is not None and not (sizes and all(0 < size < math.inf for size in sizes)):
            raise ValueError(f"data.deploy_pixel_sizes are positive, one or more, got {sizes}")

    @property
    def scale(self) -> float | tuple[float, float]:
        return self.sizes[0] if len(self.sizes) == 1 else (self.sizes[0], self.sizes[1])
