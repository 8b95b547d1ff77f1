"""A spatial transformer before the plain CNN: a small network looks first, and says which window to look at.

Jaderberg, Simonyan, Zisserman and Kavukcuoglu, "Spatial Transformer Networks", NeurIPS 2015.

    image ─▶ localisation ─▶ a window of the image: where, how large ─▶ resampled to n x n ─▶ the plain CNN

Law: an image and a window that are rescaled and moved together give the same n x n pixels, so the network is
invariant as far as its localisation is covariant. Limit: nothing makes the localisation covariant; it learns
what the training images show, and of one size that is one window.

The localisation is ours, since the paper has another for each data set: three 3x3 convolutions of stride 2
(16-16-32 features), their means over 4x4 places, 32 hidden units. It begins with the whole image.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from scalechannels.backbones.paper import conv_block
from scalechannels.backbones.sized import sized_backbone
from scalechannels.rivals.rival import Rival, in_full_precision

Windows = Literal["square", "affine"]
PLACES = 4
HIDDEN = 32


class SpatialTransformer(Rival):
    """Images (B, C, n, n) to logits (B, K).

    image      n; for 112 pixels the plain CNN behind is the paper's
    windows    square: a size and a place, 3 numbers; affine: any parallelogram, 6 numbers
    """

    def __init__(
        self, *, image: int = 112, channels: int = 1, classes: int = 10, windows: Windows = "square"
    ) -> None:
        super().__init__()
        if windows not in ("square", "affine"):
            raise ValueError(f"windows must be square or affine; got {windows!r}")
        self.image, self.channels, self.classes, self.windows = image, channels, classes, windows
        self.seen = nn.Sequential(
            conv_block(channels, 16, 2, padding=1),
            conv_block(16, 16, 2, padding=1),
            conv_block(16, 32, 2, padding=1),
            nn.AdaptiveAvgPool2d(PLACES),
            nn.Flatten(),
            nn.Linear(32 * PLACES**2, HIDDEN),
            nn.ReLU(inplace=True),
        )
        self.says = nn.Linear(HIDDEN, 3 if windows == "square" else 6)
        nn.init.zeros_(self.says.weight)
        nn.init.zeros_(self.says.bias)
        self.cnn = sized_backbone(image, channels, classes)

    @property
    def window(self) -> int:
        """The side of the images that it takes."""
        return self.image

    def logits(self, images: Tensor) -> Tensor:
        return self.cnn(resampled(images, self.window_of(images)))

    def window_of(self, images: Tensor) -> Tensor:
        """Affine maps (B, 2, 3) from the window to the image, both from −1 to 1."""
        said = self.says(self.seen(images))  # (B, 3 or 6)
        if self.windows == "affine":
            return said.view(-1, 2, 3) + torch.eye(2, 3, device=said.device, dtype=said.dtype)
        size, none = said[:, 0].exp(), torch.zeros_like(said[:, 0])
        return torch.stack([size, none, said[:, 1], none, size, said[:, 2]], 1).view(-1, 2, 3)


def resampled(images: Tensor, windows: Tensor) -> Tensor:
    """What windows (B, 2, 3) see of images (B, C, H, W), as many pixels; the border goes on outside."""
    kind = images.dtype
    with in_full_precision(images):
        images = images if images.dtype == torch.float64 else images.float()
        grid = F.affine_grid(windows.to(images), list(images.shape), align_corners=False)
        seen = F.grid_sample(images, grid, padding_mode="border", align_corners=False)
        return seen.to(kind)


def affine_transformer(channels: int, classes: int, image: int) -> SpatialTransformer:
    return SpatialTransformer(image=image, channels=channels, classes=classes, windows="affine")
