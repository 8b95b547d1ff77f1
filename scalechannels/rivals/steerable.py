"""Scale-equivariant steerable networks (SESN): filters of a fixed basis that exists at several scales.

Sosnovik, Szmaja and Smeulders, "Scale-Equivariant Steerable Networks", ICLR 2020.

    image (B,C,H,W) ─lift─▶ (B,S,C₁,H,W) ─each scale its filters, the same weights─▶ … ─max over S─▶ 2x2 ─▶ K

A filter is Σ w_i ψ_i, with learnt w and ψ_i(x; s) = H_n(x/s)·H_m(y/s)·exp(−(x² + y²)/2s²)/s², H_n Hermite
polynomials. Law: in the continuum, an image t times as large at t times the scale gives the same maps, t
times as large. Limit: pixels, the maxima over 2x2 pixels, and the scales, which span a factor of 3: what
becomes larger leaves them, and the last layers see a grid of 2x2 places, not one centre.

The published sizes for MNIST-Scale: 32-63-95 features, 49 functions for each filter, 256 hidden units, 70 %
dropout: about 495,000 parameters. The paper's last pooling over 4x4 pixels (28x28 images) is here one to 2x2
places whatever the size of the image. Layers do not look at neighbouring scales, as published for MNIST.
"""

from __future__ import annotations

import math
from itertools import pairwise, product

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from scalechannels.backbones.constants import WithConstants
from scalechannels.backbones.paper import require_counts, require_features
from scalechannels.rivals.rival import Rival

HIGHEST_ORDER = 4
"""n + m at most; finer copies of these functions follow until there are enough."""
FUNCTIONS = 49
SCALES = (1.5, 2.598, 4.5)
"""Published for the network whose layers keep the scales, in pixels."""
SCALES_OF_SCALAR = (1.7, 2.452, 3.536, 5.1)


def hermite(order: int, x: Tensor) -> Tensor:
    """Hₙ of the weight exp(−x²/2): H₀ = 1, H₁ = x, Hₙ₊₁ = x·Hₙ − n·Hₙ₋₁."""
    before, now = torch.zeros_like(x), torch.ones_like(x)
    for n in range(order):
        before, now = now, x * now - n * before
    return now


def hermite_basis(size: int, scales: tuple[float, ...], finer: float, functions: int = FUNCTIONS) -> Tensor:
    """ψ_i at each scale: (functions, S, size, size), each function of norm 1 at the smallest scale.

    finer     by how much each set of functions is finer than the one before
    """
    x = torch.arange(size, dtype=torch.float64, device="cpu") - (size - 1) / 2  # never on "meta"
    orders = [nm for nm in product(range(HIGHEST_ORDER + 1), repeat=2) if sum(nm) <= HIGHEST_ORDER]
    sets = math.ceil(functions / len(orders))
    found = []
    for level, (n, m) in product(range(sets), sorted(orders, key=sum)):
        copies = []
        for scale in scales:
            s = scale / finer**level
            bell = torch.exp(-(x**2) / (2 * s**2))
            copies.append((hermite(n, x / s) * bell)[:, None] * (hermite(m, x / s) * bell) / s**2)
        found.append(torch.stack(copies) / copies[0].norm())
    return torch.stack(found[:functions])


class ScaleConvolution(WithConstants):
    """Convolution with one set of weights at every scale: (B, S, C, H, W) to (B, S, C', H, W).

    An image, (B, 1, C, H, W), is lifted: every scale sees the same.
    """

    basis: Tensor

    def __init__(self, before: int, after: int, scales: tuple[float, ...], size: int, finer: float) -> None:
        super().__init__()
        self.before, self.after, self.scales = before, after, len(scales)
        self.filtered = size, scales, finer
        self.keep_constants()
        self.weight = nn.Parameter(torch.empty(after, before, FUNCTIONS))
        self.bias = nn.Parameter(torch.zeros(after))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))

    def constants(self) -> dict[str, Tensor]:
        return {"basis": hermite_basis(*self.filtered).float()}

    def filters(self) -> Tensor:
        """(S, C', C, size, size)"""
        return torch.einsum("ocf,fsij->socij", self.weight, self.basis.to(self.weight))

    def forward(self, maps: Tensor) -> Tensor:
        B, S, _, H, W = maps.shape
        filters = self.filters().flatten(0, 1)  # (S·C', C, size, size)
        found = F.conv2d(
            maps.flatten(1, 2),
            filters,
            self.bias.repeat(self.scales),
            padding=filters.shape[-1] // 2,
            groups=S,
        )
        return found.view(B, self.scales, self.after, H, W)


class ScaleSteerableNetwork(Rival):
    """Images (B, C, H, W) to logits (B, K).

    scales     of the basis, in pixels
    size       of the filters, in pixels, odd
    finer      see `hermite_basis`
    scalar     take the maximum over scales after every layer, not only after the last
    """

    def __init__(
        self,
        *,
        scales: tuple[float, ...] = SCALES,
        features: tuple[int, ...] = (32, 63, 95),
        channels: int = 1,
        classes: int = 10,
        size: int = 13,
        finer: float = 1.5,
        scalar: bool = False,
        hidden: int = 256,
        dropout: float = 0.7,
    ) -> None:
        super().__init__()
        if size % 2 == 0:
            raise ValueError(f"size must be odd, so that a filter has a centre; got {size}")
        require_counts(channels=channels, classes=classes, hidden=hidden)
        require_features(features)
        self.scales, self.features, self.channels, self.classes = (
            tuple(scales),
            tuple(features),
            channels,
            classes,
        )
        self.size, self.finer, self.scalar, self.hidden = size, finer, scalar, hidden
        widths = (channels, *self.features)
        self.convolved = nn.ModuleList(
            ScaleConvolution(before, after, self.scales, size, finer) for before, after in pairwise(widths)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for width in self.features)
        self.dense = nn.Linear(4 * self.features[-1], hidden, bias=False)
        self.dense_norm = nn.BatchNorm1d(hidden)
        self.drop = nn.Dropout(dropout)
        self.classifier = nn.Linear(hidden, classes)
        self.heavy = len(self.scales) * max(self.features) / 32

    @property
    def dropout(self) -> float:
        return self.drop.p

    def logits(self, images: Tensor) -> Tensor:
        maps = images[:, None]  # (B, 1, C, H, W)
        last = len(self.convolved) - 1
        height, width = images.shape[2:]
        if min(height, width) < 2**last:  # each layer but the last halves the sides
            raise ValueError(
                f"images must have at least {2**last}x{2**last} pixels for these layers; got {height}x{width}"
            )
        for layer, (convolve, norm) in enumerate(zip(self.convolved, self.norms, strict=True)):
            maps = convolve(maps)  # (B, S, C', H, W)
            if self.scalar or layer == last:
                maps = maps.amax(1, keepdim=True)
            B, S = maps.shape[:2]
            flat = F.relu(maps.flatten(0, 1))  # (B·S, C', H, W)
            pooled = F.adaptive_max_pool2d(flat, 2) if layer == last else F.max_pool2d(flat, 2)
            maps = norm(pooled).unflatten(0, (B, S))
        codes = F.relu(self.dense_norm(self.dense(maps.flatten(1))))  # (B, hidden)
        return self.classifier(self.drop(codes))


def sesn(channels: int, classes: int) -> ScaleSteerableNetwork:
    """As published for 28x28 pixels, the scales kept to the last layer ("vector")."""
    return ScaleSteerableNetwork(channels=channels, classes=classes)


def sesn_scalar(channels: int, classes: int) -> ScaleSteerableNetwork:
    """As published for 28x28 pixels, the maximum over scales after every layer."""
    return ScaleSteerableNetwork(
        scales=SCALES_OF_SCALAR, size=15, scalar=True, channels=channels, classes=classes
    )
