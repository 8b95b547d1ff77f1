"""One network in the form of a stack of one."""

from __future__ import annotations

from torch import Tensor, nn

from scalechannels.network import ScaleChannelNetwork
from scalechannels.sampling import Foveate
from scalechannels.saving.saved_network import Network
from scalechannels.training.augment.detail import Coarsen


class Alone(nn.Module):
    """Inputs (1, B, …) to logits (1, B, K).

    cached     the inputs are windows that were foveated before
    foveate    else: what looks at the images in training, where it is not the network's own
    coarsen    what takes detail from the windows that it makes, in training; see `coarsening`
    """

    def __init__(
        self,
        network: Network,
        cached: bool,
        foveate: Foveate | None = None,
        coarsen: Coarsen | None = None,
    ) -> None:
        super().__init__()
        self.network, self.cached, self.foveate = network, cached, foveate
        self.coarsen = coarsen

    def forward(self, inputs: Tensor) -> Tensor:
        if self.cached:
            assert isinstance(self.network, ScaleChannelNetwork)
            return self.network.from_stack(inputs[0])[None]
        if self.foveate is not None:
            assert isinstance(self.network, ScaleChannelNetwork)
            windows = self.foveate(inputs[0])
            if self.coarsen is not None and self.training:
                windows = self.coarsen(windows[None])[0]
            return self.network.from_stack(windows)[None]
        return self.network(inputs[0])[None]
