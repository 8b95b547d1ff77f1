"""All channels of a sliding-window network on one canvas, so that each layer is one call instead of S.

The rescaled images of every scale lie side by side on one plane. The convolutions have no padding, so
wherever a window stays inside one rescaled image its result is that of the image alone; places whose window
reaches over an edge do not count. The maximum over all others is the one over space and scale at once.

Law: equal to the network. Limit: one image size.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from scalechannels.network import ScaleChannelNetwork
from scalechannels.sampling import grid_lattice

STRIDE = 4
"""The backbone's stride: rescaled images begin at its multiples, so that windows do as on their own."""


class Canvas(nn.Module):
    """Images (B, C, H, W) to canvases (B, C, height, width), sampled in one go."""

    lattice: Tensor
    places: Tensor
    channels: Tensor

    def __init__(self, network: ScaleChannelNetwork, height: int, width: int) -> None:
        super().__init__()
        sizes = [network.everywhere.sampled_size((height, width), sigma) for sigma in network.grid]
        origins, extent = pack(sizes)
        self.size = (height, width)
        lattice = torch.zeros(*extent, 2, dtype=torch.float64)
        places: Any = network.backbone.places
        channels = torch.full([places(side) for side in extent], -1)
        grid = enumerate(network.grid)
        for (channel, sigma), (h, w), (top, left) in zip(grid, sizes, origins, strict=True):
            rows, columns = (
                (side - 1) / 2 + sigma * (torch.arange(count, dtype=torch.float64) - (count - 1) / 2)
                for side, count in ((height, h), (width, w))
            )
            lattice[top : top + h, left : left + w] = grid_lattice(rows, columns, (height, width))
            first = (top // STRIDE, left // STRIDE)
            channels[first[0] : first[0] + places(h), first[1] : first[1] + places(w)] = channel
        self.register_buffer("lattice", lattice[None], persistent=False)  # (1, height, width, 2)
        self.window, self.width = network.foveate.window, channels.shape[1]
        channels = channels.flatten()
        self.register_buffer("places", (channels >= 0).nonzero()[:, 0], persistent=False)  # (P,), as i·w + j
        self.register_buffer("channels", channels, persistent=False)  # of every place; -1 where none counts

    def forward(self, images: Tensor) -> Tensor:
        if tuple(images.shape[2:]) != self.size:
            raise ValueError(
                f"this canvas is for images of {self.size} pixels, got {tuple(images.shape[2:])}"
            )
        lattice = self.lattice.to(images.dtype).expand(len(images), -1, -1, -1)
        with torch.autocast(images.device.type, enabled=False):
            return F.grid_sample(images, lattice, padding_mode="border", align_corners=True)

    def windows(self, canvases: Tensor, places: Tensor) -> Tensor:
        """What is seen at places (B, K) of canvases (B, height, width, C): windows (B, K, n, n, C)."""
        within = torch.arange(self.window, device=canvases.device)
        row = (places // self.width * STRIDE)[..., None] + within  # (B, K, n)
        column = (places % self.width * STRIDE)[..., None] + within
        image = torch.arange(len(canvases), device=canvases.device)[:, None, None, None]
        return canvases[image, row[..., :, None], column[..., None, :]]


def pack(sizes: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], tuple[int, int]]:
    """Where rectangles (height, width) go, from the largest on, and the extent of the canvas.

    Of all widths of the canvas the one with the smallest area is taken.
    """
    widest = max(width for _, width in sizes)
    total = sum(_whole(width) for _, width in sizes)
    packed = [_pack_into(sizes, width) for width in range(_whole(widest), total + 1, STRIDE)]
    return min(packed, key=lambda result: result[1][0] * result[1][1])


def _pack_into(sizes: list[tuple[int, int]], width: int) -> tuple[list[tuple[int, int]], tuple[int, int]]:
    """Each rectangle, the largest first, to where it lies highest on what is already there."""
    origins = [(0, 0)] * len(sizes)
    filled = [0] * (width // STRIDE)  # down to which row each column of cells is taken
    for index in sorted(range(len(sizes)), key=lambda i: -sizes[i][0]):
        rows, columns = (_whole(side) // STRIDE for side in sizes[index])
        tops = [max(filled[left : left + columns]) for left in range(len(filled) - columns + 1)]
        top = min(tops)
        left = tops.index(top)
        origins[index] = (top * STRIDE, left * STRIDE)
        filled[left : left + columns] = [top + rows] * columns
    return origins, (max(filled) * STRIDE, width)


def _whole(side: int) -> int:
    return -(-side // STRIDE) * STRIDE
