"""Which places of a sliding-window network decide: pass one of its two passes over an image.

The maximum over space and scale hands the gradient of a class to one place alone. So the large pass, over
every place of the canvas, needs no gradient and keeps nothing; the small one, over the K windows that won,
gives the logits and their gradient. For the paper's SWMax that is 10 windows of 28 x 28 pixels instead of
170,000 pixels.

Law: value and gradient are those of the maximum over all places. Limit: no batch norm, whose statistics would
need every place; between places that tie to the last bit one is taken. In bfloat16 the two passes round
differently, so of two places that tie within rounding the other may be the one taken.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

WORD = 2**32


def kept(seed: Tensor, image: Tensor, place: Tensor, features: Tensor, dropout: float) -> Tensor:
    """Dropout as a function: what is kept of each feature at a place of an image, from a seed of the step.

    Both passes must drop the same, so the decision is a hash of where it is taken (the finaliser of
    MurmurHash3, which spreads every bit over all others) instead of the next number of a generator.
    """
    state = _mixed(seed + image * 0x9E3779B1) + place * 0x85EBCA77 + features * 0xC2B2AE3D
    return _mixed(state) >= int(dropout * WORD)


def _mixed(state: Tensor) -> Tensor:
    """A hash of 32 bits in int64; what overflows does not reach the lower 32."""
    state = state % WORD
    state = (state ^ (state >> 16)) * 0x85EBCA6B % WORD
    state = (state ^ (state >> 13)) * 0xC2B2AE35 % WORD
    return state ^ (state >> 16)


def plain_strongest_places(
    canvases: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    strides: list[int],
    places: Tensor,
    seed: Tensor,
    dropout: float,
    per_place: bool,
) -> tuple[Tensor, Tensor]:
    """Where each class has its maximum (R, B, K), and which codes dropout keeps there (R, B, K, hidden).

    canvases   (R, B, height, width, C)
    weights    of the convolutions (R, 9·C, F), rows in the order of row, column, feature of the patch; then
               of the dense layer (R, side·side·F, hidden) and of the classifier (R, hidden, K)
    biases     of each of them, (R, 1, F)
    places     (P,): which places of the logit map count, as i·w + j; those found are given in the same way
    per_place  drop a feature at each place by itself, else at all places of an image at once

    It has no gradient. In plain torch, run by run: slow, for any device, and the oracle of the kernels.
    """
    R, B = canvases.shape[:2]
    image = torch.arange(R * B, device=canvases.device).view(R, B, 1, 1)
    feature = torch.arange(weights[-1].shape[1], device=canvases.device)
    mask = kept(seed, image, places[:, None] * per_place, feature, dropout)  # (R, B, P, hidden)
    strongest = []
    for run in range(R):
        maps = canvases[run].movedim(-1, 1)  # (B, C, height, width)
        for weight, bias, stride in zip(weights, biases, strides, strict=False):
            maps = F.relu(F.conv2d(maps, kernel(weight[run], 3), bias[run, 0], stride))
        side = int((weights[-2].shape[1] // maps.shape[1]) ** 0.5)
        codes = F.relu(F.conv2d(maps, kernel(weights[-2][run], side), biases[-2][run, 0]))
        codes = codes.flatten(2).mT[:, places]  # (B, P, hidden)
        codes = codes * mask[run] / (1 - dropout)
        strongest.append((codes @ weights[-1][run] + biases[-1][run]).argmax(1))  # (B, K)
    found = places[torch.stack(strongest)]  # (R, B, K)
    return found, kept(seed, image, found[..., None] * per_place, feature, dropout)


def kernel(weight: Tensor, side: int) -> Tensor:
    """A stack's weight (side·side·C, F) as one of a convolution (F, C, side, side)."""
    return weight.view(side, side, -1, weight.shape[-1]).permute(3, 2, 0, 1)


strongest_places = torch.library.custom_op(
    "scalechannels::strongest_places", plain_strongest_places, mutates_args=()
)
"""`plain_strongest_places`, on a GPU by its kernels."""


@strongest_places.register_kernel("cuda")
def _(canvases: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    if canvases.shape[-1] > 1:
        return plain_strongest_places(canvases, *others)
    # Triton comes with PyTorch's CUDA builds and with no other.
    from scalechannels.training.stacking import strongest_kernels

    return strongest_kernels.strongest_places(canvases, *others)


@strongest_places.register_fake
def _(canvases: Tensor, weights: list[Tensor], *_: Any) -> tuple[Tensor, Tensor]:
    hidden, K = weights[-1].shape[1:]
    found = canvases.new_empty((*canvases.shape[:2], K), dtype=torch.long)
    return found, canvases.new_empty((*found.shape, hidden), dtype=torch.bool)
