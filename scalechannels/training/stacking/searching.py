"""SWMax tested by search: where each class is strongest is found by the training's kernels, then looked at.

Law: logits and contributions are the network's own. Limit: on a GPU the search is in bfloat16, so
of two places that tie within its rounding the weaker may be taken; its logit is that place's own in float32.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from scalechannels.network import Explanation, ScaleChannelNetwork
from scalechannels.training.stacking.stacked import StackedSliding

PIECE = 256
"""Images searched at once."""


class SearchedSliding(nn.Module):
    """One sliding-window network for images of one size; its weights are copied."""

    def __init__(self, network: ScaleChannelNetwork, height: int, width: int) -> None:
        super().__init__()
        self.grid = network.grid
        self.stack = StackedSliding([network], height, width).to(next(network.parameters()).device)

    def forward(self, images: Tensor) -> Tensor:
        return self.explain(images).logits

    def explain(self, images: Tensor) -> Explanation:
        """The logits, and 1 for the channel that decided; what the others say is not looked at."""
        logits, channels = zip(*(self._search(part) for part in images.split(PIECE)), strict=True)
        decided = torch.cat(channels)  # (B,)
        shares = F.one_hot(decided, len(self.grid)).to(images.dtype)
        return Explanation(torch.cat(logits), None, shares, self.grid.scales.to(decided.device)[decided])

    def _search(self, images: Tensor) -> tuple[Tensor, Tensor]:
        logits, places = (found[0] for found in self.stack.search(images[None]))  # (B, K)
        winner = places.gather(1, logits.argmax(1, keepdim=True))[:, 0]  # (B,)
        return logits, self.stack.canvas.channels[winner]
