"""Local scale invariance: the paper's Λ_local, a class score and a selected scale at every point of an image.

Every channel slides over the whole image instead of looking at one point. Convention: channel σ of a backbone
of stride d has its outputs on the lattice

    c + d·σ·k,    k = −m … m,    c = (H − 1)/2,

in pixel-centre coordinates, m the smallest number that reaches the outermost pixels. So every channel has an
output at the image's centre. The common lattice, on which channels are pooled, is every `step`-th pixel from
the first: 0, step, 2·step, … Logits between a channel's lattice points are interpolated, bilinearly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from scalechannels.backbones.inference import evaluating, stated
from scalechannels.backbones.paper import require_counts
from scalechannels.backbones.sliding import Convolutional, convolutional
from scalechannels.network import ScaleChannelNetwork
from scalechannels.sampling import most_digits, require_images, sample
from scalechannels.scales import ScaleGrid

CPU = torch.device("cpu")
TILE = 1024
"""Pixels along a tile of the image: what is held of all channels at once."""
PLACES = 96
"""Lattice points along a piece of one channel, which goes through the backbone at once: fits the cache."""
DEVICE_SAMPLES = 2816
"""Samples along a piece on a GPU, where launches decide, not the cache: 16 features of all have half a GB."""
POOLED = 1 << 15
"""Points of the common lattice that are pooled at once."""


class DenseMap(NamedTuple):
    """What a network says at every point of a lattice."""

    logits: Tensor  # (B, K, h, w), pooled over scale
    scales: Tensor  # (B, h, w): σ of the channel that contributes most to the winning class
    rows: Tensor  # (h,) float64 (see `most_digits`), in pixel-centre coordinates
    columns: Tensor  # (w,)


@dataclass(frozen=True)
class Span:
    """A part of a channel's lattice along one axis: the points c + step·k for first <= k < last."""

    centre: float
    step: float
    first: int
    last: int

    @property
    def count(self) -> int:
        """How many points; of an exported graph, which has free sizes, no plain number, so no __len__."""
        return self.last - self.first

    def positions(self, device: torch.device = CPU) -> Tensor:
        steps = torch.arange(self.first, self.last, dtype=most_digits(device), device=device)
        return self.centre + self.step * steps

    def over(self, low: float, high: float) -> Span:
        """The points that interpolation between `low` and `high` needs, as far as the lattice has them."""
        before = math.floor((low - self.centre) / self.step)
        after = math.ceil((high - self.centre) / self.step) + 1
        first = min(max(before, self.first), self.last - 1)
        return replace(self, first=first, last=max(min(after, self.last), first + 1))

    def around(self, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """For each position the lattice points below and above it, counted from the first, and its share."""
        steps = (positions - self.centre) / self.step
        lower = steps.floor()
        below, above = ((lower.long() + k - self.first).clamp(0, self.count - 1) for k in (0, 1))
        return below, above, steps - lower

    def parts(self, count: int) -> Iterator[Span]:
        """Pieces of nearly equal length, at most `count` points each; a graph has one alone."""
        pieces = 1 if torch.compiler.is_compiling() else math.ceil(self.count / count)
        edges = [self.first + self.count * piece // pieces for piece in range(pieces + 1)]
        for first, last in pairwise(edges):
            yield replace(self, first=first, last=last)


class ChannelMap(NamedTuple):
    """The logits of one channel on a part of its own lattice."""

    logits: Tensor  # (h, w, K)
    rows: Span
    columns: Span

    def at(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Bilinear interpolation at the product of two axes of positions: (h', w', K)."""
        maps = self.logits
        axes = (self.rows, rows, (-1, 1, 1)), (self.columns, columns, (-1, 1))
        for dimension, (span, positions, shape) in enumerate(axes):
            *beside, share = span.around(positions)
            below, above = (maps.index_select(dimension, index) for index in beside)
            maps = torch.lerp(below, above, share.to(maps.dtype).view(shape))
        return maps


class DenseNetwork(nn.Module):
    """A scale-channel network at every point of an image, as convolutions over the rescaled images.

        image (B,C,H,W) → for each σ: sampled at spacing σ → backbone slides → (h_σ, w_σ, K)
                        → interpolated on the common lattice → pool over scale → (B, K, h, w), (B, h, w)

    network  its backbone has to slide (see `backbones.sliding`); asked in eval mode, whatever mode it is in
    step     pixels between two points of the common lattice
    tile     the image is worked on in tiles of about so many pixels a side, so that memory stays bounded

    Law: at its own lattice points each channel says what the foveated network says centred there, the borders
    included; about every point x₀, scaling the image leaves the pooled logits unchanged (the paper's local
    scale invariance). Limits: between lattice points logits are interpolated; the invariance holds as far as
    that of the foveated network. Tiles change nothing beyond rounding.

    Example:
        >>> import torch, scalechannels
        >>> dense = scalechannels.DenseNetwork(scalechannels.load("fovlse-mnist"), step=8)
        >>> found = dense(torch.full((1, 1, 64, 96), -0.76))    # (B, C, H, W)
        >>> found.logits.shape, found.scales.shape              # at every eighth pixel
        (torch.Size([1, 10, 8, 12]), torch.Size([1, 8, 12]))
    """

    def __init__(self, network: ScaleChannelNetwork, step: int = 4, *, tile: int = TILE) -> None:
        super().__init__()
        if not isinstance(network, ScaleChannelNetwork):
            got = "a plain CNN" if getattr(network, "look", "") == "whole" else type(network).__name__
            raise TypeError(f"the network must be a scale-channel one, such as digit-detector; got {got}")
        if network.head is not None:
            raise ValueError("dense maps are defined where logits are pooled; this network pools features")
        if network.foveate.blur is not None:
            raise ValueError(
                "a network with blur has no dense map: the smoothing depends on where each window lies "
                "between the pixels, so it is no convolution; take blur=None"
            )
        if network.shifts:
            raise ValueError("dense maps do not support shifts: use a network with shifts=0")
        require_counts(step=step, tile=tile)
        if network.everywhere is not None and network.everywhere.norm == "each":
            raise ValueError("each channel has its own batch norm, so no single backbone can slide")
        self.network, self.step, self.tile = network, step, max(tile, step)
        with evaluating(network):
            self.stride = self._slid().stride  # refuses what cannot slide

    if TYPE_CHECKING:  # torch says that a module gives anything

        def __call__(self, images: Tensor) -> DenseMap: ...

    @property
    def grid(self) -> ScaleGrid:
        return self.network.grid

    @torch.no_grad()
    def forward(self, images: Tensor) -> DenseMap:
        """Pooled logits and selected scales of images (B, C, H, W) of any H and W."""
        require_images(images, stated(self.network.backbone, "channels"))
        rows, columns = (
            torch.arange(0, side, self.step, dtype=most_digits(images.device), device=images.device)
            for side in images.shape[2:]
        )
        with evaluating(self.network):
            slid = self._slid()
            pooled = [self._pooled(slid, image, rows, columns) for image in images]
        logits, scales = (torch.stack(part) for part in zip(*pooled, strict=True))
        return DenseMap(logits.permute(0, 3, 1, 2), scales, rows, columns)

    @torch.no_grad()
    def channel_maps(
        self,
        image: Tensor,
        rows: tuple[float, float] | None = None,
        columns: tuple[float, float] | None = None,
    ) -> list[ChannelMap]:
        """What each channel says on its own lattice of an image (C, H, W), before pooling: S maps.

        `rows` and `columns` are ranges of positions: only what interpolation inside them needs is computed.
        """
        self.require_image(image)
        with evaluating(self.network):
            return self._maps(self._slid(), image, rows, columns)

    def require_image(self, image: Tensor) -> None:
        """A clear error unless it is one image (C, H, W) that the network takes."""
        if not isinstance(image, Tensor):
            raise TypeError(f"the image must be a torch.Tensor (C, H, W); got {type(image).__name__}")
        if image.ndim != 3 or 0 in image.shape:
            raise ValueError(
                "pass one image (C, H, W) of at least one pixel at a time; "
                f"got the shape {tuple(image.shape)}"
            )
        require_images(image[None], stated(self.network.backbone, "channels"))

    def lattice(self, sigma: float, shape: tuple[int, ...] | torch.Size) -> tuple[Span, Span]:
        """The whole lattice of channel σ in an image of this shape (H, W): rows and columns."""
        step = self.stride * sigma
        slack = 1e-9  # a pixel that the lattice meets must not gain a point by rounding
        counts = [math.ceil((side - 1) / (2 * step) - slack) for side in shape]
        height, width = (Span((side - 1) / 2, step, -m, m + 1) for side, m in zip(shape, counts, strict=True))
        return height, width

    def places(self, device: torch.device) -> int:
        """Lattice points along a piece that goes through the backbone at once on this device."""
        return PLACES if device.type == "cpu" else max(PLACES, DEVICE_SAMPLES // self.stride)

    def _slid(self) -> Convolutional:
        """The backbone as it is now: it may have been changed since the last call."""
        check = not torch.compiler.is_compiling()
        slid = convolutional(self.network.backbone, self.network.foveate.window, check=check)
        if slid.stride != getattr(self, "stride", slid.stride):
            raise ValueError("the backbone was replaced by one of another stride: make a new dense network")
        return slid

    def _maps(
        self, slid: Convolutional, image: Tensor, *parts: tuple[float, float] | None
    ) -> list[ChannelMap]:
        """The maps of all channels, as far as interpolation in these parts of the two axes needs them."""
        exact = image if image.dtype in (torch.float32, torch.float64) else image.float()
        maps = []
        for sigma in self.grid:
            rows, columns = (
                lattice if part is None else lattice.over(*part)
                for lattice, part in zip(self.lattice(sigma, image.shape[1:]), parts, strict=True)
            )
            bands, places = [], self.places(image.device)
            for high in rows.parts(places):
                pieces = [self._piece(slid, exact, sigma, high, wide) for wide in columns.parts(places)]
                bands.append(torch.cat(pieces, 1))
            maps.append(ChannelMap(torch.cat(bands).to(image.dtype), rows, columns))
        return maps

    def _piece(self, slid: Convolutional, image: Tensor, sigma: float, rows: Span, columns: Span) -> Tensor:
        """Logits (h, w, K) at some lattice points: sample what their windows see, and slide."""
        foveate, n = self.network.foveate, self.network.foveate.window
        axes, ends = [], []
        for span in (rows, columns):
            count = self.stride * (span.count - 1) + n
            steps = torch.arange(count, dtype=most_digits(image.device), device=image.device)
            first = self.stride * span.first - (n - 1) / 2  # of the first window, in samples from the centre
            axes.append(span.centre + sigma * (first + steps))
            ends.append((span.centre + sigma * first, span.centre + sigma * (first + count - 1)))
        half_width = max(1.0, sigma) if foveate.antialias else 1.0
        sampled = sample(
            image, axes[0], axes[1], half_width, outside=foveate.outside, fill=foveate.fill, ends=ends
        )
        taken = sampled[None].to(next(self.network.parameters(), sampled).dtype)  # half precision is its own
        logits = slid.logit_map(taken.contiguous(memory_format=torch.channels_last))
        if self.network.everywhere is not None:
            logits = self.network.everywhere.counted(logits, sigma)
        return logits[0, :, : rows.count, : columns.count].permute(1, 2, 0)  # (h, w, K)

    def _pooled(
        self, slid: Convolutional, image: Tensor, rows: Tensor, columns: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Logits (h, w, K) and scales (h, w) on the common lattice, tile by tile."""
        if torch.compiler.is_compiling():
            return self._pooled_tile(slid, image, rows, columns)
        points = max(1, self.tile // self.step)
        bands = []
        for high in rows.split(points):
            parts = [self._pooled_tile(slid, image, high, wide) for wide in columns.split(points)]
            bands.append([torch.cat(part, 1) for part in zip(*parts, strict=True)])
        logits, scales = (torch.cat(part) for part in zip(*bands, strict=True))
        return logits, scales

    def _pooled_tile(
        self, slid: Convolutional, image: Tensor, rows: Tensor, columns: Tensor
    ) -> tuple[Tensor, Tensor]:
        whole = torch.compiler.is_compiling()
        ends = [None if whole else (float(axis[0]), float(axis[-1])) for axis in (rows, columns)]
        maps = self._maps(slid, image, *ends)
        logits, scales = [], []
        for part in [rows] if whole else rows.split(max(1, POOLED // len(columns))):
            channels = torch.stack([one.at(part, columns).flatten(0, 1) for one in maps], 1)  # (P, S, K)
            said = self.network.explain_channels(channels)
            if said.scales is None:
                raise TypeError(f"{type(self.network.pool).__name__} does not say which scale decided")
            logits.append(said.logits.view(part.shape[0], columns.shape[0], -1))
            scales.append(said.scales.view(part.shape[0], columns.shape[0]))
        return torch.cat(logits), torch.cat(scales)
