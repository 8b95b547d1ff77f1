"""training.colour: every image in another light.

Each image becomes brighter or darker, flatter or harder, paler or more colourful, by factors from 1 − s to
1 + s that are drawn for it alone: brightness multiplies all values, contrast their distance to the image's
mean grey, saturation the distance of each colour to the pixel's grey.

Law: with all factors 1 the image stays as it is; a grey image has no saturation to change. Limits: values are
shares of white, from 0 to 1, and are clipped there; hues stay, since they often tell classes apart.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

LUMA = (0.299, 0.587, 0.114)
"""The shares of red, green and blue in a pixel's grey, as Pillow has them."""


class Colour(nn.Module):
    """Images (R, B, C, H, W) from 0 to 1, of one or three colours, to others each time.

    strength   s: how far the three factors lie from 1, at most
    """

    def __init__(self, strength: float) -> None:
        super().__init__()
        if not 0 <= strength < 1:
            raise ValueError(f"strength must be at least 0 and below 1; got {strength}")
        self.strength = strength

    def forward(self, images: Tensor, *_: Tensor) -> Tensor:
        factors = 1 + self.strength * (2 * torch.rand(3, *images.shape[:2], device=images.device) - 1)
        return self.seen(images, factors[..., None, None, None].to(images.dtype))

    def seen(self, images: Tensor, factors: Tensor) -> Tensor:
        """Images in the light of factors (3, R, B, 1, 1, 1): of brightness, contrast and saturation."""
        brightness, contrast, saturation = factors
        grey = grey_of(images)  # (R, B, 1, H, W)
        mean = grey.mean((-2, -1), keepdim=True)  # (R, B, 1, 1, 1)
        paler = grey + saturation * (images - grey)
        return (brightness * (mean + contrast * (paler - mean))).clamp(0, 1)


def grey_of(images: Tensor) -> Tensor:
    """The grey (…, 1, H, W) of images (…, C, H, W): the image itself, if it has one colour."""
    if images.shape[-3] == 1:
        return images
    # The shares come from Python, since a captured CUDA graph must not copy a tensor from the host.
    (red, green, blue), parts = LUMA, images.unbind(-3)
    return (red * parts[0] + green * parts[1] + blue * parts[2]).unsqueeze(-3)
