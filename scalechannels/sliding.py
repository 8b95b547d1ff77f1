"""SlidingWindowNetwork (SWMax): whole rescaled images, maximum over space, then over scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from scalechannels.backbones.inference import binds_images, in_pieces
from scalechannels.backbones.paper import ConvBackbone, mnist_backbone
from scalechannels.foveate import require_images, resample
from scalechannels.pooling import winner
from scalechannels.saving.pretrained import Network
from scalechannels.scales import ScaleGrid

Norm = Literal["joint", "each"]
"""Batch norm with statistics over the maps of all channels together, or one for each channel."""


class SlidingWindowNetwork(Network):
    """The paper's SWMax. Channel σ rescales the whole image by 1/σ and slides the backbone over it.

    Channel σ samples the image at spacing exactly σ about the centre, ceil(H/σ) samples, or as many as the
    window needs where that is more, the border repeated. The dense layers slide as convolutions.

    norm       None: the backbone as it is. "joint" and "each" are the batch norms that the paper tried and
               found to impair it; neither is scale invariant. "each" takes a backbone without
    margin     by how many pixels every rescaled image is extended on each side, the border repeated
    centred    extend every rescaled image by up to 7 pixels in all, the border repeated, so that one window
               lies at its centre. Else the windows next to the centre are off it by 0 to 2 pixels, which
               depends on the channel
    drop_features   dropout drops a feature at all places of an image at once. At each place by itself, the
               maximum goes to places whose draw was lucky

    Law: the maximum over space adds robustness to translation. Limit: the channels of fine scales look at
    more views of the object than those of coarse scales, so the maximum over scale is not invariant.
    """

    def __init__(
        self,
        backbone: ConvBackbone,
        grid: ScaleGrid,
        norm: Norm | None = None,
        *,
        margin: int = 0,
        centred: bool = False,
        drop_features: bool = False,
    ) -> None:
        super().__init__()
        if not hasattr(backbone, "logit_map"):
            raise TypeError(
                f"a sliding backbone needs a method logit_map, (N,C,H,W) to (N,K,h,w); "
                f"{type(backbone).__name__} has none"
            )
        if norm is not None and norm not in get_args(Norm):
            raise ValueError(f"norm is None or one of {get_args(Norm)}, got {norm!r}")
        if norm is not None and backbone.batch_norm != (norm == "joint"):
            raise ValueError('"joint" needs a backbone with batch norm, "each" one without')
        if margin < 0:
            raise ValueError(f"margin is zero or more pixels, got {margin}")
        self.grid, self.norm, self.margin = grid, norm, margin
        self.centred, self.drop_features = centred, drop_features
        self.norms = nn.ModuleList(
            nn.ModuleList(nn.BatchNorm2d(features) for features in backbone.features)
            for _ in (grid if norm == "each" else ())
        )
        self.backbone = backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, K) of images (B, C, H, W) of any H and W."""
        return winner(self.channel_logits(images), 1)  # (B, K)

    def channel_logits(self, images: Tensor) -> Tensor:
        """The maximum over space in each channel: (B, S, K)."""
        require_images(images, self.backbone.channels)
        sizes = [self.sampled_size(images, sigma) for sigma in self.grid]
        pixels = images.shape[1] * sum(height * width for height, width in sizes)
        return in_pieces(self._channels, images, None, pixels, training=binds_images(self))

    def sampled_size(self, images: Tensor, sigma: float) -> tuple[int, int]:
        """How many rows and columns channel σ has."""
        height, width = (self._sampled(side / sigma) for side in images.shape[2:])
        return height, width

    def _sampled(self, side: float) -> int:
        slack = 1e-9  # a side that is whole but for rounding must not gain a sample
        window = self.backbone.window
        samples = max(window, math.ceil(side - slack) + 2 * self.margin)
        if self.centred:  # an even number of steps of the backbone's stride from the first window to the last
            steps = 2 * math.prod(self.backbone.strides)
            samples = window + -(-(samples - window) // steps) * steps
        return samples

    def _channels(self, images: Tensor, centres: Tensor | None) -> Tensor:
        rescaled = (self._rescaled(images, sigma) for sigma in self.grid)
        kept = None
        if self.training and self.drop_features:
            kept = self.backbone.drop(images.new_ones(len(images), self.backbone.hidden, 1, 1))
        if self.norm is None:  # channel by channel, which takes less memory
            maxima = [winner(self.backbone.logit_map(channel, kept).flatten(2), 2) for channel in rescaled]
        else:
            maps = self._normed_maps(list(rescaled))
            maxima = [winner(self.backbone.slid(channel, kept).flatten(2), 2) for channel in maps]
        return torch.stack(maxima, dim=1)  # (B, S, K)

    def _rescaled(self, images: Tensor, sigma: float) -> Tensor:
        size = self.sampled_size(images, sigma)
        spacing = images.new_full((1,), sigma, dtype=torch.float64)  # made there: a graph copies nothing
        return resample(images, ScaleGrid.of(sigma), size, spacing=spacing)[:, 0]

    def _normed_maps(self, channels: Sequence[Tensor]) -> list[Tensor]:
        """All channels through the convolutions layer by layer, normalised across them or each by itself."""
        maps = list(channels)
        for layer, block in enumerate(self.backbone.convolutions):
            assert isinstance(block, nn.Sequential)
            maps = [block[0](channel) for channel in maps]
            if self.norm == "joint":
                places = [channel.shape[2] * channel.shape[3] for channel in maps]
                together = torch.cat([channel.flatten(2) for channel in maps], dim=2)  # (B, F, all places)
                parts = block[1](together[..., None])[..., 0].split(places, dim=2)
                maps = [part.unflatten(2, old.shape[2:]) for part, old in zip(parts, maps, strict=True)]
            else:
                maps = [norms[layer](old) for norms, old in zip(self.norms, maps, strict=True)]  # type: ignore
            maps = [F.relu(channel) for channel in maps]
        return maps

    def arguments(self) -> dict[str, Any]:
        names = ("norm", "margin", "centred", "drop_features")
        options = {name: getattr(self, name) for name in names}
        given = {name: value for name, value in options.items() if value}
        return {"backbone": self.backbone, "grid": self.grid, **given}


def swmax(
    grid: ScaleGrid,
    *,
    channels: int = 1,
    classes: int = 10,
    window: int = 28,
    batch_norm: bool = False,
    norm: Norm | None = None,
    margin: int = 0,
    centred: bool = False,
    drop_features: bool = False,
) -> SlidingWindowNetwork:
    """The paper's SWMax for MNIST, without batch norm, which harms it: 68,678 parameters."""
    with_norm = batch_norm or norm == "joint"
    backbone = mnist_backbone(window=window, channels=channels, classes=classes, batch_norm=with_norm)
    return SlidingWindowNetwork(
        backbone, grid, norm, margin=margin, centred=centred, drop_features=drop_features
    )
