"""The networks inside a scale channel, and the plain CNN beside them. They know nothing of scales.

A backbone maps windows (N, C, n, n) to logits (N, K). Those of the paper can also slide: `logit_map` applies
the dense layers as convolutions and gives logits at every place of a larger image.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights


def conv_block(
    inputs: int, outputs: int, *, stride: int, padding: int = 0, batch_norm: bool = True
) -> nn.Sequential:
    """3x3 convolution, batch norm unless declined, ReLU."""
    layers: list[nn.Module] = [nn.Conv2d(inputs, outputs, 3, stride=stride, padding=padding)]
    if batch_norm:
        layers.append(nn.BatchNorm2d(outputs))
    return nn.Sequential(*layers, nn.ReLU(inplace=True))


def fold(blocks: nn.Sequential) -> Callable[[Tensor], Tensor]:
    """Blocks with batch norm folded into the convolutions: a third less time on a CPU.

    In eval mode batch norm is a fixed factor and shift for each feature, which the convolution's weights can
    hold. Law: equal to the blocks as they are, up to rounding: a block that was changed (see `foldable`) is
    called, not folded. Limit: later changes of the weights are not seen.
    """
    if type(blocks) is not nn.Sequential or not untouched(blocks):
        return blocks
    steps = [_folded(block) if foldable(block) else block for block in blocks]

    def apply(maps: Tensor) -> Tensor:
        for step in steps:
            maps = step(maps)
        return maps

    return apply


def foldable(block: nn.Module) -> bool:
    """Whether a block is exactly a convolution, a batch norm with fixed statistics or none, and a ReLU."""
    if type(block) is not nn.Sequential or not all(map(untouched, (block, *block))):
        return False
    convolution, *norms, last = block if len(block) in (2, 3) else (None, None)
    return (
        type(convolution) is nn.Conv2d
        and convolution.padding_mode == "zeros"
        and all(
            type(norm) in (nn.BatchNorm2d, nn.SyncBatchNorm)
            and not norm.training
            and norm.running_mean is not None
            and norm.running_var is not None
            for norm in norms
        )
        and type(last) is nn.ReLU
    )


def untouched(module: nn.Module) -> bool:
    """Whether a call of the module is its class's `forward` and nothing beside: no hooks of its own."""
    return not (module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module))


def _folded(block: Any) -> Callable[[Tensor], Tensor]:
    convolution, *norms, _ = block
    weight, bias = convolution.weight, convolution.bias
    for norm in norms:
        weight, bias = fuse_conv_bn_weights(
            weight, bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
        )
    options = convolution.stride, convolution.padding, convolution.dilation, convolution.groups
    return lambda maps: F.conv2d(maps, weight, bias, *options).relu_()


class Backbone(nn.Module):
    """What the backbones of this library have in common. A user's own module need not be one.

    channels   C, of the windows that it takes
    window     their side, where it takes one alone; other backbones have no such attribute
    """

    channels: int

    def folded(self) -> Callable[[Tensor], Tensor]:
        """The same function of windows in eval mode, as the weights are now, in less time where possible.

        It replaces the `forward` of the class that defines it: a subclass with another is called as it is.
        """
        return self


def stated(backbone: nn.Module, name: Literal["channels", "window"]) -> int | None:
    """What a backbone of this library says of itself, where it does.

    Of a user's own nothing is believed: there `channels` may be a hidden width, `window` one of attention.
    """
    return getattr(backbone, name, None) if isinstance(backbone, Backbone) else None


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
        _require_counts(channels=channels, classes=classes, hidden=hidden, window=window)
        self.features, self.window, self.channels, self.classes = tuple(features), window, channels, classes
        self.hidden, self.batch_norm = hidden, batch_norm
        self.strides = tuple(1 + index % 2 for index in range(len(features)))
        self.side = _side_after(window, self.strides)
        self.convolutions = nn.Sequential(
            *(
                conv_block(inputs, outputs, stride=stride, batch_norm=batch_norm)
                for inputs, outputs, stride in zip(
                    (channels, *features), features, self.strides, strict=False
                )
            )
        )
        self.dense = nn.Linear(features[-1] * self.side**2, hidden)
        self.drop = nn.Dropout(dropout)
        self.classifier = nn.Linear(hidden, classes)

    def forward(self, windows: Tensor) -> Tensor:
        return self._classify(self.convolutions(windows))

    def _classify(self, maps: Tensor) -> Tensor:  # (N, C', side, side)
        codes = F.relu(self.dense(maps.flatten(1)))  # (N, hidden)
        return self.classifier(self.drop(codes))  # (N, K)

    def folded(self) -> Callable[[Tensor], Tensor]:
        """The same function of windows in eval mode, as the weights are now; see `fold`."""
        convolutions = fold(self.convolutions)
        return lambda windows: self._classify(convolutions(windows))

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

    def arguments(self) -> dict[str, Any]:
        return {
            "features": list(self.features),
            "window": self.window,
            "channels": self.channels,
            "classes": self.classes,
            "hidden": self.hidden,
            "dropout": self.drop.p,
            "batch_norm": self.batch_norm,
        }


def mnist_backbone(
    *, window: int = 28, channels: int = 1, classes: int = 10, batch_norm: bool = True, width: int = 1
) -> ConvBackbone:
    """The paper's network of one scale channel: 16-16-32-32-100-K features, 68,870 parameters.

    width      how many times as many features, but for the K of the classes
    """
    _require_counts(width=width)
    return ConvBackbone(
        (16 * width, 16 * width, 32 * width, 32 * width),
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
        _require_counts(channels=channels, classes=classes)
        self.channels, self.classes = channels, classes
        self.convolutions = nn.Sequential(
            *(
                conv_block(inputs, outputs, stride=2 if index in (2, 4, 6) else 1, padding=1)
                for index, (inputs, outputs) in enumerate(
                    zip((channels, *self.FEATURES), self.FEATURES, strict=False)
                )
            )
        )
        self.classifier = nn.Linear(self.FEATURES[-1], classes)

    def forward(self, windows: Tensor) -> Tensor:
        return self._classify(self.convolutions(windows))

    def _classify(self, maps: Tensor) -> Tensor:  # (N, 128, n/8, n/8)
        return self.classifier(maps.mean((2, 3)))  # (N, K)

    def folded(self) -> Callable[[Tensor], Tensor]:
        """The same function of windows in eval mode, as the weights are now; see `fold`."""
        convolutions = fold(self.convolutions)
        return lambda windows: self._classify(convolutions(windows))

    def arguments(self) -> dict[str, Any]:
        return {"channels": self.channels, "classes": self.classes}


def _require_counts(**counts: int) -> None:
    for name, count in counts.items():
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"{name} is a whole number of at least 1, got {count!r}")


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
