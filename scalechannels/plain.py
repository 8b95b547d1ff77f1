"""The plain CNN beside the scale-channel networks: one look at the whole image, at one scale."""

from __future__ import annotations

from typing import Any, get_args

import torch
from torch import Tensor, nn

from scalechannels.backbones.inference import binds_images, for_inference, in_pieces, require_logits
from scalechannels.backbones.paper import CifarBackbone, ConvBackbone, stated
from scalechannels.foveate import require_images
from scalechannels.network import Data
from scalechannels.saving.pretrained import Network


class PlainNetwork(Network):
    """A backbone applied to whole images (B, C, H, W), checked and saved as the other networks are."""

    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, K)."""
        require_images(images, stated(self.backbone, "channels"))
        side = stated(self.backbone, "window")
        if side is not None and tuple(images.shape[2:]) != (side, side):
            raise ValueError(
                f"the plain CNN takes images of {side}x{side} pixels, got {images.shape[2]}x{images.shape[3]}"
            )
        pixels = images.shape[1] * images.shape[2] * images.shape[3]
        backbone = for_inference(self.backbone)
        return in_pieces(
            lambda part, _: require_logits(backbone(part), part),
            images,
            None,
            pixels,
            training=binds_images(self),
        )

    def arguments(self) -> dict[str, Any]:
        return {"backbone": self.backbone}


def cnn(
    *, data: Data = "mnist", image_size: int = 112, channels: int | None = None, classes: int = 10
) -> PlainNetwork:
    """The paper's plain CNN: eight blocks on 112x112 digits (92,198 parameters), or the CIFAR-10 backbone."""
    if data == "mnist":
        features = (16, 16, 16, 16, 32, 32, 32, 32)
        return PlainNetwork(
            ConvBackbone(
                features, window=image_size, channels=1 if channels is None else channels, classes=classes
            )
        )
    if data == "cifar10":
        return PlainNetwork(CifarBackbone(channels=3 if channels is None else channels, classes=classes))
    raise ValueError(f"data is one of {get_args(Data)}, got {data!r}")
