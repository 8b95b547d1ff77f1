"""One network in the form of a stack of one."""

from __future__ import annotations

from torch import Tensor, nn

from scalechannels.network import ScaleChannelNetwork
from scalechannels.pretrained import Network


class Alone(nn.Module):
    """Inputs (1, B, …) to logits (1, B, K); `cached` inputs are windows that were foveated before."""

    def __init__(self, network: Network, cached: bool) -> None:
        super().__init__()
        self.network, self.cached = network, cached

    def forward(self, inputs: Tensor) -> Tensor:
        if self.cached:
            assert isinstance(self.network, ScaleChannelNetwork)
            return self.network.from_stack(inputs[0])[None]
        return self.network(inputs[0])[None]
