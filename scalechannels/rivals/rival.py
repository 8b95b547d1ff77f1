"""What the rivals share: how a module (B, C, H, W) to (B, K) is called so that it fits into memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor

from scalechannels.backbones.inference import Backbone, binds_images, in_pieces

Reading = Literal["centre", "max"]
"""Where a map of logits is read: at the centre of the image, or wherever each class is strongest."""


SIZES = 4
"""Of images, whose filters are kept."""


class Rival(Backbone):
    """A network of whole images. A subclass has `logits`; each argument of its constructor is an attribute.

    heavy   how many times more numbers than a plain CNN's it holds for each pixel: at inference, so many
            times fewer images go through at once
    """

    heavy: float = 1.0
    classes: int

    def logits(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) to (B, K)."""
        raise NotImplementedError

    def forward(self, images: Tensor) -> Tensor:
        pixels = max(1, round(self.heavy * images[0].numel()))
        return in_pieces(lambda part, _: self.logits(part), images, None, pixels, training=binds_images(self))

    def correction(self, height: int, width: int) -> int:
        """Multiplications of one image that a count of matrix products and convolutions misses.

        Negative where it counts products with zeros, which another way to write the same filter would skip.
        """
        return 0


@contextmanager
def kept_for_all(made: dict[Any, Tensor]) -> Iterator[None]:
    """While filters are made to be kept in `made`, of a few sizes of image: memory stays bounded.

    Those that are made in inference mode can be learnt through later, too.
    """
    while len(made) >= SIZES:
        del made[next(iter(made))]
    with torch.inference_mode(False), torch.no_grad():
        yield


def read(maps: Tensor, reading: Reading) -> Tensor:
    """Maps (…, H, W) to (…): at the centre, which of an even side are two pixels, or the maximum."""
    if reading == "max":
        return maps.amax((-2, -1))
    for _ in range(2):
        side = maps.shape[-1]
        maps = maps[..., (side - 1) // 2 : side // 2 + 1].mean(-1)  # rows last, then columns
    return maps


def in_full_precision(maps: Tensor) -> torch.autocast:
    """Autocast turned off: a filter that cancels large numbers needs more than eight bits of them."""
    return torch.autocast(maps.device.type, enabled=False)
