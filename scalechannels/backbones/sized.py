"""The paper's backbone for windows of any size, and one that costs as much for another window.

Both are made of the paper's 3x3 blocks, as many pairs of them as the window has pixels for; for 28 and 112
pixels these are the paper's own two networks.
"""

from __future__ import annotations

from scalechannels.backbones.paper import ConvBackbone

SMALLEST_SIDE = 4
FEATURES = 16


def sized_backbone(window: int, channels: int, classes: int, features: int = FEATURES) -> ConvBackbone:
    """As many pairs of blocks as leave a map of 4x4 or more; the later half has twice the features."""
    side, pairs = window, 0
    while (smaller := (side - 5) // 2 + 1) >= SMALLEST_SIDE:
        side, pairs = smaller, pairs + 1
    if not pairs:
        raise ValueError(f"network.window must be at least 11 pixels; got {window}")
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
