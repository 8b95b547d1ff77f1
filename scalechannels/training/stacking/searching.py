"""SWMax tested by search: where each class is strongest is found by the training's kernels, then looked at.

Law: logits and contributions are those of SlidingWindowNetwork. Limit: on a GPU the search is in bfloat16, so
of two places that tie within its rounding the weaker may be taken; its logit is that place's own in float32.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from scalechannels.sliding import SlidingWindowNetwork
from scalechannels.training.stacking.stacked import StackedSliding, can_stack

PIECE = 256
"""Images searched at once."""


class SearchedSliding(nn.Module):
    """One sliding-window network for images of one size; its weights are copied."""

    def __init__(self, network: SlidingWindowNetwork, height: int, width: int) -> None:
        super().__init__()
        self.scales = len(network.grid)
        self.stack = StackedSliding([network], height, width).to(next(network.parameters()).device)

    def forward(self, images: Tensor) -> Tensor:
        return self.outputs(images)[0]

    def outputs(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (B, K), and 1 for the channel that decided (B, S)."""
        logits, channels = zip(*(self._search(part) for part in images.split(PIECE)), strict=True)
        return torch.cat(logits), F.one_hot(torch.cat(channels), self.scales).to(images.dtype)

    def _search(self, images: Tensor) -> tuple[Tensor, Tensor]:
        logits, places = (found[0] for found in self.stack.search(images[None]))  # (B, K)
        winner = places.gather(1, logits.argmax(1, keepdim=True))[:, 0]  # (B,)
        return logits, self.stack.canvas.channels[winner]


def searched(network: nn.Module, height: int, width: int) -> nn.Module:
    """The network in this form where that is faster: on a GPU, for one input channel and no batch norm."""
    on_gpu = next(network.parameters()).is_cuda
    if on_gpu and isinstance(network, SlidingWindowNetwork) and can_stack(network):
        return SearchedSliding(network, height, width).eval()
    return network
