"""A plain CNN with multi-scale test-time averaging: what one would do without scale channels.

    image (B,C,H,W) → zoomed by every factor (B,S,C,n,n) → CNN on B·S → softmax → mean over S → its log (B,K)

In the words of this library it is a scale-channel network whose window is the CNN's whole image, whose
pooling is the mean of probabilities, and whose weights come from training without channels: the CNN never
learnt what it should say about an object of another size, and is often sure, and wrong.
"""

from __future__ import annotations

import math

from scalechannels.backbones.paper import stated
from scalechannels.foveate import Outside
from scalechannels.network import ScaleChannelNetwork
from scalechannels.plain import PlainNetwork
from scalechannels.pooling import MeanProbabilityOverScales
from scalechannels.scales import ScaleGrid


def averaged_over_scales(
    network: PlainNetwork,
    sizes: ScaleGrid,
    training_size: float,
    *,
    window: int | None = None,
    outside: Outside = "border",
    antialias: bool = False,
) -> ScaleChannelNetwork:
    """A plain CNN that learnt objects of one size, averaged over the factors that bring `sizes` back to it.

    Sizes and training size are in one unit of your choice: for MNIST Large Scale, a CNN that learnt size 2
    and is tested from 1/2 to 8 takes ScaleGrid(0.5, 8, ratio=2**0.25) and 2; its factors are 1/4 to 4. The
    weights are shared, not copied.

    window     the side of the images that the CNN learnt from; may be left out where its backbone says it
    outside, antialias   see Foveate; zoomed out, most of what the CNN sees lies outside the image

    Law: with the one factor 1 it is the CNN, its logits normalised to log-probabilities.
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
    backbone = network.backbone
    side = window if window is not None else stated(backbone, "window")
    if side is None:
        raise ValueError(
            f"{type(backbone).__name__} takes images of any size: give window=, the side of the images that "
            "it learnt from"
        )
    factors = ScaleGrid.of(*(size / training_size for size in sizes))
    return ScaleChannelNetwork(
        backbone, factors, MeanProbabilityOverScales(), side, outside=outside, antialias=antialias
    )
