"""What lies on the device while training: the foveated windows where they fit, the images otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from scalechannels.data.image_set import ImageSet
from scalechannels.network import ScaleChannelNetwork
from scalechannels.sampling import Foveate
from scalechannels.saving.saved_network import Network

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
    first = networks[0]
    needed = window_bytes(networks, sets, precision, finer)
    windows, room = first.look == "centre", fits(needed, sets[0].images.device)
    if windows and channels_last and not room:
        raise MemoryError(
            f"the windows of these runs need {needed / 2**30:.1f} GiB; train fewer runs together"
        )
    kind = torch.bfloat16 if precision == "bfloat16" else torch.float32
    if not windows or not room:
        return image_inputs(first, sets, kind, channels_last=channels_last), False
    foveate, images = _foveate(first, finer), sets[0].images
    side, most = foveate.window, max(len(made) for made in sets)
    shape = (side, side, images.shape[1]) if channels_last else (images.shape[1], side, side)
    inputs = torch.zeros(len(sets), most, len(foveate.grid), *shape, dtype=kind, device=images.device)
    put_windows(inputs, networks, sets, channels_last=channels_last, finer=finer)
    return inputs, True


def image_inputs(
    network: Network, sets: Sequence[ImageSet], kind: torch.dtype, *, channels_last: bool
) -> Tensor:
    """The images (D, N, C, H, W) in the form that the network's training takes them in."""
    if network.look == "everywhere":
        return filled_up([made.images.to(kind) if channels_last else made.images for made in sets])
    images = filled_up([made.images for made in sets])
    if network.look == "centre" or not channels_last:
        return images
    return images[:, :, None].movedim(3, -1).to(kind)  # a stack of one window: (D, N, 1, H, W, C)


@torch.no_grad()
def put_windows(
    inputs: Tensor,
    networks: Sequence[Network],
    sets: Sequence[ImageSet],
    *,
    channels_last: bool,
    finer: Callable[[Foveate], Foveate] | None = None,
) -> None:
    """The windows of the sets into inputs (D, N, S, C, n, n), or with `channels_last` (D, N, S, n, n, C)."""
    for network, made, windows in zip(networks, sets, inputs, strict=True):
        foveate = _foveate(network, finer)
        for part, target in zip(made.images.split(256), windows[: len(made)].split(256), strict=True):
            seen = foveate(part)  # (b, S, C, n, n)
            target.copy_(seen.movedim(2, -1) if channels_last else seen)


def filled_up(parts: Sequence[Tensor]) -> Tensor:
    """Parts (N, …) that differ in N at most as one (D, N, …), zeros after the shorter ones."""
    if len(parts) == 1:
        return parts[0][None]  # a copy would take as much memory again
    most = max(len(part) for part in parts)
    joined = parts[0].new_zeros(len(parts), most, *parts[0].shape[1:])
    for part, target in zip(parts, joined, strict=True):
        target[: len(part)] = part
    return joined


def widened(foveate: Foveate, margin: int) -> Foveate:
    """The same windows with so many pixels more on each side."""
    return Foveate(foveate.grid, **{**foveate.arguments(), "window": foveate.window + 2 * margin})


def window_bytes(
    networks: Sequence[Network],
    sets: Sequence[ImageSet],
    precision: str,
    finer: Callable[[Foveate], Foveate] | None = None,
) -> int:
    """What the cached windows of these sets take; nothing where a network has none."""
    if networks[0].look != "centre":
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
