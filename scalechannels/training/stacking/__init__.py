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


def stack(networks: Sequence[nn.Module], height: int, width: int) -> Any:
    """The networks as one, for images of this size; see `stacked`."""
    from scalechannels.training.stacking.stacked import stack_networks

    return stack_networks(networks, height, width)


def searched(network: nn.Module, height: int, width: int) -> nn.Module:
    """The network in the form that is fastest to test; see `searching`."""
    if not next(network.parameters()).is_cuda:
        return network
    from scalechannels.training.stacking.searching import searched

    return searched(network, height, width)
