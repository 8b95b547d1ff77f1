"""The plain CNN beside the scale-channel networks: it sees the whole image at one scale.

`averaged_over_scales` is what one would do without scale channels: test it on zoomed images, and average.

    image (B,C,H,W) → zoomed by every factor (B,S,C,n,n) → CNN on B·S → softmax → mean over S → its log (B,K)

In the words of this library that is a scale-channel network whose window is the CNN's whole image, whose
pooling is the mean of probabilities, and whose weights come from training without channels: the CNN was never
trained on objects of another size, and is often sure of them, and wrong.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from scalechannels.backbones.inference import evaluating, logits_of, stated
from scalechannels.backbones.paper import CifarBackbone, ConvBackbone, require_counts
from scalechannels.constructors import Data, usual
from scalechannels.network import Explanation, ScaleChannelNetwork
from scalechannels.pooling import MeanProbabilityOverScales
from scalechannels.sampling import Outside, require_images, resample
from scalechannels.saving.saved_network import Network
from scalechannels.saving.usage import USAGE
from scalechannels.scales import ScaleGrid


class PlainNetwork(Network):
    """A backbone applied to whole images (B, C, H, W), checked and saved as the other networks are.

    resize     False: images have the backbone's size. True: images of any size are resized to its window
               first, see `resized`; the answer then does not depend on their size in pixels
    window     the side of that window in pixels, for a backbone that takes any

    Example:
        >>> import torch
        >>> from scalechannels import PlainNetwork
        >>> backbone = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 5))
        >>> PlainNetwork(backbone)(torch.rand(2, 3, 32, 32)).shape
        torch.Size([2, 5])
    """

    look: Literal["whole"] = "whole"

    def __init__(self, backbone: nn.Module, resize: bool = False, window: int | None = None) -> None:
        super().__init__()
        own = stated(backbone, "window")
        if window is not None and own not in (None, window):
            raise ValueError(f"the backbone's window has {own} pixels; got window={window}")
        self.window = own if window is None else window
        if resize and self.window is None:
            raise ValueError("resize needs window, as this backbone does not say how large its window is")
        self.backbone = backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.resize = resize

    if TYPE_CHECKING:  # torch says that a module gives anything

        def __call__(self, images: Tensor) -> Tensor: ...

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, K)."""
        require_images(images, stated(self.backbone, "channels"))
        side = self.window
        if side is not None and tuple(images.shape[2:]) != (side, side):
            if not self.resize:
                raise ValueError(
                    f"images must have the plain CNN's {side}x{side} pixels; "
                    f"got {images.shape[2]}x{images.shape[3]}"
                )
            images = resized(images, side)
        return logits_of(self.backbone, images)

    def explain(self, images: Tensor) -> Explanation:
        """The logits in eval mode, whatever mode the network is in; there are no channels."""
        with evaluating(self):
            return Explanation(self(images))

    def arguments(self) -> dict[str, Any]:
        said = {"resize": True} if self.resize else {}
        window = {} if stated(self.backbone, "window") == self.window else {"window": self.window}
        return {"backbone": self.backbone, **said, **window}


def resized(images: Tensor, side: int) -> Tensor:
    """Images (B, C, H, W), or one (C, H, W), resized as a whole to `side` x `side` pixels, anti-aliased.

    The aspect ratio is kept: the longer side fits, and beyond the shorter one the image's edges are repeated.
    """
    scale = max(images.shape[-2:]) / side
    made = resample(
        images if images.ndim == 4 else images[None], ScaleGrid.of(scale), (side, side), antialias=True
    )[:, 0]
    return made if images.ndim == 4 else made[0]


def cnn(
    *,
    data: Data = "mnist",
    image_size: int = 112,
    channels: int | None = None,
    classes: int = 10,
    width: int = 1,
) -> PlainNetwork:
    """The paper's plain CNN: eight blocks on 112x112 digits (92,198 parameters), or the CIFAR-10 backbone.

    width      of digits' CNN: how many times as many features, but for those of the classes

    Example:
        >>> import torch
        >>> from scalechannels import cnn
        >>> network = cnn()
        >>> network(torch.rand(2, 1, 112, 112)).shape
        torch.Size([2, 10])
        >>> sum(weights.numel() for weights in network.parameters())
        92198
    """
    channels = usual(data)[0] if channels is None else channels
    require_counts(width=width)
    if data == "cifar10":
        if width != 1:
            raise ValueError(f"width must be 1 for the CIFAR-10 backbone; got {width}")
        return PlainNetwork(CifarBackbone(channels=channels, classes=classes))
    backbone = ConvBackbone(
        tuple(width * features for features in (16, 16, 16, 16, 32, 32, 32, 32)),
        window=image_size,
        channels=channels,
        classes=classes,
        hidden=100 * width,
    )
    return PlainNetwork(backbone)


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

    window     the side of the CNN's training images; may be left out where its backbone says it
    outside, antialias   see Foveate; zoomed out, most of what the CNN sees lies outside the image

    Law: with the one factor 1 it is the CNN, its logits normalised to log-probabilities.

    Example:
        >>> import torch, scalechannels
        >>> plain = scalechannels.load("cnn-mnist")             # learnt digits of size 2
        >>> sizes = scalechannels.ScaleGrid(1, 4, ratio=2)
        >>> network = scalechannels.averaged_over_scales(plain, sizes, training_size=2)
        >>> list(network.grid), network(torch.rand(2, 1, 112, 112)).shape
        ([0.5, 1.0, 2.0], torch.Size([2, 10]))
    """
    if not isinstance(network, PlainNetwork):
        raise TypeError(f"network must be a PlainNetwork, such as cnn(); got {type(network).__name__}")
    if not isinstance(sizes, ScaleGrid):
        raise TypeError(
            f"sizes must be a ScaleGrid, such as ScaleGrid(0.5, 8, ratio=2**0.25); got {type(sizes).__name__}"
        )
    if not (training_size > 0 and math.isfinite(training_size)):
        raise ValueError(f"training_size must be a positive, finite number; got {training_size}")
    backbone = network.backbone
    side = window if window is not None else stated(backbone, "window")
    if side is None:
        raise ValueError(
            f"{type(backbone).__name__} takes images of any size: give window=, the side of its "
            "training images"
        )
    factors = ScaleGrid.of(*(size / training_size for size in sizes))
    averaged = ScaleChannelNetwork(
        backbone, factors, MeanProbabilityOverScales(), side, outside=outside, antialias=antialias
    )
    if network.usage is not None:  # but for what was measured of other logits
        averaged.usage = {key: network.usage[key] for key in USAGE if key in network.usage}
    return averaged
