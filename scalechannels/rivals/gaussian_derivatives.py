"""Gaussian derivative networks: the filters are rescaled, not the image.

Lindeberg, "Scale-covariant and scale-invariant Gaussian derivative networks", JMIV 2022. Perzanowski and
Lindeberg, 2025 (arXiv 2409.11140): the mean over scales, the maximum over space, scale-channel dropout.
Perzanowski and Lindeberg, 2026 (arXiv 2603.02843): residual layers.

    image ─▶ for each σ: six layers, each a learnt combination of derivatives at σ·rᵏ ─▶ (B,S,K) ─▶ (B,K)

Law: in the continuum, S_t(image) at scale t·σ gives what the image gives at σ, at places t times as far from
the centre. So a pool over scales gives the same for both, as long as the scales that matter stay inside the
grid. Limit: pixels. The discrete Gaussian and central differences keep the law within a few per cent from
σ = 1 on; below that, and where the image ends, it fails.

The published sizes for MNIST Large Scale are 8-16-24-32-64-K features and r = 1.25. Which scales its channels
have differs between experiments: here they are those of the run's grid, so that channel s begins with a
standard deviation of s pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from scalechannels.backbones.paper import require_counts, require_features
from scalechannels.pooling import LogMeanExpOverScales, MaxOverScales, MeanOverScales, Pooling
from scalechannels.rivals.rival import Reading, Rival, in_full_precision, kept_for_all, read
from scalechannels.scale_space import discrete_gaussian_kernel
from scalechannels.scales import ScaleGrid

OverScales = Literal["mean", "max", "logmeanexp"]
POOLED: dict[OverScales, type[Pooling]] = {
    "mean": MeanOverScales,
    "max": MaxOverScales,
    "logmeanexp": LogMeanExpOverScales,
}
DIFFERENCES = ((1.0,), (-0.5, 0.0, 0.5), (1.0, -2.0, 1.0), (-0.5, 1.0, 0.0, -1.0, 0.5))
"""Central differences of order 0 to 3, from the lower to the higher pixel."""


def derivative_kernel(sigma: float, order: int) -> Tensor:
    """σᵒ times the discrete Gaussian of variance σ², differentiated: odd length, to be correlated with.

    Law: what it makes of the monomial xᵒ is o!·σᵒ everywhere, and of lower ones 0 (o > 0).
    """
    smoothing = discrete_gaussian_kernel(sigma**2, radius=max(1, round(4 * sigma) + 1))
    difference = torch.tensor(DIFFERENCES[order], dtype=torch.float64)
    kernel = torch.nn.functional.conv1d(
        smoothing[None, None], difference.flip(0)[None, None], padding=len(difference) - 1
    )[0, 0]
    return sigma**order * kernel


def filter_matrix(sigma: float, order: int, side: int) -> Tensor:
    """The kernel as a matrix (side, side) over mirrored pixels: row i has the weights of output pixel i."""
    kernel = derivative_kernel(sigma, order)
    offsets = torch.arange(len(kernel)) - len(kernel) // 2
    sources = torch.arange(side)[:, None] + offsets  # (side, taps)
    period = max(1, 2 * side - 2)
    folded = sources.remainder(period)
    mirrored = torch.where(folded < side, folded, period - folded)
    matrix = torch.zeros(side, side, dtype=torch.float64)
    return matrix.scatter_add_(1, mirrored, kernel.expand(side, -1).contiguous())


class Derivatives(nn.Module):
    """All derivatives up to an order at one σ for each channel: (S, N, H, W) to (S, N, D, W, H), transposed.

    As products with matrices, which on CPUs and GPUs are several times faster than so long and thin
    convolutions, and exact at the border however wide the filter.

    centre     give their values at the centre alone, where it is all that is wanted: (S, N, D, 1, 1)
    """

    def __init__(
        self, sigmas: Sequence[float], order: int, smoothed: bool = False, centre: bool = False
    ) -> None:
        super().__init__()
        self.sigmas, self.order, self.centre = tuple(sigmas), order, centre
        least = 0 if smoothed else 1
        self.pairs = [
            (rows, columns)
            for columns in range(order + 1)
            for rows in range(order + 1 - columns)
            if rows + columns >= least
        ]
        """Orders along rows and along columns."""
        self.made: dict[tuple[int, torch.device, torch.dtype], Tensor] = {}

    def forward(self, maps: Tensor) -> Tensor:
        S, N, H, W = maps.shape
        kind = maps.dtype
        with in_full_precision(maps):
            maps = maps if maps.dtype == torch.float64 else maps.float()
            down, across = self.matrices(H, maps), self.matrices(W, maps)  # (S, orders, out, side)
            rows = maps.reshape(S, N * H, W)
            # Transposed in between: then both are products of few large matrices, and nothing is copied for
            # each of the N maps.
            half = [
                (rows @ across[:, columns].mT).view(S, N, H, -1).mT.flatten(1, 2)  # (S, N·W, H)
                for columns in range(self.order + 1)
            ]
            found = [(half[columns] @ down[:, row].mT).unflatten(1, (N, -1)) for row, columns in self.pairs]
            return torch.stack(found, 2).to(kind)  # (S, N, D, W, H)

    def matrices(self, side: int, like: Tensor) -> Tensor:
        """(S, orders, side, side), or one row for the centre; kept for the next image of this size."""
        key = (side, like.device, like.dtype)
        if key not in self.made:
            with kept_for_all(self.made):
                every = [
                    torch.stack([self.matrix(sigma, order, side) for order in range(self.order + 1)])
                    for sigma in self.sigmas
                ]
                self.made[key] = torch.stack(every).to(like)
        return self.made[key]

    def matrix(self, sigma: float, order: int, side: int) -> Tensor:
        whole = filter_matrix(sigma, order, side)
        return whole[(side - 1) // 2 : side // 2 + 1].mean(0, keepdim=True) if self.centre else whole

    def zeros(self, height: int, width: int) -> int:
        """How many products with one map are with 0, which a convolution would not have."""
        wasted, seen = 0, 1 if self.centre else width
        for sigma in self.sigmas:
            for columns in range(self.order + 1):
                wasted += height * int((self.matrix(sigma, columns, width) == 0).sum())
            for row, _ in self.pairs:
                wasted += seen * int((self.matrix(sigma, row, height) == 0).sum())
        return wasted


class GaussianDerivativeNetwork(Rival):
    """Images (B, C, H, W) of any size to logits (B, K).

    scales     σ of the first layer, in pixels, of each scale channel
    features   of the layers but the last one, which has K
    growth     r: each layer's σ is so many times that of the layer before
    order      of the highest derivatives, 1 to 3
    smoothed   with the smoothed map itself among the derivatives, the term of order 0
    residual   each layer but the first and the last adds to what it was given; the paper's depth and widths
               were not available to us, so this is the form and not a reproduction
    pool       over scales; "mean" won in the paper of 2025, "max" is that of 2022
    reading    where the last layer's map is read: at the centre (2022), or its maximum (2025)
    drop       the share of scale channels that are left out of the pool in training; how many the paper
               drops we do not know for certain
    """

    def __init__(
        self,
        *,
        scales: tuple[float, ...] = (0.5, 0.7071, 1.0, 1.4142, 2.0, 2.8284, 4.0, 5.6569, 8.0),
        features: tuple[int, ...] = (8, 16, 24, 32, 64),
        channels: int = 1,
        classes: int = 10,
        growth: float = 1.25,
        order: int = 2,
        smoothed: bool = False,
        residual: bool = False,
        pool: OverScales = "mean",
        reading: Reading = "centre",
        drop: float = 0.0,
    ) -> None:
        super().__init__()
        if order not in (1, 2, 3):
            raise ValueError(f"order must be 1, 2 or 3; got {order}")
        if pool not in POOLED:
            raise ValueError(f"pool must be one of {', '.join(POOLED)}; got {pool!r}")
        require_counts(channels=channels, classes=classes)
        require_features((*features, classes))  # the last layer has K
        self.scales, self.features = tuple(scales), tuple(features)
        self.channels, self.classes = channels, classes
        self.growth, self.order, self.smoothed, self.residual = growth, order, smoothed, residual
        self.pool, self.reading, self.drop = pool, reading, drop
        self.pooling = POOLED[pool]()
        widths = (channels, *self.features, classes)
        self.derivatives = nn.ModuleList(
            Derivatives(
                [scale * growth**layer for scale in self.scales],
                order,
                smoothed,
                centre=reading == "centre" and layer == len(features),
            )
            for layer in range(len(widths) - 1)
        )
        terms = len(self.derivatives[0].pairs)  # type: ignore[arg-type]
        self.combined = nn.ModuleList(
            nn.Conv2d(terms * before, after, 1, bias=after == classes and layer == len(features))
            for layer, (before, after) in enumerate(pairwise(widths))
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for width in self.features)
        self.skips = nn.ModuleList(
            nn.Identity() if before == after else nn.Conv2d(before, after, 1, bias=False)
            for before, after in pairwise(self.features if residual else ())
        )
        self.heavy = len(self.scales) * terms * max(widths) / 32

    def logits(self, images: Tensor) -> Tensor:
        channels = self.channel_logits(images)  # (B, S, K)
        if not (self.training and self.drop):
            return self.pooling(channels)
        kept = torch.rand(channels.shape[:2], device=channels.device) >= self.drop  # (B, S)
        kept = kept | ~kept.any(1, keepdim=True)  # none left: all
        if self.pool == "mean":
            return (channels * kept[..., None]).sum(1) / kept.sum(1, keepdim=True)
        left_out = channels.masked_fill(~kept[..., None], float("-inf"))
        if self.pool == "max":
            return left_out.amax(1)
        return left_out.logsumexp(1) - kept.sum(1, keepdim=True).log()

    def channel_logits(self, images: Tensor) -> Tensor:
        """What each scale channel says: (B, S, K)."""
        return read(self.maps(images), self.reading).movedim(0, 1)

    def maps(self, images: Tensor) -> Tensor:
        """The last layer's maps: (S, B, K, H, W), or one pixel where they are read at the centre."""
        S, B = len(self.scales), len(images)
        maps = images.expand(S, *images.shape).flatten(0, 1)  # (S·B, C, H, W)
        last = len(self.features)
        for layer, (derive, combine) in enumerate(zip(self.derivatives, self.combined, strict=True)):
            C, H, W = maps.shape[1:]
            found = derive(maps.reshape(S, B * C, H, W))  # (S, B·C, D, W, H)
            mixed = combine(found.view(S * B, -1, *found.shape[3:])).mT  # (S·B, C', H, W)
            if layer < last:
                mixed = self.norms[layer](mixed)
                if self.residual and layer:
                    mixed = mixed + self.skips[layer - 1](maps)
                mixed = torch.relu(mixed)
            maps = mixed
        return maps.unflatten(0, (S, B))

    def correction(self, height: int, width: int) -> int:
        inputs = (self.channels, *self.features)
        layers = zip(inputs, self.derivatives, strict=True)
        return -sum(maps * derive.zeros(height, width) for maps, derive in layers)  # type: ignore[operator]


def gaussder(channels: int, classes: int, grid: ScaleGrid) -> GaussianDerivativeNetwork:
    """The mean over scales at the centre of the image, with scale-channel dropout as in 2025."""
    return GaussianDerivativeNetwork(scales=tuple(grid), channels=channels, classes=classes, drop=0.3)


def gaussder_max(channels: int, classes: int, grid: ScaleGrid) -> GaussianDerivativeNetwork:
    """The maximum over scales at the centre of the image, as in 2022."""
    return GaussianDerivativeNetwork(scales=tuple(grid), channels=channels, classes=classes, pool="max")


def gaussder_lse(channels: int, classes: int, grid: ScaleGrid) -> GaussianDerivativeNetwork:
    """With our log-mean-exp over scales."""
    return GaussianDerivativeNetwork(
        scales=tuple(grid), channels=channels, classes=classes, pool="logmeanexp", drop=0.3
    )


def gaussder_third_order(channels: int, classes: int, grid: ScaleGrid) -> GaussianDerivativeNetwork:
    """With derivatives of the third order, too."""
    return GaussianDerivativeNetwork(
        scales=tuple(grid), channels=channels, classes=classes, order=3, drop=0.3
    )


def gaussder_residual(channels: int, classes: int, grid: ScaleGrid) -> GaussianDerivativeNetwork:
    """With residual layers and the term of order 0."""
    return GaussianDerivativeNetwork(
        scales=tuple(grid), channels=channels, classes=classes, residual=True, smoothed=True, drop=0.3
    )


def gaussder_anywhere(channels: int, classes: int, grid: ScaleGrid) -> GaussianDerivativeNetwork:
    """The maximum over space, then the mean over scales: for objects anywhere."""
    return GaussianDerivativeNetwork(
        scales=tuple(grid), channels=channels, classes=classes, reading="max", drop=0.3
    )
