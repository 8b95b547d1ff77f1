"""SlidingWindowNetwork (SWMax): whole rescaled images, maximum over space, then over scale."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from scalechannels.backbones import ConvBackbone, mnist_backbone
from scalechannels.foveate import require_images, resample
from scalechannels.pieces import in_pieces
from scalechannels.pretrained import Network
from scalechannels.scales import ScaleGrid


class SlidingWindowNetwork(Network):
    """The paper's SWMax. Channel σ rescales the whole image by 1/σ and slides the backbone over it.

    Channel σ samples the image at spacing exactly σ about the centre, ceil(H/σ) samples, or as many as the
    window needs where that is more, the border repeated. The dense layers slide as convolutions.

    Law: the maximum over space adds robustness to translation. Limit: the channels of fine scales look at
    more views of the object than those of coarse scales, so the maximum over scale is not invariant.
    """

    def __init__(self, backbone: ConvBackbone, grid: ScaleGrid) -> None:
        super().__init__()
        if not hasattr(backbone, "logit_map"):
            raise TypeError(
                f"a sliding backbone needs a method logit_map, (N,C,H,W) to (N,K,h,w); "
                f"{type(backbone).__name__} has none"
            )
        self.grid = grid
        self.backbone = backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, K) of images (B, C, H, W) of any H and W."""
        return self.channel_logits(images).amax(1)  # (B, K)

    def channel_logits(self, images: Tensor) -> Tensor:
        """The maximum over space in each channel: (B, S, K)."""
        require_images(images, self.backbone.channels)
        sizes = [self.sampled_size(images, sigma) for sigma in self.grid]
        pixels = images.shape[1] * sum(height * width for height, width in sizes)
        return in_pieces(self._channels, images, None, pixels, training=self.training)

    def sampled_size(self, images: Tensor, sigma: float) -> tuple[int, int]:
        """How many rows and columns channel σ has."""
        slack = 1e-9  # H/σ that is whole but for rounding must not gain a sample
        height, width = (
            max(self.backbone.window, math.ceil(side / sigma - slack)) for side in images.shape[2:]
        )
        return height, width

    def _channels(self, images: Tensor, centres: Tensor | None) -> Tensor:
        maxima = []
        for sigma in self.grid:
            rescaled = resample(images, ScaleGrid.of(sigma), self.sampled_size(images, sigma))[:, 0]
            maxima.append(self.backbone.logit_map(rescaled).amax((2, 3)))  # (B, K)
        return torch.stack(maxima, dim=1)  # (B, S, K)

    def arguments(self) -> dict[str, Any]:
        return {"backbone": self.backbone, "grid": self.grid}


def swmax(
    grid: ScaleGrid, *, channels: int = 1, classes: int = 10, window: int = 28, batch_norm: bool = False
) -> SlidingWindowNetwork:
    """The paper's SWMax for MNIST, without batch norm, which harms it: 68,678 parameters."""
    backbone = mnist_backbone(window=window, channels=channels, classes=classes, batch_norm=batch_norm)
    return SlidingWindowNetwork(backbone, grid)
