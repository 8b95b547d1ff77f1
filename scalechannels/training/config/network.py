"""What a run trains, as options."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from scalechannels.training.config.options import (
    ABOVE_1,
    AT_LEAST_1,
    BELOW_1,
    POSITIVE,
    ZERO_OR_MORE,
    refuse,
    require_values,
)

NetworkName = str
"""A name in `pooling.POOLS`, swmax or cnn. `build` checks it: configurations are read without torch."""
Initialisation = Literal["torch", "he", "glorot"]
Backbone = Literal["paper", "residual"]
SlidingNorm = Literal["joint", "each"]
RANGES = {
    **dict.fromkeys(("low", "high", "blur", "pretrained"), POSITIVE),
    **dict.fromkeys(("shifts", "margin"), ZERO_OR_MORE),
    "ratio": ABOVE_1,
    "dropout": BELOW_1,
    "width": AT_LEAST_1,
}
OF_SWMAX = ("margin", "centred", "drop_features")


@dataclass(frozen=True)
class NetworkConfig:
    """What is trained."""

    name: NetworkName = "fovlse"
    """A foveated network by its pooling (fovavg, fovmax, fovlse, fovprob, fovconc), swmax or a plain cnn."""
    low: float | None = None
    """The smallest scale of the channels: 1/2 by default."""
    high: float | None = None
    """The largest scale of the channels: 8 by default, 2 for CIFAR-10."""
    ratio: float = 2**0.25
    """The ratio between neighbouring scales."""
    antialias: bool = False
    """Average the pixels that bilinear interpolation would skip in coarse channels."""
    blur: float | None = None
    """Equalise the blur of all channels to this variance in squared window pixels."""
    shifts: int = 0
    """When testing, pool five views: the window itself and four shifted by this many pixels."""
    dropout: float | None = None
    """Dropout before the last layer: 0.15 by default, none for CIFAR-10."""
    batch_norm: SlidingNorm | None = None
    """SWMax: batch norm (none by default), either joint over all channels or separate for each."""
    pretrained: float | None = None
    """Train only the channel of this scale; in testing all channels use its weights."""
    window: int | None = None
    """Own images: the side of a channel's window in pixels; 28, or 56 for objects of 48 pixels or more."""
    backbone: Backbone = "paper"
    """The backbone that all channels share: the paper's, or a stronger residual one (CIFAR-10 only)."""
    width: int = 1
    """Multiply the number of features of the MNIST or the residual backbone by this."""
    initialisation: Initialisation | None = None
    """Initial weights: PyTorch's (default), He or Glorot (default for fovconc); these two zero the biases."""
    average_scales: bool = False
    """cnn: in testing, average its probabilities over the image rescaled by every factor of the grid."""
    margin: int | None = None
    """SWMax: pixels of repeated border around every rescaled image (default 8)."""
    centred: bool | None = None
    """SWMax: extend every rescaled image further, so that one window lies at its centre; on by default."""
    drop_features: bool | None = None
    """SWMax: dropout drops a feature everywhere in an image (default) instead of at each place separately."""

    def __post_init__(self) -> None:
        require_values("network", self, RANGES)
        name, sliding = self.name, self.name == "swmax"
        windows = self.antialias or self.blur is not None
        refuse(
            windows and name in ("swmax", "cnn"),
            f"network.antialias and network.blur are for windows, which {name} does not have",
        )
        refuse(
            self.shifts > 0 and name in ("fovconc", "swmax", "cnn"),
            f"network.shifts must be 0 for fovconc, swmax and cnn, got {self.shifts}",
        )
        narrow = name in ("swmax", "cnn") and self.backbone == "paper"
        refuse(self.width > 1 and narrow, f"network.width must be 1 for swmax and cnn, got {self.width}")
        refuse(self.average_scales and name != "cnn", f"network.average_scales is for cnn, not {name}")
        for option in OF_SWMAX:
            refuse(not sliding and bool(getattr(self, option)), f"network.{option} is for swmax, not {name}")
        refuse(
            self.batch_norm is not None and (not sliding or self.pretrained is not None),
            "network.batch_norm is only for swmax, and not together with network.pretrained",
        )
        refuse(
            self.pretrained is not None and name in ("fovconc", "cnn"),
            "network.pretrained needs a pooling without weights; fovconc has weights and cnn has no channels",
        )
        # Earlier versions wrote these values, which mean the same as None: one run has one name.
        if not sliding:
            for option in OF_SWMAX:
                object.__setattr__(self, option, None)
        if name != "fovconc" and self.initialisation == "torch":
            object.__setattr__(self, "initialisation", None)


@dataclass(frozen=True, kw_only=True)
class ResolvedNetwork(NetworkConfig):
    """The same with nothing left open; what is None does not apply to this network."""

    low: float = field()
    high: float = field()
    dropout: float = field()
