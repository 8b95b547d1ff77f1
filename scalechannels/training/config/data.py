"""The options of [data]: what is trained on. Each has its range beside it; its docstring is its help."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Literal

from scalechannels.data.sizes import CIFAR_SIZES
from scalechannels.files import require_utf8
from scalechannels.training.config.data_sets import DATA_SETS, DataName, DataSet
from scalechannels.training.config.options import (
    Count,
    ObjectSize,
    Positive,
    Seed,
    Side,
    Whole,
    option_name,
    refuse,
    require_values,
)

ImageColour = Literal["grey", "rgb"]
Images = Literal["crops", "frames"]
ObjectPlaces = Literal["centre", "anywhere"]
Surroundings = Literal["plain", "noisy", "cluttered"]

OF_OWN_IMAGES = (
    *("checksum", "colour", "validation", "object_size", "reduce"),
    *("pixel_size", "deploy_pixel_sizes", "skip_corrupt", "max_pixels"),
    *("test", "images", "resize", "range", "validation_too"),
)
FIELD = 4
"""The plain CNN's field, and the frame of test images, in sizes of the object: the paper's 112 for 28."""
FARTHEST = 1000
"""How many times larger or smaller objects may be in use than in training."""
NEXT_DRAW = 1_000_003
"""From the seed of one drawing of sizes to that of the next."""
SEARCHED = 128
"""The side of an image with several objects, in pixels, where none is given."""
OBJECTS = 3
"""In an image that is searched for one of a class, where no number is given."""


@dataclass(frozen=True)
class OwnImages:
    """What is known of your own images once a run is resolved."""

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
    """strokes: built-in digits. mnist: MNIST Large Scale. fashion: rescaled Fashion-MNIST.
    mnist-scale: MNIST-Scale. cifar10: CIFAR-10. emoji: emoji of five designs. folder: yours, see --data."""
    sizes: tuple[ObjectSize, ...] = (1.0,)
    """Size of the training objects; 1 is the size in the original images. One number: that size. Two: all
    sizes between them. Three or more: only these sizes."""
    samples: int | None = None
    """Number of training images, balanced over the classes. Default: all; 10,000 for the built-in digits."""
    seed: Seed = 0
    """Seed for the subset, the sizes that are drawn, the built-in digits and the validation split."""
    redraw: bool = False
    """With several sizes: draw a new one for each image in every epoch (scale augmentation). Emoji: new
    backgrounds, too."""
    hold_out: bool = False
    """CIFAR-10: keep the last 10,000 training images for validation. Emoji: one of four designs."""
    # What follows is for your own images alone. Where they lie is not what they are: it is not compared.
    folder: str | None = field(default=None, compare=False)
    """Your own images: a folder with a subfolder of images for each class, and perhaps one none-of-these with
    images of no class. Implies --data.name folder."""
    checksum: str | None = None
    """Your own images: checksum of all names and contents. Set automatically; checked when a run resumes."""
    colour: ImageColour | None = None
    """Your own images: grey or RGB. Default: RGB unless every image is grey."""
    validation: float | None = None
    """Your own images: the share of each class held out to choose by. Default: 1/5, or as folders say."""
    test: float | None = None
    """Your own images: the share of each class held out for the report. Default: 1/5, or as folders say."""
    images: Images | None = None
    """Your own images: crops of the object, later ones too; or frames that stay, in which objects are smaller
    or larger. Default: frames if objects stand out and fill less than 3/5 of the longer side."""
    validation_too: bool = False
    """Your own images: train on the validation images as well. `train` does so by itself, with the network
    that it keeps, once the choice is made; before, it takes no notice of this."""
    resize: Count | None = None
    """Your own images, with network.name cnn: resize each image to this many pixels a side, and keep its
    aspect ratio. It removes the size of objects; for crops alone. Default: off."""
    range: tuple[Positive, ...] | None = None
    """Your own images or labelled boxes: the sizes that objects will have, from low to high, where 1 is their
    size in these images. Default: 0.25 4; or as --deploy-pixel-sizes say."""
    object_size: Side | None = None
    """Your own images: the objects' size in pixels. Default: the median of the images' longer sides; in
    frames, of what stands out in them."""
    reduce: Count | None = None
    """Your own images: shrink each image by this whole factor first. Default: the smallest that makes objects
    smaller than 224 pixels."""
    pixel_size: Positive | None = None
    """Your own images: the size of a pixel, in any unit. Needs --deploy-pixel-sizes."""
    deploy_pixel_sizes: tuple[Positive, ...] | None = None
    """Your own images: the pixel sizes that the network will meet in use, in the same unit: one or more."""
    skip_corrupt: bool = False
    """Your own images: leave out unreadable files instead of refusing the folder."""
    max_pixels: Count | None = None
    """Your own images: files with more pixels than this count as unreadable. Default: 48 million."""
    # What follows is for objects in images of any size: digits, clothes and, without a background, photos.
    places: ObjectPlaces = "centre"
    """Where the object is, at the centre of the image or anywhere inside it. Of your own images, frames alone
    can have it anywhere, and are so if many objects are far off the centre, or network.look is everywhere."""
    side: Count | None = None
    """Digits, clothes, CIFAR-10: the side of an image in pixels, 16 to 1024. Default: 64 for objects anywhere
    (clothes: 72; several objects: 128); at the centre, as the data set has it."""
    background: Surroundings = "plain"
    """Digits anywhere, clothes: plain; noisy; or cluttered by parts of other objects."""
    distinct: Count | None = None
    """Digits anywhere, clothes: train on so many different ones, balanced over the classes, which come again
    elsewhere. Default: all."""
    find: Whole | None = None
    """Digits and clothes anywhere: several objects in each image, and two classes: one of them is of the
    class with this number, 0 to 9, or none is. Default: off."""
    objects: Count | None = None
    """With data.find: how many objects an image has. Default: 3."""

    def __post_init__(self) -> None:
        require_values("data", self)
        name, sizes, samples = self.name, self.sizes, self.samples
        title, takes, (low, high) = self.about.title, self.about.takes, self.about.sizes
        if self.about.of_user:
            self._check_own_images()
        refuse(not sizes, "data.sizes must be one size or more; got none")
        rising = all(low < high for low, high in pairwise(sizes))
        listed = " ".join(f"{size:g}" for size in sizes)
        refuse(not rising, f"data.sizes must go from low to high; got {listed}")
        few = samples is not None and samples < 10
        refuse(few, f"data.samples must be at least 10; got {samples}")
        # An option that would have no effect is an error: the run's name would promise what it does not do.
        moving = self.places == "anywhere" and self.placed
        placed = self.placed and "places" not in takes
        refuse(
            placed, f"data.places anywhere and data.side are for digits, clothes and cifar10, not for {name}"
        )
        for option in ("background", "distinct", "find", "objects"):
            given = getattr(self, option) not in (None, "plain")
            useless = given and "background" not in takes
            refuse(useless, f"data.{option} is for digits and clothes, not for {name}")
            fixed = given and not (self.placed or name == "fashion")
            refuse(fixed, f"data.{option} is for digits anywhere: add --data.places anywhere")
        searched = self.find is not None
        refuse(searched and not moving, "data.find needs objects anywhere: add --data.places anywhere")
        refuse(searched and (self.find or 0) > 9, f"data.find must be a class from 0 to 9; got {self.find}")
        alone = self.objects is not None and not searched
        refuse(alone, "data.objects needs data.find, the class that is looked for")
        fits = self.side is None or 16 <= self.side <= 1024
        refuse(not fits, f"data.side must be from 16 to 1024 pixels; got {self.side}")
        drawn = moving or len(sizes) > 1 or "redrawn backgrounds" in takes
        refuse(self.redraw and not drawn, f"data.redraw needs two or more data.sizes; got {listed}")
        refuse(
            self.redraw and samples is not None and not self.placed and "redrawn samples" not in takes,
            f"data.redraw cannot be combined with data.samples for {name}",
        )
        within = all(low <= size <= high for size in sizes)
        refuse(not within, f"{title} has sizes from {low:g} to {high:g}; got data.sizes {listed}")
        every = samples is not None and "samples" not in takes
        refuse(every, f"{title} takes all of its images; got data.samples = {samples}")
        held = self.hold_out and "hold_out" not in takes
        refuse(held, f"data.hold_out works only with cifar10 and emoji; {name} has validation images")
        both = self.folder is not None and not self.about.of_user
        refuse(both, f"--data FOLDER cannot be combined with --data.name {name}; remove one of them")
        for option in () if self.about.of_user else OF_OWN_IMAGES:
            said, given = option_name("data", option), getattr(self, option) not in (None, False)
            refuse(given, f"{said} is only for your own images, not for {name}: add --data FOLDER")

    def _check_own_images(self) -> None:
        deployed = self.deploy_pixel_sizes
        refuse(
            not self.folder,
            "your own images need --data FOLDER, with a subfolder for each class",
        )
        require_utf8(self.folder or "")  # it is written to the run's config.toml
        refuse(self.samples is not None, "data.samples does not apply to your own images; remove it")
        refuse(
            self.hold_out,
            "data.hold_out works only with cifar10 and emoji; data.validation splits your images",
        )
        for name in ("validation", "test"):
            share = getattr(self, name)
            between = share is None or 0 < share < 1
            refuse(not between, f"data.{name} must be a share between 0 and 1; got {share}")
        held = (self.validation or 0) + (self.test or 0)
        refuse(held >= 1, f"data.validation and data.test leave nothing to train on; got {held:g} together")
        reach = self.range
        refuse(
            reach is not None and not (len(reach) == 2 and 1 / FARTHEST <= reach[0] <= reach[1] <= FARTHEST),
            f"--range must be two sizes from low to high, {1 / FARTHEST:g} to {FARTHEST}; got "
            f"{' '.join(f'{size:g}' for size in reach or ())}",
        )
        refuse(
            reach is not None and deployed is not None,
            "--range and --deploy-pixel-sizes both say how large objects will be; give one of them",
        )
        refuse(self.side is not None, "data.side does not apply to your own images; remove it")
        refuse(
            self.places == "anywhere" and self.images == "crops",
            "data.places anywhere is for frames: a crop is about its object; remove it, or add --data.images "
            "frames",
        )
        refuse(
            self.resize is not None and self.images == "frames",
            "data.resize is for crops: resizing frames leaves small objects small",
        )
        alone = "--pixel-size" if deployed is None else "--deploy-pixel-sizes"
        refuse(
            (self.pixel_size is None) != (deployed is None),
            f"--pixel-size and --deploy-pixel-sizes must be given together; got only {alone}",
        )
        refuse(deployed == (), "--deploy-pixel-sizes must be one size or more; got none")
        for size in deployed or ():
            far = not 1 / FARTHEST <= size / (self.pixel_size or size) <= FARTHEST
            refuse(
                far,
                f"--pixel-size and --deploy-pixel-sizes may differ by a factor of {FARTHEST}; got "
                f"{self.pixel_size:g} and {size:g}",
            )

    @property
    def about(self) -> DataSet:
        """What the data set is."""
        known = DATA_SETS[self.name]
        if not self.placed:
            return known
        side = (known.roaming if self.find is None else SEARCHED) if self.side is None else self.side
        # Larger sizes leave such an image. No published recipe says when a cosine ends: with the training.
        return replace(known, image=side, test_sizes=CIFAR_SIZES, period=None)

    @property
    def placed(self) -> bool:
        """Whether its objects are put into images whose size is a choice, at the centre or anywhere."""
        return not DATA_SETS[self.name].of_user and (self.places == "anywhere" or self.side is not None)

    @property
    def scale(self) -> float | tuple[float, ...]:
        return self.sizes[0] if len(self.sizes) == 1 else self.sizes

    def draw_seed(self, draw: int) -> int:
        """What the sizes of the training set are drawn by, the first time (0) or again."""
        return self.seed + draw * NEXT_DRAW

    @property
    def own(self) -> OwnImages:
        """What is known of your own images; an error before the run is resolved, and for other data."""
        known = {entry.name: getattr(self, entry.name) for entry in fields(OwnImages)}
        if None in known.values():
            raise ValueError("this configuration is not resolved: call resolve() first")
        return OwnImages(**known)
