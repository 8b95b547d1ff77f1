"""Which scale channel decided? Every channel's contribution to the winning class, as the paper defines it.

| network | contribution of channel s to the winning class k |
| --- | --- |
| FovMax, SWMax | 1 for the channel with the largest value, 0 for the others |
| FovAvg | the share of the absolute value of its logit |
| FovConc | the share of the absolute value of Σ_j W[k, s, j]·(logit j of channel s) |
| log-mean-exp | the share of exp(logit): how much the output moves with that channel (not in the paper) |
| mean of probabilities | the share of the probability (not in the paper) |
"""

from __future__ import annotations

from functools import singledispatch

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from scalechannels.network import ScaleChannelNetwork
from scalechannels.pooling import (
    ConcatScales,
    LogMeanExpOverScales,
    MaxOverScales,
    MeanOverScales,
    MeanProbabilityOverScales,
)
from scalechannels.sliding import SlidingWindowNetwork


@torch.no_grad()
def scale_contributions(network: ScaleChannelNetwork | SlidingWindowNetwork, images: Tensor) -> Tensor:
    """The contribution of every channel to each image's winning class: (B, S), rows sum to 1."""
    if not hasattr(network, "channel_logits"):
        raise TypeError(
            f"a {type(network).__name__} has no scale channels, so none of them decides; a "
            "ScaleChannelNetwork, such as fovlse(grid), and a SlidingWindowNetwork have"
        )
    if isinstance(network, SlidingWindowNetwork):
        return channel_contributions(MaxOverScales(), network.channel_logits(images))
    if network.head is not None:
        raise ValueError("contributions are defined where logits are pooled; this network pools features")
    return channel_contributions(network.pool, network.channel_logits(images))


@torch.no_grad()
def channel_contributions(pool: nn.Module, channels: Tensor) -> Tensor:
    """The same from channel logits (B, S, K) and the pooling that combines them."""
    winner = pool(channels).argmax(1)  # (B,)
    return _contributions(pool, channels, winner)


def selected_scale(network: ScaleChannelNetwork | SlidingWindowNetwork, images: Tensor) -> Tensor:
    """The scale σ of the channel that contributes most: (B,)."""
    strongest = scale_contributions(network, images).argmax(1)
    return network.grid.scales.to(strongest.device)[strongest]


@singledispatch
def _contributions(pool: nn.Module, channels: Tensor, winner: Tensor) -> Tensor:
    raise TypeError(f"no definition of a channel's contribution is known for {type(pool).__name__}")


@_contributions.register
def _(pool: MaxOverScales, channels: Tensor, winner: Tensor) -> Tensor:
    values = _of_winner(channels, winner)
    return F.one_hot(values.argmax(1), values.shape[1]).to(values.dtype)


@_contributions.register
def _(pool: MeanOverScales, channels: Tensor, winner: Tensor) -> Tensor:
    return _shares(_of_winner(channels, winner).abs())


@_contributions.register
def _(pool: LogMeanExpOverScales, channels: Tensor, winner: Tensor) -> Tensor:
    return _of_winner(channels, winner).softmax(1)


@_contributions.register
def _(pool: MeanProbabilityOverScales, channels: Tensor, winner: Tensor) -> Tensor:
    return _shares(_of_winner(channels.softmax(2), winner))


@_contributions.register
def _(pool: ConcatScales, channels: Tensor, winner: Tensor) -> Tensor:
    weights = pool.mix.weight.view(pool.outputs, pool.scales, pool.inputs)[winner]  # (B, S, K)
    return _shares((weights * channels).sum(2).abs())


def _of_winner(channels: Tensor, winner: Tensor) -> Tensor:
    return channels.gather(2, winner[:, None, None].expand(-1, channels.shape[1], 1))[..., 0]  # (B, S)


def _shares(amounts: Tensor) -> Tensor:
    total = amounts.sum(1, keepdim=True)
    return torch.where(total > 0, amounts / total, 1 / amounts.shape[1])  # (B, S)
