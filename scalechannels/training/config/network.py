"""What a run trains, as options."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scalechannels.training.config.options import require_choice

NetworkName = Literal["fovavg", "fovmax", "fovlse", "fovconc", "swmax", "cnn"]
Initialisation = Literal["torch", "he", "glorot"]
Backbone = Literal["paper", "residual"]
SlidingNorm = Literal["joint", "each"]


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
    shifts: int = 0
    """Tested, every window is also seen so many pixels up, down, left and right: five looks, pooled."""
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
        require_choice("network.name", self.name, NetworkName)
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
        if self.shifts < 0 or (self.shifts and self.name in ("fovconc", "swmax", "cnn")):
            raise ValueError(
                f"network.shifts is 0 or more, and 0 for fovconc, swmax and cnn, got {self.shifts}"
            )
        if self.initialisation is not None:
            require_choice("network.initialisation", self.initialisation, Initialisation)
        require_choice("network.backbone", self.backbone, Backbone)
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
            require_choice("network.batch_norm", self.batch_norm, SlidingNorm)
            if self.name != "swmax" or self.pretrained is not None:
                raise ValueError("network.batch_norm is for swmax, all of whose channels are trained")
        if self.pretrained is not None:
            if not 0 < self.pretrained < math.inf:
                raise ValueError(f"network.pretrained is a positive scale, got {self.pretrained}")
            if self.name in ("fovconc", "cnn"):
                raise ValueError(
                    f"network.pretrained is for channels that are pooled without weights, not {self.name}"
                )
