"""Which scale channel decided? The paper's scale selection; `pooling` defines what a channel contributes."""

from __future__ import annotations

import torch
from torch import Tensor

from scalechannels.network import ScaleChannelNetwork


@torch.no_grad()
def scale_contributions(network: ScaleChannelNetwork, images: Tensor) -> Tensor:
    """The contribution of every channel to each image's winning class: (B, S), rows sum to 1.

    In eval mode, whatever mode the network is in.
    """
    if not hasattr(network, "grid"):
        raise TypeError(
            f"a {type(network).__name__} has no scale channels; "
            "use a ScaleChannelNetwork such as fovlse(grid)"
        )
    if network.head is not None:
        raise ValueError("contributions are defined where logits are pooled; this network pools features")
    contributions = network.explain(images).contributions
    if contributions is None:
        raise TypeError(
            f"no definition of a channel's contribution is known for {type(network.pool).__name__}: make it "
            "have a method contributions, as those of scalechannels.pooling do"
        )
    return contributions


def selected_scale(network: ScaleChannelNetwork, images: Tensor) -> Tensor:
    """The scale σ of the channel that contributes most: (B,)."""
    strongest = scale_contributions(network, images).argmax(1)
    return network.grid.scales.to(strongest.device)[strongest]
