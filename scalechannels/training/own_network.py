"""The networks for own images: scale channels, and beside them a plain CNN that costs as much.

Both are made of the paper's 3x3 blocks, as many pairs of them as the window has pixels for. The plain CNN
takes one look at a field four times as wide as a channel's window, at the resolution at which the channel of
the training size sees an object: for 28 pixels these are the paper's own two networks. Its features are
widened or narrowed until it needs as many multiplications as all channels together.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from scalechannels.backbones.paper import ConvBackbone
from scalechannels.network import ScaleChannelNetwork
from scalechannels.pooling import ConcatScales, LogMeanExpOverScales, MaxOverScales, MeanOverScales
from scalechannels.scales import ScaleGrid
from scalechannels.training.config import RunConfig

FIELD = 4
"""The plain CNN's field, and the frame of test images, in sizes of the object: the paper's 112 for 28."""
SMALLEST_SIDE = 4
FEATURES = 16


def own_network(config: RunConfig, channels: int | None, classes: int) -> ScaleChannelNetwork:
    """The network of a resolved configuration for own images. Its windows are always anti-aliased."""
    network, window = config.network, config.network.window
    if window is None or network.low is None or network.high is None:
        raise ValueError("resolve the configuration first")
    grid = ScaleGrid(network.low, network.high, ratio=network.ratio)
    channels = channels or (1 if config.data.colour == "grey" else 3)
    backbone = sized_backbone(window, channels, classes)
    if network.name == "cnn":
        plain = equal_cost_backbone(FIELD * window, channels, classes, len(grid) * multiplications(backbone))
        single = ScaleGrid.of(training_scale(config))
        return ScaleChannelNetwork(plain, single, MaxOverScales(), FIELD * window, antialias=True)
    pools: dict[str, nn.Module] = {
        "fovavg": MeanOverScales(),
        "fovmax": MaxOverScales(),
        "fovlse": LogMeanExpOverScales(),
        "fovconc": ConcatScales(len(grid), classes),
    }
    seen: dict[str, Any] = {"antialias": True, "blur": network.blur, "shifts": network.shifts}
    return ScaleChannelNetwork(backbone, grid, pools[network.name], window, **seen)


def training_scale(config: RunConfig) -> float:
    """σ of the channel whose window an object of the training size fills, in pixels of the reduced images."""
    data, window = config.data, config.network.window
    if data.object_size is None or data.reduce is None or window is None:
        raise ValueError("resolve the configuration first")
    return data.object_size / data.reduce / window


def sized_backbone(window: int, channels: int, classes: int, features: int = FEATURES) -> ConvBackbone:
    """As many pairs of blocks as leave a map of 4x4 or more; the later half has twice the features."""
    side, pairs = window, 0
    while (smaller := (side - 5) // 2 + 1) >= SMALLEST_SIDE:
        side, pairs = smaller, pairs + 1
    if not pairs:
        raise ValueError(f"network.window is at least 11 pixels, got {window}")
    widths = [features if pair < pairs // 2 else 2 * features for pair in range(pairs) for _ in range(2)]
    return ConvBackbone(tuple(widths), window=window, channels=channels, classes=classes)


def equal_cost_backbone(window: int, channels: int, classes: int, wanted: int) -> ConvBackbone:
    """The backbone for this window whose multiplications come nearest to those that are wanted."""
    features = FEATURES
    while multiplications(sized_backbone(window, channels, classes, features)) < wanted:
        features += 1
    while features > 1 and multiplications(sized_backbone(window, channels, classes, features)) > wanted:
        features -= 1
    near = (sized_backbone(window, channels, classes, f) for f in (features, features + 1))
    return min(near, key=lambda backbone: abs(multiplications(backbone) - wanted))


def multiplications(backbone: ConvBackbone) -> int:
    """Of one window: what a forward pass multiplies, its cost up to a factor that all networks share."""
    side, inputs, total = backbone.window, backbone.channels, 0
    for outputs, stride in zip(backbone.features, backbone.strides, strict=True):
        side = (side - 3) // stride + 1
        total += side**2 * 9 * inputs * outputs
        inputs = outputs
    return total + side**2 * inputs * backbone.hidden + backbone.hidden * backbone.classes
