"""training.parts: magnified parts of an object must not look like another class.

    image (B,C,H,W) → a pixel where it changes → windows about it, finer than any channel (B·P,C,n,n)

A channel finer than an object sees magnified parts of it: a thick stroke, a corner. A network that looks
everywhere and was trained on small objects has never seen them as large as larger objects show them, and the
maximum over places takes whichever looks like a class. So each training step also looks at a few windows that
are finer than the finest channel. What they say of wrong classes is added to the answer, what they say of the
right one is not: the network learns to be silent about parts, and cannot learn objects by them.

Law: the loss is that of the network alone where no part says anything.
Limit: a few windows of each image. A part that is like another object as a whole, a 1 in a 4, remains.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from scalechannels.sampling import Foveate
from scalechannels.scales import ScaleGrid

PLACES = 3
"""Windows along each axis that are looked at in a channel, a stride apart."""
EVEN = 1e-3
"""How likely a pixel of even surroundings is looked at, as a share of the likeliest one."""
OCTAVE = 2.0
"""The ratio of the scales, where the network has only one."""


class Parts(nn.Module):
    """Which parts of images a network looks at in a step, and what it says of them.

    network    looks everywhere
    finer      the finest look is so many times finer than the finest channel; the others lie between
    """

    def __init__(self, network: Any, finer: float) -> None:
        super().__init__()
        grid, foveate = network.grid, network.foveate
        ratio = grid.factors[1] / grid.factors[0] if len(grid) > 1 else OCTAVE
        steps = max(1, math.floor(math.log(finer, ratio) + 1e-6))
        scales = [grid.minimum / ratio**step for step in range(steps, 0, -1)]
        side = foveate.window + (PLACES - 1) * network.everywhere.stride
        self.look = Foveate(ScaleGrid.of(*scales), **{**foveate.arguments(), "window": side})
        self.channels, self.everywhere = len(grid), network.everywhere

    def forward(self, images: Tensor) -> Tensor:
        """What is looked at: (B·P, C, n, n), for each image at P scales."""
        return self.look(images, self.drawn(images)).flatten(0, 1)

    @torch.no_grad()
    def drawn(self, images: Tensor) -> Tensor:
        """A pixel of each image (B, 2), drawn by how much the image changes there."""
        change = sum(
            F.pad(images.float().diff(dim=axis).abs().sum(1), pad)
            for axis, pad in ((2, (0, 0, 0, 1)), (3, (0, 1)))
        )  # (B, H, W)
        odds = change.flatten(1)  # type: ignore[union-attr]
        odds = odds + EVEN * odds.amax(1, keepdim=True) + torch.finfo(odds.dtype).tiny
        chosen = (odds / torch.empty_like(odds).exponential_()).argmax(1)  # each with its odds
        width = images.shape[3]
        return torch.stack((chosen // width, chosen % width), 1).to(odds.dtype)

    def said(self, maps: Tensor) -> Tensor:
        """Logits of the windows (B·P, K, h, w) as one more channel would say them: (B, K)."""
        scales = self.look.grid
        each = maps.flatten(2).amax(2).unflatten(0, (-1, len(scales))).float()  # (B, P, K)
        parts = zip(each.unbind(1), scales, strict=True)
        counted = torch.stack([self.everywhere.counted(logits, sigma) for logits, sigma in parts], 1)
        return counted.logsumexp(1) - math.log(self.channels)
