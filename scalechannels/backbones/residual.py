"""A stronger backbone for small colour images, which the paper does not have: nine layers, two shortcuts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn

from scalechannels.backbones.inference import Backbone
from scalechannels.backbones.paper import conv_block, require_counts
from scalechannels.pooling import maximum

SMALLEST = 8
"""Three times halved, one pixel is left."""
LOGIT_SCALE = 1 / 8
"""A maximum over places is large from the start; unscaled, so would be the first logits and losses."""


class ResidualBackbone(Backbone):
    """Windows (N, C, n, n) to logits (N, K): a small residual network with batch norm.

    features   F, of the first convolution; the three stages have 2F, 4F and 8F, each at half the resolution
               of the one before. 32 make 1.65 million parameters, and 3.5 times the multiplications of the
               paper's CIFAR-10 backbone
    dropout    before the last layer

    Shortcuts lead past two convolutions in the first and in the last stage; then each feature's maximum over
    all places is classified. Any window of at least 8 pixels fits.
    """

    def __init__(
        self, features: int = 32, *, channels: int = 3, classes: int = 10, dropout: float = 0.0
    ) -> None:
        super().__init__()
        require_counts(features=features, channels=channels, classes=classes)
        self.features, self.channels, self.classes = features, channels, classes
        first, second, third = 2 * features, 4 * features, 8 * features
        self.enter_first = _blocks(channels, features, first)
        self.within_first = _blocks(first, first, first)
        self.enter_second = _blocks(first, second)
        self.enter_third = _blocks(second, third)
        self.within_third = _blocks(third, third, third)
        self.drop = nn.Dropout(dropout)
        self.classifier = nn.Linear(third, classes, bias=False)

    @property
    def dropout(self) -> float:
        return self.drop.p

    def parts(self) -> Sequence[nn.Sequential]:
        return [self.enter_first, self.within_first, self.enter_second, self.enter_third, self.within_third]

    def through(self, windows: Tensor, parts: Sequence[Callable[[Tensor], Tensor]]) -> Tensor:
        height, width = windows.shape[2:]
        if min(height, width) < SMALLEST:
            raise ValueError(
                f"windows must have at least {SMALLEST} pixels along each side for this backbone; "
                f"got {height}x{width}"
            )
        enter_first, within_first, enter_second, enter_third, within_third = parts
        maps = F.max_pool2d(enter_first(windows), 2)  # (N, 2F, n/2, n/2)
        maps = maps + within_first(maps)
        maps = F.max_pool2d(enter_second(maps), 2)  # (N, 4F, n/4, n/4)
        maps = F.max_pool2d(enter_third(maps), 2)  # (N, 8F, n/8, n/8)
        maps = maps + within_third(maps)
        return self.classifier(self.drop(maximum(maps.flatten(2), 2))) * LOGIT_SCALE  # (N, K)


def _blocks(*features: int) -> nn.Sequential:
    """Padded 3x3 convolutions from each number of features to the next, each with batch norm and ReLU.

    Without biases: batch norm would take them away, and their gradients cost a pass over all maps.
    """
    return nn.Sequential(*(conv_block(*between, padding=1, bias=False) for between in pairwise(features)))
