"""What lies on the device while training: the foveated windows where they fit, the images otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

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
    networks: Sequence[Network],
    sets: Sequence[ImageSet],
    precision: str,
    *,
    channels_last: bool,
    finer: Callable[[Foveate], Foveate] | None = None,
) -> tuple[Tensor, bool]:
    """The resident inputs (D, N, …), and whether they are foveated windows already.

    networks   for each set the one that it is made for; they differ in how their windows are sampled
    sets       of differing size are filled up with zeros
    finer      the windows' grid, where it is not the network's
    """
    kind = torch.bfloat16 if precision == "bfloat16" else torch.float32
    first = networks[0]
    if isinstance(first, SlidingWindowNetwork):
        return filled_up([made.images.to(kind) if channels_last else made.images for made in sets]), False
    if not isinstance(first, ScaleChannelNetwork):
        images = filled_up([made.images for made in sets])  # (D, N, C, H, W)
        return (images[:, :, None].movedim(3, -1).to(kind) if channels_last else images), False
    needed = window_bytes(networks, sets, precision, finer)
    if not fits(needed, sets[0].images.device):
        if channels_last:
            raise MemoryError(
                f"the windows of these runs need {needed / 2**30:.1f} GiB; train fewer runs together"
            )
        return filled_up([made.images for made in sets]), False
    stacks = []
    for network, made in zip(networks, sets, strict=True):
        foveate = _foveate(network, finer)
        side, (N, C) = foveate.window, made.images.shape[:2]
        windows = torch.empty(
            N, len(foveate.grid), C, side, side, dtype=kind, device=made.images.device
        )  # (N, S, C, n, n)
        for part, target in zip(made.images.split(256), windows.split(256), strict=True):
            target.copy_(foveate(part))
        stacks.append(windows.movedim(2, -1).contiguous() if channels_last else windows)
    return filled_up(stacks), True


def filled_up(parts: Sequence[Tensor]) -> Tensor:
    """Parts (N, …) that differ in N at most as one (D, N, …), zeros after the shorter ones."""
    if len(parts) == 1:
        return parts[0][None]  # a copy would take as much memory again
    most = max(len(part) for part in parts)
    joined = parts[0].new_zeros(len(parts), most, *parts[0].shape[1:])
    for part, target in zip(parts, joined, strict=True):
        target[: len(part)] = part
    return joined


def foveate_finer(
    foveate: Foveate, ratio: float, beyond: int = 0, phases: int = 1, margin: int = 0
) -> Foveate:
    """The same windows on a grid with `beyond` more channels at each end, each ratio divided into `phases`.

    It ends with the last phase of its last channel, so that every phase has as many channels. `margin` pixels
    are added to each side of a window.
    """
    arguments = {**foveate.arguments(), "window": foveate.window + 2 * margin}
    if (beyond, phases) == (0, 1):
        return Foveate(foveate.grid, **arguments)
    count = (len(foveate.grid) + 2 * beyond) * phases
    scales = [foveate.grid.minimum * ratio ** (index / phases - beyond) for index in range(count)]
    return Foveate(ScaleGrid.of(*scales), **arguments)


def window_bytes(
    networks: Sequence[Network],
    sets: Sequence[ImageSet],
    precision: str,
    finer: Callable[[Foveate], Foveate] | None = None,
) -> int:
    """What the cached windows of these sets take; nothing where a network has none."""
    if not isinstance(networks[0], ScaleChannelNetwork):
        return 0
    foveate = _foveate(networks[0], finer)
    pixels = len(foveate.grid) * sets[0].images.shape[1] * foveate.window**2
    most = max(len(made) for made in sets)
    return len(sets) * most * pixels * (2 if precision == "bfloat16" else 4)


def _foveate(network: Network, finer: Callable[[Foveate], Foveate] | None) -> Foveate:
    assert isinstance(network, ScaleChannelNetwork)
    return network.foveate if finer is None else finer(network.foveate)


def fits(needed: int, device: torch.device) -> bool:
    return needed <= MEMORY_SHARE * free_memory(device)


def free_memory(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if "SC_AVPHYS_PAGES" not in os.sysconf_names:  # not every system tells; half of all is a fair guess
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
