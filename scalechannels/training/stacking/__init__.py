"""Many small networks trained as one on a GPU. A closed room: nothing else of it is used outside.

`can_stack` and `stack` are for training, `searched` is SWMax tested by the same kernels. The modules load on
first use: a run on a CPU has no need for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn


def can_stack(network: nn.Module) -> bool:
    """Whether a network has the form that can be trained as one with others."""
    from scalechannels.training.stacking.stacked import can_stack

    return can_stack(network)


def stack(networks: Sequence[Any], height: int, width: int) -> Any:
    """The networks as one, for images of this size; see `stacked`."""
    from scalechannels.training.stacking.stacked import StackedNetwork, StackedSliding

    if networks[0].look == "everywhere":
        return StackedSliding(networks, height, width)
    return StackedNetwork(networks)


def searched(network: Any, height: int, width: int) -> nn.Module:
    """The network in the form that is fastest to test: on a GPU, with one input channel and no batch norm."""
    on_gpu = next(network.parameters()).is_cuda
    if not (on_gpu and network.look == "everywhere" and can_stack(network)):
        return network
    from scalechannels.training.stacking.stacked import SearchedSliding

    return SearchedSliding(network, height, width).eval()
