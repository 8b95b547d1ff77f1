"""Pooling over scales: channel outputs (B, S, K) to one output (B, K).

Pooling acts on logits, before the softmax, but for the mean of probabilities. All but the concatenation are
symmetric in the channels, so that a stack shifted along the scale axis gives the same output: that is what
makes the network scale invariant.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn


class MaxOverScales(nn.Module):
    """FovMax: for each class the channel that believes in it most."""

    def forward(self, channels: Tensor) -> Tensor:
        return winner(channels, 1)  # (B, K)

    def arguments(self) -> dict[str, Any]:
        return {}


class MeanOverScales(nn.Module):
    """FovAvg: all channels have an equal say."""

    def forward(self, channels: Tensor) -> Tensor:
        return channels.mean(1)  # (B, K)

    def arguments(self) -> dict[str, Any]:
        return {}


class LogMeanExpOverScales(nn.Module):
    """log of the mean of exp: between the maximum and the mean, and smooth, so every channel learns.

    Law: mean <= log-mean-exp <= max, equal when all channels agree.
    """

    def forward(self, channels: Tensor) -> Tensor:
        return torch.logsumexp(channels, dim=1) - math.log(channels.shape[1])  # (B, K)

    def arguments(self) -> dict[str, Any]:
        return {}


class MeanProbabilityOverScales(nn.Module):
    """The log of the mean over channels of their class probabilities: each channel has one vote to share.

    It is log-mean-exp of log-probabilities. What a channel cannot say is that it sees nothing: one that is
    sure of the wrong class counts as much as the one that is right.
    """

    def forward(self, channels: Tensor) -> Tensor:
        return torch.logsumexp(channels.log_softmax(2), dim=1) - math.log(channels.shape[1])  # (B, K)

    def arguments(self) -> dict[str, Any]:
        return {}


class ConcatScales(nn.Module):
    """FovConc: a dense layer over all channels' outputs. Not symmetric, so nothing makes it invariant."""

    def __init__(self, scales: int, inputs: int, outputs: int | None = None) -> None:
        super().__init__()
        self.scales, self.inputs, self.outputs = scales, inputs, inputs if outputs is None else outputs
        self.mix = nn.Linear(scales * inputs, self.outputs)

    def forward(self, channels: Tensor) -> Tensor:
        if tuple(channels.shape[1:]) != (self.scales, self.inputs):
            raise ValueError(
                f"this concatenation was made for {self.scales} scales of {self.inputs} outputs, "
                f"got {channels.shape[1]} of {channels.shape[2]}"
            )
        return self.mix(channels.flatten(1))  # (B, K)

    def arguments(self) -> dict[str, Any]:
        return {"scales": self.scales, "inputs": self.inputs, "outputs": self.outputs}


def winner(values: Tensor, dim: int) -> Tensor:
    """The maximum along `dim`; its gradient goes to one place, the first of those that tie.

    Not amax where there is a gradient: that looks for the places which equal the maximum. A compiled graph
    computes them again, without the rounding that the maximum had in bfloat16, finds none, and divides by
    their number.
    """
    return values.max(dim).values if torch.is_grad_enabled() else values.amax(dim)
