"""Pooling over scales: channel outputs (B, S, K) to one output (B, K), and which channel decided.

Pooling acts on logits, before the softmax, except for the mean of probabilities. All but the concatenation
are symmetric in the channels, so that a stack shifted along the scale axis gives the same output: that is
what makes the network scale invariant.

`contributions` says how much each channel contributed to the winning class k, as shares that sum to 1:

| pooling | contribution of channel s |
| --- | --- |
| maximum | 1 for the channel with the largest value, 0 for the others |
| mean | the share of the absolute value of its logit |
| concatenation | the share of the absolute value of Σ_j W[k, s, j]·(logit j of channel s) |
| log-mean-exp | the share of exp(logit): how much the output moves with that channel (not in the paper) |
| mean of probabilities | the share of its probability (not in the paper) |
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from scalechannels.backbones.paper import require_counts


class Pooling(nn.Module):
    """What the poolings of this library share: `forward` and `contributions`.

    A user's own may be any module; one without `contributions` does not say which channel decided.
    """

    of_fixed_scales = False
    """Whether it is made for these scales alone, as with weights for each: it cannot pool other channels."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__init__" in vars(cls) and cls.arguments is Pooling.arguments:
            raise TypeError(f"{cls.__name__} has a constructor: it needs `arguments`, which are saved")

    if TYPE_CHECKING:  # torch says that a module gives anything

        def __call__(self, channels: Tensor) -> Tensor: ...

    @classmethod
    def over(cls, scales: int, classes: int) -> Pooling:
        """The pooling of so many channels with so many outputs each."""
        return cls()

    def contributions(self, channels: Tensor, winner: Tensor) -> Tensor:
        """The share of each channel (B, S) in the winning class (B,), of channel outputs (B, S, K)."""
        raise TypeError(f"{type(self).__name__} does not define what a channel contributes")

    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments, for the config that rebuilds it."""
        return {}


class MaxOverScales(Pooling):
    """FovMax: for each class the channel that believes in it most.

    Example:
        >>> import torch
        >>> from scalechannels import MaxOverScales
        >>> channels = torch.tensor([[[0.0, 4.0], [2.0, 1.0]]])             # (B, S, K)
        >>> MaxOverScales()(channels)                           # (B, K)
        tensor([[2., 4.]])
    """

    def forward(self, channels: Tensor) -> Tensor:
        return maximum(channels, 1)  # (B, K)

    def contributions(self, channels: Tensor, winner: Tensor) -> Tensor:
        values = _of_winner(channels, winner)
        return F.one_hot(values.argmax(1), values.shape[1]).to(values.dtype)


class MeanOverScales(Pooling):
    """FovAvg: all channels have an equal say.

    Example:
        >>> import torch
        >>> from scalechannels import MeanOverScales
        >>> channels = torch.tensor([[[0.0, 4.0], [2.0, 1.0]]])             # (B, S, K)
        >>> MeanOverScales()(channels)                          # (B, K)
        tensor([[1.0000, 2.5000]])
    """

    def forward(self, channels: Tensor) -> Tensor:
        return channels.mean(1)  # (B, K)

    def contributions(self, channels: Tensor, winner: Tensor) -> Tensor:
        return _shares(_of_winner(channels, winner).abs())


class LogMeanExpOverScales(Pooling):
    """log of the mean of exp: between the maximum and the mean, and smooth, so every channel learns.

    Law: mean <= log-mean-exp <= max, equal when all channels agree.

    Example:
        >>> import torch
        >>> from scalechannels import LogMeanExpOverScales
        >>> channels = torch.tensor([[[0.0, 4.0], [2.0, 1.0]]])             # (B, S, K)
        >>> LogMeanExpOverScales()(channels)                    # (B, K)
        tensor([[1.4338, 3.3554]])
    """

    def forward(self, channels: Tensor) -> Tensor:
        return log_mean_exp(channels, 1)  # (B, K)

    def contributions(self, channels: Tensor, winner: Tensor) -> Tensor:
        return _of_winner(channels, winner).softmax(1)


class MeanProbabilityOverScales(Pooling):
    """The log of the mean over channels of their class probabilities: each channel has one vote to share.

    It is log-mean-exp of log-probabilities. What a channel cannot say is that it sees nothing: one that is
    sure of the wrong class counts as much as the one that is right.

    Example:
        >>> import torch
        >>> from scalechannels import MeanProbabilityOverScales
        >>> channels = torch.tensor([[[0.0, 4.0], [2.0, 1.0]]])             # (B, S, K)
        >>> MeanProbabilityOverScales()(channels).exp()         # (B, K), probabilities
        tensor([[0.3745, 0.6255]])
    """

    def forward(self, channels: Tensor) -> Tensor:
        return log_mean_exp(channels.log_softmax(2), 1)  # (B, K)

    def contributions(self, channels: Tensor, winner: Tensor) -> Tensor:
        return _shares(_of_winner(channels.softmax(2), winner))


class ConcatScales(Pooling):
    """FovConc: a dense layer over all channels' outputs. Not symmetric, so nothing makes it invariant.

    Example:
        >>> import torch
        >>> from scalechannels import ConcatScales
        >>> pool = ConcatScales(scales=17, inputs=10)
        >>> pool(torch.rand(2, 17, 10)).shape                   # (B, S, K) to (B, K)
        torch.Size([2, 10])
        >>> pool.mix.weight.shape
        torch.Size([10, 170])
    """

    of_fixed_scales = True

    def __init__(self, scales: int, inputs: int, outputs: int | None = None) -> None:
        super().__init__()
        self.scales, self.inputs, self.outputs = scales, inputs, inputs if outputs is None else outputs
        require_counts(scales=scales, inputs=inputs, outputs=self.outputs)
        self.mix = nn.Linear(scales * inputs, self.outputs)

    @classmethod
    def over(cls, scales: int, classes: int) -> ConcatScales:
        return cls(scales, classes)

    def forward(self, channels: Tensor) -> Tensor:
        if tuple(channels.shape[1:]) != (self.scales, self.inputs):
            raise ValueError(
                f"this concatenation was made for {self.scales} scales of {self.inputs} outputs; "
                f"got {channels.shape[1]} of {channels.shape[2]}"
            )
        return self.mix(channels.flatten(1))  # (B, K)

    def contributions(self, channels: Tensor, winner: Tensor) -> Tensor:
        weights = self.mix.weight.view(self.outputs, self.scales, self.inputs)[winner]  # (B, S, K)
        return _shares((weights * channels).sum(2).abs())

    def arguments(self) -> dict[str, Any]:
        return {"scales": self.scales, "inputs": self.inputs, "outputs": self.outputs}


POOLS: dict[str, type[Pooling]] = {
    "fovavg": MeanOverScales,
    "fovmax": MaxOverScales,
    "fovlse": LogMeanExpOverScales,
    "fovprob": MeanProbabilityOverScales,
    "fovconc": ConcatScales,
}
"""The poolings by the names of the foveated networks that have them: the only list of poolings."""


def maximum(values: Tensor, dim: int) -> Tensor:
    """The maximum along `dim`; its gradient goes to one place, the first of those that tie.

    Not amax where there is a gradient: that looks for the places which equal the maximum. A compiled graph
    computes them again, without the rounding that the maximum had in bfloat16, finds none, and divides by
    their number.
    """
    return values.max(dim).values if torch.is_grad_enabled() else values.amax(dim)


def log_mean_exp(values: Tensor, dim: int) -> Tensor:
    return torch.logsumexp(values, dim) - math.log(values.shape[dim])


def _of_winner(channels: Tensor, winner: Tensor) -> Tensor:
    return channels.gather(2, winner[:, None, None].expand(-1, channels.shape[1], 1))[..., 0]  # (B, S)


def _shares(amounts: Tensor) -> Tensor:
    total = amounts.sum(1, keepdim=True)
    return torch.where(total > 0, amounts / total, 1 / amounts.shape[1])  # (B, S)
