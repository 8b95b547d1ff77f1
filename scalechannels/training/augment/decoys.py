"""training.decoys: what is finer or coarser than the channels must not look like another class.

    image (B,C,H,W) → a pixel where it changes → windows about it, finer than any channel   (B·P,C,n,n)
                    → the image, coarser than any channel                                  (B·Q,C,h,w)

A fine channel sees parts of a large object: a thick stroke, a corner. A coarse one sees a small object as a
few pixels. A network that looks everywhere and was trained on objects of one size has never seen them as
others show them, and the maximum over places takes whichever looks like a class. So each training step also
looks beyond the channels, at both ends. What it sees there adds to the wrong classes of the answer and not to
the right one: the network learns to be silent about such views, and cannot learn objects by them.

Law: the loss is that of the network alone where no such view says anything.
Limit: a few fine windows of each image. A part that is like another object as a whole, a 1 in a 4, remains.
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
"""Windows along each axis that are looked at in a fine view, a stride apart."""
EVEN = 1e-3
"""How likely a pixel of even surroundings is looked at, as a share of the likeliest one."""
OCTAVE = 2.0
"""The ratio of the scales, where the network has only one."""


class Decoys(nn.Module):
    """What a network looks at in a step beside its channels, and what it says of it.

    network    looks everywhere
    factor     the last views are so many times finer and coarser than the channels; others lie between
    """

    def __init__(self, network: Any, factor: float) -> None:
        super().__init__()
        grid, foveate = network.grid, network.foveate
        ratio = grid.factors[1] / grid.factors[0] if len(grid) > 1 else OCTAVE
        steps = range(1, 1 + max(1, math.floor(math.log(factor, ratio) + 1e-6)))
        finer = ScaleGrid.of(*(grid.minimum / ratio**step for step in reversed(steps)))
        coarser = ScaleGrid.of(*(grid.maximum * ratio**step for step in steps))
        side = foveate.window + (PLACES - 1) * network.everywhere.stride
        self.finer = Foveate(finer, **{**foveate.arguments(), "window": side})
        self.coarser = Foveate(coarser, **foveate.arguments())
        self.channels, self.everywhere = len(grid), network.everywhere

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Each image at P finer scales (B·P, C, n, n) and at Q coarser ones (B·Q, C, h, w)."""
        finer = self.finer(images, self.drawn(images))
        size = self.everywhere.sampled_size(images.shape[2:], self.coarser.grid.minimum)
        return finer.flatten(0, 1), self.coarser.sampled(images, size).flatten(0, 1)

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

    def said(self, finer: Tensor, coarser: Tensor) -> Tensor:
        """Logits of the views (B·P, K, …), (B·Q, K, …) as one more channel would say them: (B, K)."""
        counted = []
        for maps, scales in ((finer, self.finer.grid.factors), (coarser, self.coarser.grid.factors)):
            each = maps.flatten(2).amax(2).unflatten(0, (-1, len(scales))).float().unbind(1)  # (B, K)
            counted += [self.everywhere.counted(one, sigma) for one, sigma in zip(each, scales, strict=True)]
        return torch.stack(counted, 1).logsumexp(1) - math.log(self.channels)
