"""A plain CNN with multi-scale test-time averaging: what one would do without scale channels.

    image (B,C,H,W) → zoomed by every factor (B,S,C,n,n) → CNN on B·S → softmax → mean over S → its log (B,K)

No training is needed beyond that of the CNN, which never learnt what it should say about a digit of another
size: it is often sure, and wrong.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from scalechannels.foveate import Foveate, Outside, require_images
from scalechannels.pieces import for_inference, in_pieces
from scalechannels.plain import PlainNetwork
from scalechannels.pretrained import Network
from scalechannels.scales import ScaleGrid

SAMPLED_AT_ONCE = 8
"""So many pieces of the backbone are sampled together: little memory beside what it makes of them."""


class ScaleAveragedNetwork(Network):
    """One CNN on the image zoomed by many factors, its class probabilities averaged.

    backbone   the CNN, which maps (N, C, n, n) to logits (N, K); its weights are shared, not copied
    grid       the factors: factor σ shows σ·n pixels about the centre as n, so an object σ times as large as
               those of training looks as large as they did
    window     n, the side of the images that the CNN learnt from; may be left out where the backbone says it
    outside, antialias   see Foveate; zoomed out, most of what the CNN sees lies outside the image

    Law: with the one factor 1 and images of n x n it is the CNN, its logits normalised to log-probabilities.
    It is log-mean-exp pooling over scales of log-probabilities: every factor has one vote to share between
    the classes, however strange the zoomed image is to the CNN. Limit: a factor at which the CNN is sure of
    the wrong class counts as much as the one at which it is right; nothing taught it to abstain.
    """

    def __init__(
        self,
        backbone: nn.Module,
        grid: ScaleGrid,
        window: int | None = None,
        *,
        outside: Outside = "border",
        antialias: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(backbone, nn.Module) or isinstance(backbone, Network):
            raise TypeError(
                "the backbone is a torch module that maps windows to logits, such as cnn().backbone, "
                f"got {type(backbone).__name__}; averaged_over_scales takes a whole PlainNetwork"
            )
        wanted = getattr(backbone, "window", window)
        if wanted is None:
            raise ValueError(
                f"{type(backbone).__name__} takes images of any size: give window=, the side of the images "
                "that it learnt from"
            )
        if window is not None and wanted != window:
            raise ValueError(
                f"this backbone takes images of {wanted}x{wanted} pixels, got the window {window}"
            )
        self.foveate = Foveate(grid, wanted, outside=outside, antialias=antialias)
        self.backbone = backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @property
    def grid(self) -> ScaleGrid:
        return self.foveate.grid

    def forward(self, images: Tensor) -> Tensor:
        """The log of the mean probability (B, K) of images (B, C, H, W) of any H and W, as logits."""
        probabilities = self.channel_logits(images).log_softmax(2)  # (B, S, K), as logarithms
        return probabilities.logsumexp(1) - math.log(len(self.grid))  # (B, K)

    def channel_logits(self, images: Tensor) -> Tensor:
        """The CNN's logits at each factor: (B, S, K)."""
        require_images(images, getattr(self.backbone, "channels", None))
        pixels = len(self.grid) * images.shape[1] * self.foveate.window**2 // SAMPLED_AT_ONCE
        return in_pieces(self._channels, images, None, max(1, pixels), training=self.training)

    def _channels(self, images: Tensor, _: Tensor | None) -> Tensor:
        stack = self.foveate(images)  # (B, S, C, n, n)
        backbone = for_inference(self.backbone)
        outputs = in_pieces(
            lambda windows, _: backbone(windows),
            stack.flatten(0, 1),
            None,
            stack[0, 0].numel(),
            training=self.training,
        )  # (B·S, K)
        if outputs.ndim != 2:
            raise ValueError(f"a backbone gives (N, K), this one gave {tuple(outputs.shape)}")
        return outputs.view(*stack.shape[:2], -1)  # (B, S, K)

    def arguments(self) -> dict[str, Any]:
        return {
            "backbone": self.backbone,
            "grid": self.grid,
            "window": self.foveate.window,
            "outside": self.foveate.outside,
            "antialias": self.foveate.antialias,
        }


def averaged_over_scales(
    network: PlainNetwork,
    sizes: ScaleGrid,
    training_size: float,
    *,
    window: int | None = None,
    outside: Outside = "border",
    antialias: bool = False,
) -> ScaleAveragedNetwork:
    """A plain CNN that learnt objects of one size, averaged over the factors that bring `sizes` back to it.

    Sizes and training size are in one unit of your choice: for MNIST Large Scale, a CNN that learnt size 2
    and is tested from 1/2 to 8 takes ScaleGrid(0.5, 8, ratio=2**0.25) and 2; its factors are 1/4 to 4.
    """
    if not isinstance(network, PlainNetwork):
        raise TypeError(
            f"a PlainNetwork is averaged over scales, such as cnn(), got {type(network).__name__}"
        )
    if not isinstance(sizes, ScaleGrid):
        raise TypeError(
            f"sizes are a ScaleGrid, such as ScaleGrid(0.5, 8, ratio=2**0.25), got {type(sizes).__name__}"
        )
    if not (training_size > 0 and math.isfinite(training_size)):
        raise ValueError(f"the training size is a positive, finite number, got {training_size}")
    factors = ScaleGrid.of(*(size / training_size for size in sizes))
    return ScaleAveragedNetwork(network.backbone, factors, window, outside=outside, antialias=antialias)
