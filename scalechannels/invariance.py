"""The meter: how far does a network's output move when the image is rescaled?

The law to be measured is Λ(S_t f) = Λ(f). A discrete network keeps it up to interpolation and to what moves
over the ends of its grid; this says how well, for any network and any images.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from scalechannels.backbones.inference import evaluating
from scalechannels.sampling import require_images, resample
from scalechannels.scales import ScaleGrid


@dataclass(frozen=True)
class InvarianceError:
    """How far the output moved at one factor."""

    factor: float
    error: float
    """Mean over images of ‖Λ(S_t f) − Λ(f)‖ / ‖Λ(f)‖."""
    agreement: float
    """The fraction of images whose winning class stayed the same."""


def rescale_images(images: Tensor, factor: float) -> Tensor:
    """S_t f about the centre in a frame of the same size: bilinear, anti-aliased where it shrinks."""
    if not factor > 0:
        raise ValueError(f"factor must be positive; got {factor}")
    require_images(images)
    grid, size = ScaleGrid.of(1 / factor), (images.shape[2], images.shape[3])
    return resample(images, grid, size, antialias=factor < 1)[:, 0]


@torch.no_grad()
def scale_invariance_error(
    network: Callable[[Tensor], Tensor],
    images: Tensor,
    factors: Sequence[float],
    *,
    rescale: Callable[[float], Tensor] | None = None,
) -> list[InvarianceError]:
    """One InvarianceError for each factor.

    A module is asked in eval mode, whatever mode it is in, and left as it was.

    `rescale(factor)` gives the rescaled images where they can be had better than by resampling, such as an
    analytic signal or digits that are rendered anew; by default `rescale_images`.

    Example:
        >>> import torch, scalechannels
        >>> network = scalechannels.load("fovlse-mnist")
        >>> images = torch.full((1, 1, 112, 112), -0.76)        # black, (B, C, H, W)
        >>> images[:, :, 36:76, 54:58] = 0.76                   # a bar of 40 pixels: a one
        >>> (half,) = scalechannels.scale_invariance_error(network, images, factors=[0.5])
        >>> half.factor, half.agreement                         # the winning class stayed the same
        (0.5, 1.0)
        >>> half.error < 0.2                                    # how far the logits moved, over their length
        True
    """
    require_images(images)
    errors = []
    with evaluating(network) if isinstance(network, nn.Module) else nullcontext():
        original = network(images)  # (B, K)
        size = original.flatten(1).norm(dim=1).clamp_min(torch.finfo(original.dtype).tiny)
        for factor in factors:
            moved = network(rescale_images(images, factor) if rescale is None else rescale(factor))
            distance = (moved - original).flatten(1).norm(dim=1) / size  # (B,)
            same = (moved.argmax(1) == original.argmax(1)).float()
            errors.append(InvarianceError(float(factor), distance.mean().item(), same.mean().item()))
    return errors
