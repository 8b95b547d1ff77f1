"""Batch norm over maps of several sizes, as if they were one batch: the mean and variance of them all.

Law: what torch's batch norm gives on all places of all maps laid side by side, forward and backward, running
statistics included. Nothing is copied to lie side by side, so it takes less time and memory than batch norm
of each map by itself does on a CPU.

Limit: every place counts alike, so that a map of four times the places counts four times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from scalechannels.backbones.inference import untouched


def jointly_normed(maps: Sequence[Tensor], norm: nn.BatchNorm2d) -> list[Tensor]:
    """Maps (B, F, h, w), each of its own h and w, through one batch norm."""
    mean, variance, momentum = norm.running_mean, norm.running_var, norm.momentum
    changed = type(norm) is not nn.BatchNorm2d or not untouched(norm)
    if changed or not (norm.training and norm.affine) or mean is None or variance is None or momentum is None:
        return _side_by_side(maps, norm)
    *normed, now, spread = _Joint.apply(norm.weight, norm.bias, norm.eps, *maps)
    count = sum(one.numel() for one in maps) // norm.num_features
    with torch.no_grad():
        mean.lerp_(now, momentum)
        variance.lerp_(spread * (count / max(1, count - 1)), momentum)
        if norm.num_batches_tracked is not None:
            norm.num_batches_tracked.add_(1)
    return normed


def _side_by_side(maps: Sequence[Tensor], norm: nn.Module) -> list[Tensor]:
    """The same by any norm, such as one over several processes, which sees a single map."""
    rows = [one.transpose(0, 1).flatten(1) for one in maps]  # (F, all of its places)
    together = norm(torch.cat(rows, 1)[None, :, :, None])[0, :, :, 0]
    parts = together.split([one.shape[1] for one in rows], 1)
    return [
        part.unflatten(1, (len(one), *one.shape[2:])).transpose(0, 1)
        for part, one in zip(parts, maps, strict=True)
    ]


class _Joint(torch.autograd.Function):
    """Normalised maps, then their mean and variance (F,), through which no gradient goes."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor, eps: float, *maps: Tensor) -> tuple[Tensor, ...]:
        count = sum(one.numel() for one in maps) // len(weight)
        mean = _total([_sum(one) for one in maps]) / count  # (F,), float32 at least
        variance = _total([_sum((one - _of_features(mean)).square()) for one in maps]) / count
        spread = torch.rsqrt(variance + eps)
        ctx.save_for_backward(weight, mean, spread, *maps)
        ctx.mark_non_differentiable(mean, variance)
        factor = weight * spread
        normed = [_affine(one, factor, bias - mean * factor) for one in maps]
        return *normed, mean, variance

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        weight, mean, spread, *maps = ctx.saved_tensors
        count = sum(one.numel() for one in maps) // len(weight)
        of_bias = _total([_sum(gradient) for gradient in gradients[: len(maps)]])
        products = [_sum(gradient * one) for gradient, one in zip(gradients, maps, strict=False)]
        of_weight = (_total(products) - mean * of_bias) * spread
        # Each value moves the mean and the variance of all: a plane is taken off the gradient.
        factor = weight * spread
        slope = -factor * of_weight * spread / count
        offset = -factor * of_bias / count - slope * mean
        of_maps = [
            _affine(gradient, factor, offset).add_(one * _of_features(slope).to(one.dtype))
            for gradient, one in zip(gradients, maps, strict=False)
        ]
        return of_weight.to(weight.dtype), of_bias.to(weight.dtype), None, *of_maps


def _sum(maps: Tensor) -> Tensor:
    """Over all places (F,), in float32 at least: half precision cannot add up so many."""
    return maps.sum((0, 2, 3), dtype=torch.promote_types(maps.dtype, torch.float32))


def _total(parts: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(parts)).sum(0)


def _affine(maps: Tensor, factor: Tensor, offset: Tensor) -> Tensor:
    """maps · factor + offset, each (F,), in the type of the maps."""
    return torch.addcmul(_of_features(offset), maps, _of_features(factor)).to(maps.dtype)


def _of_features(values: Tensor) -> Tensor:
    return values[:, None, None]  # (F, 1, 1)
