"""Riesz networks: no scale axis at all, because the Riesz transform commutes with every rescaling.

Barisin, Schladitz and Redenbach, "Riesz networks: scale invariant neural networks in a single forward pass",
JMIV 2024.

    maps ─▶ R₁, R₂, R₁₁, R₁₂, R₂₂ ─▶ learnt combination, batch norm, ReLU; five times ─▶ 1x1 ─▶ the centre

Law: R_j has the Fourier multiplier −i·k_j/|k|, which does not change when k is rescaled, so that a rescaled
image gives rescaled maps, and the same value at the centre. Limit: the image repeats itself beyond its edge,
as in the paper: of an object that fills it, the neighbours are seen.

The layers are those published for MNIST Large Scale: 12-16-24-32-80 features, 20,882 parameters.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor, nn

from scalechannels.backbones.paper import require_counts, require_features
from scalechannels.rivals.rival import Reading, Rival, in_full_precision, kept_for_all, read

TRANSFORMS = 5


def multipliers(height: int, width: int, like: Tensor | None = None) -> Tensor:
    """R₁, R₂, R₁₁, R₁₂, R₂₂ as factors of the real Fourier transform: complex (5, H, W/2 + 1).

    Law: R₁₁ + R₂₂ = −1 but for the mean, which all of them remove.
    """
    rows, columns = torch.fft.fftfreq(height)[:, None], torch.fft.rfftfreq(width)[None]
    length = (rows**2 + columns**2).sqrt()
    first = [-1j * side / length.clamp_min(1e-12) for side in (rows, columns)]
    second = [first[0] * first[0], first[0] * first[1], first[1] * first[1]]
    found = torch.stack([one.expand(length.shape) for one in (*first, *second)])
    if like is None:
        return found
    return found.to(like.device, torch.complex128 if like.dtype == torch.float64 else torch.complex64)


class RieszTransforms(nn.Module):
    """Maps (B, C, H, W) to their five transforms (B, 5·C, H, W), by the Fourier transform."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[tuple[int, int, torch.device, torch.dtype], Tensor] = {}

    def forward(self, maps: Tensor) -> Tensor:
        B, C, H, W = maps.shape
        kind = maps.dtype
        with in_full_precision(maps):
            maps = maps if maps.dtype == torch.float64 else maps.float()
            key = (H, W, maps.device, maps.dtype)
            if key not in self.made:
                with kept_for_all(self.made):
                    self.made[key] = multipliers(H, W, maps)
            spectrum = (
                torch.fft.rfft2(maps.contiguous())[:, :, None] * self.made[key]
            )  # (B, C, 5, H, W/2 + 1)
            return torch.fft.irfft2(spectrum, s=(H, W)).view(B, C * TRANSFORMS, H, W).to(kind)


class RieszNetwork(Rival):
    """Images (B, C, H, W) of any size to logits (B, K).

    reading    where the last layer's map is read: at the centre as published, or its maximum
    """

    def __init__(
        self,
        *,
        features: tuple[int, ...] = (12, 16, 24, 32, 80),
        channels: int = 1,
        classes: int = 10,
        reading: Reading = "centre",
    ) -> None:
        super().__init__()
        require_counts(channels=channels, classes=classes)
        require_features(features)
        self.features, self.channels, self.classes, self.reading = tuple(features), channels, classes, reading
        self.transforms = RieszTransforms()
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(TRANSFORMS * before, after, 1), nn.BatchNorm2d(after), nn.ReLU(inplace=True)
            )
            for before, after in pairwise((channels, *self.features))
        )
        self.last = nn.Conv2d(self.features[-1], classes, 1)
        self.heavy = TRANSFORMS * max(self.features) / 32

    def logits(self, images: Tensor) -> Tensor:
        return read(self.maps(images), self.reading)

    def maps(self, images: Tensor) -> Tensor:
        """Logits at every pixel: (B, K, H, W)."""
        maps = images
        for layer in self.layers:
            maps = layer(self.transforms(maps))
        return self.last(maps)

    def correction(self, height: int, width: int) -> int:
        """Fourier transforms, one there and five back for each map: N·log₂ N multiplications each."""
        maps = self.channels + sum(self.features[:-1])
        pixels = height * width
        return (1 + TRANSFORMS) * maps * round(pixels * math.log2(pixels))


def riesz_anywhere(channels: int, classes: int) -> RieszNetwork:
    """The maximum over space: for objects anywhere."""
    return RieszNetwork(channels=channels, classes=classes, reading="max")
