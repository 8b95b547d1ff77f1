"""The paper's networks inside a scale channel, and the plain CNN beside them. They know nothing of scales.

A backbone maps windows (N, C, n, n) to logits (N, K). The MNIST network can also slide: `logit_map` applies
the dense layers as convolutions and gives logits at every place of a larger image.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn

from scalechannels.backbones.inference import Backbone


def conv_block(
    inputs: int,
    outputs: int,
    stride: int = 1,
    *,
    padding: int = 0,
    bias: bool = True,
    batch_norm: bool = True,
) -> nn.Sequential:
    """3x3 convolution, batch norm unless declined, ReLU."""
    norms = [nn.BatchNorm2d(outputs)] if batch_norm else []
    convolution = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=padding, bias=bias)
    return nn.Sequential(convolution, *norms, nn.ReLU(inplace=True))


class ConvBackbone(Backbone):
    """Blocks of 3x3 convolutions without padding, the last stride 2 of each pair, then two dense layers.

    Built by `mnist_backbone` and `plain_cnn`; `features` is the number of features of each block, every
    second block has stride 2. The input must be `window` pixels wide and high with `channels` channels.
    """

    def __init__(
        self,
        features: tuple[int, ...] = (16, 16, 32, 32),
        *,
        window: int = 28,
        channels: int = 1,
        classes: int = 10,
        hidden: int = 100,
        dropout: float = 0.15,
        batch_norm: bool = True,
    ) -> None:
        super().__init__()
        require_counts(channels=channels, classes=classes, hidden=hidden, window=window)
        require_features(features)
        self.features, self.window, self.channels, self.classes = tuple(features), window, channels, classes
        self.hidden, self.batch_norm = hidden, batch_norm
        self.strides = tuple(1 + index % 2 for index in range(len(features)))
        self.stride = math.prod(self.strides)
        self.side = _side_after(window, self.strides)
        self.convolutions = nn.Sequential(
            *(
                conv_block(*between, stride, batch_norm=batch_norm)
                for between, stride in zip(pairwise((channels, *features)), self.strides, strict=True)
            )
        )
        self.dense = nn.Linear(features[-1] * self.side**2, hidden)
        self.drop = nn.Dropout(dropout)
        self.classifier = nn.Linear(hidden, classes)

    @property
    def dropout(self) -> float:
        return self.drop.p

    def through(self, windows: Tensor, parts: Sequence[Callable[[Tensor], Tensor]]) -> Tensor:
        maps = parts[0](windows)  # (N, C', side, side)
        codes = F.relu(self.dense(maps.flatten(1)))  # (N, hidden)
        return self.classifier(self.drop(codes))  # (N, K)

    def logit_map(self, images: Tensor, kept: Tensor | None = None) -> Tensor:
        """Logits (N, K, h, w) at every place of a larger image, the dense layers slid as convolutions."""
        return self.slid(self.convolutions(images), kept)

    def slid(self, maps: Tensor, kept: Tensor | None = None) -> Tensor:
        """The dense layers slid over the maps (N, C', H', W') of the convolutions: (N, K, h, w).

        kept       a factor for the codes (N, hidden, 1, 1) in place of dropout at each place by itself
        """
        kernel = self.dense.weight.view(self.hidden, self.features[-1], self.side, self.side)
        codes = F.relu(F.conv2d(maps, kernel, self.dense.bias))  # (N, hidden, h, w)
        codes = self.drop(codes) if kept is None else codes * kept
        return F.conv2d(codes, self.classifier.weight[:, :, None, None], self.classifier.bias)

    def places(self, side: int) -> int:
        """How many logits `logit_map` gives along a side of this many pixels."""
        return _side_after(side, self.strides) - self.side + 1


def mnist_backbone(
    *, window: int = 28, channels: int = 1, classes: int = 10, batch_norm: bool = True, width: int = 1
) -> ConvBackbone:
    """The paper's network of one scale channel: 16-16-32-32-100-K features, 68,870 parameters.

    width      how many times as many features, but for the K of the classes
    """
    require_counts(width=width)
    return ConvBackbone(
        tuple(features * width for features in (16, 16, 32, 32)),
        window=window,
        channels=channels,
        classes=classes,
        hidden=100 * width,
        batch_norm=batch_norm,
    )


class CifarBackbone(Backbone):
    """The paper's CIFAR-10 network: seven padded 3x3 blocks, stride 2 in 3, 5 and 7, global average pooling.

    298,506 parameters with 3 channels and 10 classes. Any window of at least one pixel fits.
    """

    FEATURES = (32, 32, 32, 64, 64, 128, 128)

    def __init__(self, *, channels: int = 3, classes: int = 10) -> None:
        super().__init__()
        require_counts(channels=channels, classes=classes)
        self.channels, self.classes = channels, classes
        self.convolutions = nn.Sequential(
            *(
                conv_block(*between, 2 if index in (2, 4, 6) else 1, padding=1)
                for index, between in enumerate(pairwise((channels, *self.FEATURES)))
            )
        )
        self.classifier = nn.Linear(self.FEATURES[-1], classes)

    def through(self, windows: Tensor, parts: Sequence[Callable[[Tensor], Tensor]]) -> Tensor:
        maps = parts[0](windows)  # (N, 128, n/8, n/8)
        return self.classifier(maps.mean((2, 3)))  # (N, K)


def require_counts(**counts: int) -> None:
    for name, count in counts.items():
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"{name} must be a whole number of at least 1; got {count!r}")


def require_features(features: Sequence[int]) -> None:
    """The features of each layer: at least one layer, and no layer without features."""
    if not features:
        raise ValueError("features must hold a number for each layer, at least one; got none")
    for layer, count in enumerate(features, start=1):
        require_counts(**{f"features of layer {layer}": count})


def _side_after(window: int, strides: tuple[int, ...]) -> int:
    side = window
    for layer, stride in enumerate(strides, start=1):
        if side < 3:
            raise ValueError(
                f"a window of {window} pixels does not fit this backbone: only {side} remain before "
                f"the 3x3 convolution {layer} of {len(strides)}; give a larger window"
            )
        side = (side - 3) // stride + 1
    return side
