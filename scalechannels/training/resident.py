"""What lies on the device while training: the foveated windows where they fit, the images otherwise."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch
from torch import Tensor

from scalechannels.data.image_set import ImageSet
from scalechannels.foveate import Foveate
from scalechannels.network import ScaleChannelNetwork
from scalechannels.pretrained import Network
from scalechannels.scales import ScaleGrid
from scalechannels.sliding import SlidingWindowNetwork

MEMORY_SHARE = 0.5
"""Cached windows may fill this share of the free memory; beyond it, images are foveated in every step."""


@torch.no_grad()
def resident_inputs(
    network: Network,
    sets: Sequence[ImageSet],
    precision: str,
    *,
    channels_last: bool,
    finer: Foveate | None = None,
) -> tuple[Tensor, bool]:
    """The resident inputs (D, N, …), and whether they are foveated windows already.

    The windows are those of the network's grid, or of `finer`.
    """
    images = torch.stack([made.images for made in sets])  # (D, N, C, H, W)
    kind = torch.bfloat16 if precision == "bfloat16" else torch.float32
    if isinstance(network, SlidingWindowNetwork):
        return (images.to(kind) if channels_last else images), False
    if not isinstance(network, ScaleChannelNetwork):
        return (images[:, :, None].movedim(3, -1).to(kind) if channels_last else images), False
    D, N, C = images.shape[:3]
    foveate = finer or network.foveate
    side, S = foveate.window, len(foveate.grid)
    needed = window_bytes(network, sets, precision, finer)
    if not fits(needed, images.device):
        if channels_last:
            raise MemoryError(
                f"the windows of these runs need {needed / 2**30:.1f} GiB; train fewer runs together"
            )
        return images, False
    windows = torch.empty(D, N, S, C, side, side, dtype=kind, device=images.device)
    for made, out in zip(images, windows, strict=True):
        for part, target in zip(made.split(256), out.split(256), strict=True):
            target.copy_(foveate(part))
    return (windows.movedim(3, -1).contiguous() if channels_last else windows), True


def foveate_finer(foveate: Foveate, ratio: float, beyond: int, phases: int) -> Foveate:
    """The same windows on a grid with `beyond` more channels at each end, each ratio divided into `phases`.

    It ends with the last phase of its last channel, so that every phase has as many channels.
    """
    count = (len(foveate.grid) + 2 * beyond) * phases
    scales = [foveate.grid.minimum * ratio ** (index / phases - beyond) for index in range(count)]
    return Foveate(ScaleGrid.of(*scales), **foveate.arguments())


def window_bytes(
    network: Network, sets: Sequence[ImageSet], precision: str, finer: Foveate | None = None
) -> int:
    """What the cached windows of these sets take; nothing where a network has none."""
    if not isinstance(network, ScaleChannelNetwork):
        return 0
    grid = (finer or network.foveate).grid
    pixels = len(grid) * sets[0].images.shape[1] * network.foveate.window**2
    return sum(len(made) for made in sets) * pixels * (2 if precision == "bfloat16" else 4)


def fits(needed: int, device: torch.device) -> bool:
    return needed <= MEMORY_SHARE * free_memory(device)


def free_memory(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if "SC_AVPHYS_PAGES" not in os.sysconf_names:  # not every system tells; half of all is a fair guess
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
