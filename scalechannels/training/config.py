"""What a run is: frozen dataclasses whose fields are the options of the command line and of the config file.

A field that is None takes the paper's recipe for the network and the data; `resolve` fills it in, and only
resolved configurations are trained, saved and compared. A run's name is derived from all of its fields.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from scalechannels.scales import ScaleGrid
from scalechannels.training.options import changed, filled, from_dict, read_toml, to_toml

DataName = Literal["strokes", "mnist", "cifar10", "folder"]
NetworkName = Literal["fovavg", "fovmax", "fovlse", "fovconc", "swmax", "cnn"]
Schedule = Literal["step", "cosine"]
Precision = Literal["float32", "bfloat16"]
Initialisation = Literal["torch", "he", "glorot"]
Backbone = Literal["paper", "residual"]
SlidingNorm = Literal["joint", "each"]
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
        _require_choice("data.name", self.name, DataName)
        if len(self.sizes) not in (1, 2) or not all(0 < size < math.inf for size in self.sizes):
            raise ValueError(f"data.sizes is one positive size or a low and a high one, got {self.sizes}")
        if len(self.sizes) == 2 and self.sizes[0] >= self.sizes[1]:
            raise ValueError(f"data.sizes goes from low to high, got {self.sizes}")
        if self.samples is not None and self.samples < 10:
            raise ValueError(f"data.samples is at least 10, one for each class, got {self.samples}")
        _require_seed("data.seed", self.seed)
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
            _require_choice("data.colour", self.colour, ImageColour)
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


@dataclass(frozen=True)
class NetworkConfig:
    """What learns."""

    name: NetworkName = "fovlse"
    """A scale-channel network of the paper, fovlse (log-mean-exp pooling), or the plain cnn."""
    low: float | None = None
    """The smallest scale of the channels: 1/2 by default."""
    high: float | None = None
    """The largest scale of the channels: 8 by default, 2 for CIFAR-10."""
    ratio: float = 2**0.25
    """The ratio between neighbouring scales."""
    antialias: bool = False
    """Average what a coarse channel skips instead of bilinear interpolation."""
    blur: float | None = None
    """Equalise the blur of all channels to this variance in squared window pixels."""
    dropout: float | None = None
    """Dropout before the last layer: 0.15 by default, none for CIFAR-10."""
    batch_norm: SlidingNorm | None = None
    """SWMax, which has none by default: joint over all channels' maps, or each channel its own."""
    pretrained: float | None = None
    """Train in the channel of this scale alone; the others take its weights, untrained, when testing."""
    window: int | None = None
    """Own images: the side in pixels of what each channel sees; 28 by default, 56 from 48 pixels on."""
    backbone: Backbone = "paper"
    """What every channel shares: the paper's network, or a stronger residual one (CIFAR-10)."""
    width: int = 1
    """How many times the features of the MNIST backbone's convolutions and dense layer, or the residual's."""
    initialisation: Initialisation | None = None
    """PyTorch's first weights (default), He's (normal) or Glorot's (uniform; fovconc), biases then zero."""
    average_scales: bool = False
    """cnn: test it on the image rescaled by every factor of the grid, its probabilities averaged."""
    margin: int | None = None
    """SWMax: by how many pixels (8) every rescaled image is extended on each side, the border repeated."""
    centred: bool | None = None
    """SWMax: extend every rescaled image further, so that one window lies at its centre; on by default."""
    drop_features: bool | None = None
    """SWMax: drop a feature at all places of an image at once (default), not at each place by itself."""

    def __post_init__(self) -> None:
        _require_choice("network.name", self.name, NetworkName)
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise ValueError(f"network.dropout is in [0, 1), got {self.dropout}")
        for name in ("low", "high"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"network.{name} is a positive scale, got {value}")
        if not 1 < self.ratio < math.inf:
            raise ValueError(f"network.ratio is above 1, got {self.ratio}")
        if self.blur is not None and not 0 < self.blur < math.inf:
            raise ValueError(f"network.blur is a positive variance, got {self.blur}")
        if self.name in ("swmax", "cnn") and (self.antialias or self.blur is not None):
            raise ValueError(f"network.antialias and network.blur are for windows, which {self.name} has not")
        if self.initialisation is not None:
            _require_choice("network.initialisation", self.initialisation, Initialisation)
        _require_choice("network.backbone", self.backbone, Backbone)
        narrow = self.name in ("swmax", "cnn") and self.backbone == "paper"
        if self.width < 1 or (self.width > 1 and narrow):
            raise ValueError(f"network.width is at least 1, and 1 for swmax and cnn, got {self.width}")
        if self.average_scales and self.name != "cnn":
            raise ValueError(f"network.average_scales is for cnn, not {self.name}")
        if self.margin is not None and self.margin < 0:
            raise ValueError(f"network.margin is zero or more, got {self.margin}")
        for option in ("margin", "centred", "drop_features"):
            if self.name != "swmax" and getattr(self, option):
                raise ValueError(f"network.{option} is for swmax, not {self.name}")
            if self.name != "swmax":  # earlier versions wrote zeros, which mean the same: one run, one name
                object.__setattr__(self, option, None)
        if self.name != "fovconc" and self.initialisation == "torch":
            object.__setattr__(self, "initialisation", None)
        if self.batch_norm is not None:
            _require_choice("network.batch_norm", self.batch_norm, SlidingNorm)
            if self.name != "swmax" or self.pretrained is not None:
                raise ValueError("network.batch_norm is for swmax, all of whose channels are trained")
        if self.pretrained is not None:
            if not 0 < self.pretrained < math.inf:
                raise ValueError(f"network.pretrained is a positive scale, got {self.pretrained}")
            if self.name in ("fovconc", "cnn"):
                raise ValueError(
                    f"network.pretrained is for channels that are pooled without weights, not {self.name}"
                )


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
    flips: bool = False
    """CIFAR-10: mirror every second image left to right."""
    crops: int = 0
    """CIFAR-10: shift each image by at most so many pixels in each direction, mirrored beyond its edge."""
    images: int | None = None
    """Images in an epoch; by default as many as there are. If there are fewer, they come again and again."""
    beyond: int = 0
    """Channels that are added at each end of the grid, in training alone."""
    phases: int = 1
    """Into how many steps the grid's ratio is divided: each image meets a shift by one of them at random."""

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
        _require_seed("training.seed", self.seed)
        for name in ("smoothing", "average"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"training.{name} is in [0, 1), got {getattr(self, name)}")
        if not 0 < self.visible <= 1:
            raise ValueError(f"training.visible is a share in (0, 1], got {self.visible}")
        if not 0 < self.detail <= 1:
            raise ValueError(f"training.detail is a share in (0, 1], got {self.detail}")
        if self.crops < 0:
            raise ValueError(f"training.crops is zero or more pixels, got {self.crops}")
        if self.beyond < 0 or self.phases < 1:
            raise ValueError(
                f"training.beyond is zero or more and training.phases at least 1, got {self.beyond} and "
                f"{self.phases}"
            )
        if self.schedule is not None:
            _require_choice("training.schedule", self.schedule, Schedule)
        if self.precision is not None:
            _require_choice("training.precision", self.precision, Precision)

    def rate_at(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0; constant within an epoch."""
        assert self.rate is not None
        assert self.period is not None
        if self.schedule == "step":
            return max(self.rate * math.exp(-(epoch // self.period)), self.floor)
        progress = min(epoch / self.period, 1.0)
        return self.floor + (self.rate - self.floor) * (1 + math.cos(math.pi * progress)) / 2


@dataclass(frozen=True)
class RunConfig:
    """A whole run."""

    data: DataConfig = field(default_factory=DataConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def resolve(self, device: str = "cpu") -> RunConfig:
        """The same run with the paper's recipe in place of every None; own images are looked at for that."""
        if self.data.name != "cifar10":
            self._require_no_cifar_options()
        if self.training.detail < 1 and self.data.name == "folder":
            raise ValueError("training.detail is for strokes, mnist and cifar10, not for own images")
        if self.training.detail < 1 and self.network.name in ("cnn", "swmax"):
            raise ValueError(f"training.detail is for foveated networks, not {self.network.name}")
        if self.data.name == "folder":
            from scalechannels.training.own_images import filled_in

            return filled_in(self, device)
        if self.network.window is not None:
            raise ValueError(f"network.window is for own images; {self.data.name} has a window of its own")
        cifar = self.data.name == "cifar10"
        if cifar and self.network.name == "swmax":
            raise ValueError(
                "swmax looks for objects over space, which CIFAR-10 does not have; choose another"
            )
        if cifar and self.network.width > 1 and self.network.backbone == "paper":
            raise ValueError("network.width is for the MNIST and the residual backbone, not for CIFAR-10's")
        if self.training.beyond and self.network.name in ("fovconc", "cnn", "swmax"):
            raise ValueError(
                f"training.beyond is for channels that share all weights, not {self.network.name}"
            )
        if self.training.phases > 1 and self.network.name in ("cnn", "swmax"):
            raise ValueError(f"training.phases is for foveated networks, not {self.network.name}")
        if self.network.average_scales and (cifar or len(self.data.sizes) > 1):
            raise ValueError("network.average_scales is for a network that learns from digits of one size")
        if self.training.visible < 1 and self.network.name in ("cnn", "swmax") and not cifar:
            raise ValueError(f"training.visible is for foveated networks, not {self.network.name}")
        schedule = self.training.schedule or ("cosine" if cifar else "step")
        network = filled(self.network, low=0.5, high=2.0 if cifar else 8.0, dropout=0.0 if cifar else 0.15)
        if network.name == "fovconc":
            network = filled(network, initialisation="glorot")
        if network.name == "swmax":
            network = filled(network, margin=8, centred=True, drop_features=True)
        ScaleGrid(network.low, network.high, ratio=network.ratio)  # an impossible one is told before any work
        rate = 1e-3 if cifar else 3e-4 if self.network.name == "swmax" else 3e-3
        return RunConfig(
            filled(self.data, samples=10_000 if self.data.name == "strokes" else None),
            network,
            filled(
                self.training,
                epochs=103 if cifar else 20,
                batch=256 if cifar else 16,
                rate=rate,
                schedule=schedule,
                period=2 if schedule == "step" else 75,
                precision="bfloat16" if device.startswith("cuda") else "float32",
            ),
        )

    def _require_no_cifar_options(self) -> None:
        if self.network.backbone != "paper":
            raise ValueError(
                f"network.backbone {self.network.backbone} is for cifar10, not for {self.data.name}; "
                "own training loops can wrap it: fovlse(grid, backbone=ResidualBackbone(…))"
            )
        if self.training.flips or self.training.crops:
            raise ValueError(f"training.flips and training.crops are for cifar10, not for {self.data.name}")

    @property
    def augmented(self) -> bool:
        """Whether each step sees the images in another way, so that they and not windows lie in memory."""
        training = self.training
        return self.data.name == "cifar10" and (training.flips or training.crops > 0 or training.visible < 1)

    @property
    def shape(self) -> RunConfig:
        """What runs have in common that can be trained as one.

        Beside the training images and the seed these may differ: a pool without weights, how the windows are
        sampled, the first weights, the targets, the averaging, the cutting and the coarsening.
        """
        pooled = self.network.name in ("fovavg", "fovmax", "fovlse")
        name: NetworkName = "fovavg" if pooled else self.network.name
        samples = self.data.samples if self.training.images is None else None
        sizes = (1.0, 2.0) if self.data.redraw else (1.0,)
        return RunConfig(
            dataclasses.replace(self.data, sizes=sizes, seed=0, samples=samples),
            dataclasses.replace(self.network, name=name, initialisation=None, antialias=False, blur=None),
            dataclasses.replace(self.training, seed=0, smoothing=0.0, average=0.0, visible=1.0, detail=1.0),
        )

    @property
    def name(self) -> str:
        """Readable, and unique: it ends with a digest of every field that is not at its default.

        So a field that a later version adds leaves the names of the runs that do not use it.
        """
        sizes = "-".join(f"{size:g}" for size in self.data.sizes)
        canonical = RunConfig.from_dict(self.as_dict())  # 2 and 2.0 are the same size
        digest = hashlib.sha256(json.dumps(changed(canonical), sort_keys=True).encode()).hexdigest()[:8]
        return f"{self.network.name}-{self.data.name}-tr{sizes}-seed{self.training.seed}-{digest}"

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RunConfig:
        """The run of a nested dictionary; unknown keys and wrong types are errors."""
        return from_dict(cls, values, "")

    def to_toml(self) -> str:
        return to_toml(self.as_dict())

    @classmethod
    def from_toml(cls, path: Path | str) -> RunConfig:
        """The run of a config file."""
        values = read_toml(path)
        try:
            return cls.from_dict(values)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


def _require_seed(name: str, seed: int) -> None:
    if not 0 <= seed < 2**30:  # what the built-in digits take
        raise ValueError(f"{name} is in [0, 2^30), got {seed}")


def _require_choice(name: str, value: Any, choices: Any) -> None:
    if value not in get_args(choices):
        raise ValueError(f"{name} is one of {', '.join(get_args(choices))}, got {value!r}")
