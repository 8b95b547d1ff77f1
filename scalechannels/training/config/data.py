"""What a run is trained on, as options."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Literal

from scalechannels.training.config.options import AT_LEAST_1, POSITIVE, SEED, refuse, require_values

DataName = Literal["strokes", "mnist", "cifar10", "folder"]
ImageColour = Literal["grey", "rgb"]
RANGES = {
    **dict.fromkeys(("object_size", "pixel_size"), POSITIVE),
    **dict.fromkeys(("reduce", "max_pixels"), AT_LEAST_1),
    "seed": SEED,
}
OF_OWN_IMAGES = (
    *("folder", "checksum", "colour", "validation", "object_size", "reduce"),
    *("pixel_size", "deploy_pixel_sizes", "skip_corrupt", "max_pixels"),
)
FIELD = 4
"""The plain CNN's field, and the frame of test images, in sizes of the object: the paper's 112 for 28."""
STROKES = 10_000
"""Built-in digits to train on, where no number is given."""


@dataclass(frozen=True)
class OwnImages:
    """What is known of own images once a run is resolved."""

    folder: str
    checksum: str
    colour: ImageColour
    validation: float
    object_size: float
    reduce: int

    @property
    def object_pixels(self) -> float:
        """The objects' size in pixels of the reduced images."""
        return self.object_size / self.reduce


@dataclass(frozen=True)
class DataConfig:
    """What it is trained on."""

    name: DataName = "strokes"
    """Built-in digits, MNIST Large Scale, CIFAR-10, or a folder of own images."""
    sizes: tuple[float, ...] = (1.0,)
    """The size of the training objects: one factor, or a smallest and a largest (log-uniform in between)."""
    samples: int | None = None
    """Number of training images, balanced over the classes. Default: all; 10,000 for the built-in digits."""
    seed: int = 0
    """Seed for the subset, the sizes drawn from a range, the built-in digits and the validation split."""
    redraw: bool = False
    """With two sizes: draw a new size for each image in every epoch (scale augmentation)."""
    hold_out: bool = False
    """CIFAR-10: keep the last 10,000 training images for validation."""
    # What follows is for own images alone. Where they lie is not what they are, so it is not compared.
    folder: str | None = field(default=None, compare=False)
    """Own images: a folder with a subfolder of images for each class. Implies --data.name folder."""
    checksum: str | None = None
    """Own images: checksum of all names and contents. Set automatically; checked when the run resumes."""
    colour: ImageColour | None = None
    """Own images: grey or RGB; by default RGB unless every image is grey."""
    validation: float | None = None
    """Own images: the share of each class held out for validation: 1/4 by default."""
    object_size: float | None = None
    """Own images: the objects' size in pixels, by default the median of the images' longer sides."""
    reduce: int | None = None
    """Own images: shrink all by this whole factor first. Default: as far as no detail is lost."""
    pixel_size: float | None = None
    """Own images: what a pixel measures, in any unit; with --deploy-pixel-sizes it sets the channels."""
    deploy_pixel_sizes: tuple[float, ...] | None = None
    """Own images: what a pixel will measure where the network is used, in the same unit; one or more."""
    skip_corrupt: bool = False
    """Own images: leave unreadable files out instead of refusing the folder."""
    max_pixels: int | None = None
    """Own images: files with more pixels count as unreadable; 48 million by default."""

    def __post_init__(self) -> None:
        require_values("data", self, RANGES)
        name, sizes, samples = self.name, self.sizes, self.samples
        refuse(
            len(sizes) not in (1, 2) or not _positive(sizes),
            f"data.sizes is one positive size or a low and a high one, got {sizes}",
        )
        refuse(len(sizes) == 2 and sizes[0] >= sizes[1], f"data.sizes goes from low to high, got {sizes}")
        few = samples is not None and samples < 10
        refuse(few, f"data.samples is at least 10, one for each class, got {samples}")
        # An option that would have no effect is an error: the run's name would promise what it does not do.
        refuse(
            self.redraw and (len(sizes) == 1 or (name == "mnist" and samples is not None)),
            "data.redraw needs a low and a high data.sizes, and for mnist no data.samples",
        )
        if name == "cifar10":
            refuse(sizes != (1.0,), f"CIFAR-10 has its own size 1, got data.sizes = {sizes}")
            refuse(samples is not None, f"CIFAR-10 takes all of its images, got data.samples = {samples}")
        else:
            refuse(self.hold_out, f"data.hold_out is for cifar10; {name} has validation images of its own")
        if name == "folder":
            self._check_own_images()
        advice = "add --data FOLDER" if self.folder is None else 'set data.name to "folder"'
        for option in OF_OWN_IMAGES if name != "folder" else ():
            refuse(
                getattr(self, option) not in (None, False),
                f"data.{option} is only for your own images, not for {name}: {advice}",
            )

    def _check_own_images(self) -> None:
        share, deployed = self.validation, self.deploy_pixel_sizes
        refuse(
            self.folder is None,
            "data.name folder needs data.folder, a folder with a subfolder for each class",
        )
        refuse(
            self.sizes != (1.0,) or self.samples is not None,
            "own images are trained on at their own size, all of them: no data.sizes or samples",
        )
        between = share is None or 0 < share < 1
        refuse(not between, f"data.validation is a share between 0 and 1, got {share}")
        refuse(
            (self.pixel_size is None) != (deployed is None),
            "data.pixel_size and data.deploy_pixel_sizes set the channels together: give both",
        )
        positive = deployed is None or (len(deployed) > 0 and _positive(deployed))
        refuse(not positive, f"data.deploy_pixel_sizes are positive, one or more, got {deployed}")

    @property
    def scale(self) -> float | tuple[float, float]:
        return self.sizes[0] if len(self.sizes) == 1 else (self.sizes[0], self.sizes[1])

    @property
    def own(self) -> OwnImages:
        """What is known of own images; an error before the run is resolved, and for other data."""
        known = {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(OwnImages)}
        if None in known.values():
            raise ValueError("this configuration is not resolved: call resolve() first")
        return OwnImages(**known)


def _positive(sizes: tuple[float, ...]) -> bool:
    return all(0 < size < math.inf for size in sizes)
