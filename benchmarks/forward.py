"""What scale channels cost beside what cannot be avoided, in one run.

    python -m benchmarks.forward [--device cuda] [--output FILE]

foveation   one sampling of all channels, beside a loop of F.interpolate and crop over the scales
forward     the whole network, beside the bare backbone on the same windows in its best piece size, as it is
            and with its batch norm folded into the convolutions, which the network does by itself
evaluation  the network on 1,000 images, beside the eager backbone in NCHW layout on all windows at once, and
            beside the naive way: rescale and crop for each scale, one batch for each
training    one step at batch 16 (forward, backward, Adam), beside the same step on ready windows
memory      what inference on 10,000 images of 112 x 112, given as one tensor, needs above the input

Ratios count: both sides take turns in one run. The first three are of medians.
"""

from __future__ import annotations

import copy
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.measure import environment, in_turns, options, write
from scalechannels import ScaleGrid, fovavg
from scalechannels.sampling import Foveate

GRID = ScaleGrid(0.5, 8, ratio=2**0.25)
PIECES = (34, 68, 136, 272, 544, 1088)


def interpolate_and_crop(images: Tensor, window: int = 28) -> Tensor:
    """The naive way: rescale the whole image for each scale, then crop or pad to the window."""
    stack = []
    for sigma in GRID:
        side = round(images.shape[-1] / sigma)
        rescaled = F.interpolate(images, size=(side, side), mode="bilinear", align_corners=False)
        margin = window - side
        if margin > 0:
            before, after = margin // 2, margin - margin // 2
            rescaled = F.pad(rescaled, (before, after, before, after), mode="replicate")
        first = max(-margin, 0) // 2
        stack.append(rescaled[..., first : first + window, first : first + window])
    return torch.stack(stack, dim=1)  # (B, S, C, n, n)


def foveation(device: torch.device, repeats: int) -> dict[str, Any]:
    images, foveate = torch.randn(256, 1, 112, 112, device=device), Foveate(GRID).to(device)
    antialiased = Foveate(GRID, antialias=True).to(device)
    times = in_turns(
        {
            "foveate": lambda: foveate(images),
            "interpolate_and_crop": lambda: interpolate_and_crop(images),
            "antialiased": lambda: antialiased(images),
        },
        device,
        repeats,
    )
    faster = times["interpolate_and_crop"]["seconds"] / times["foveate"]["seconds"]
    return {**times, "times_faster": faster, "goal": "at least 6"}


@torch.inference_mode()
def forward(device: torch.device, repeats: int) -> dict[str, Any]:
    images = torch.randn(256, 1, 112, 112, device=device)
    network = fovavg(GRID).to(device).eval()
    windows = network.foveate(images).flatten(0, 1)  # (B·S, C, n, n)
    pieces = in_turns(
        {str(size): lambda size=size: _bare(network.backbone, windows, size) for size in PIECES},
        device,
        repeats,
    )
    best = min(PIECES, key=lambda size: pieces[str(size)]["seconds"])
    times = in_turns(
        {
            "network": lambda: network(images),
            "backbone": lambda: _bare(network.backbone, windows, best),
            "folded_backbone": lambda: _bare(network.backbone.folded(), windows, best),
        },
        device,
        2 * repeats,
    )
    ratio, to_folded = (
        times["network"]["seconds"] / times[name]["seconds"] for name in ("backbone", "folded_backbone")
    )
    return {**times, "best_piece": best, "ratio": ratio, "ratio_to_folded": to_folded, "goal": "at most 1.10"}


def _bare(backbone: Callable[[Tensor], Tensor], windows: Tensor, size: int) -> Tensor:
    return torch.cat([backbone(piece) for piece in windows.split(size)])


@torch.inference_mode()
def evaluation(device: torch.device, repeats: int, count: int = 1000) -> dict[str, Any]:
    images = torch.randn(count, 1, 112, 112, device=device)
    network = fovavg(GRID).to(device).eval()
    backbone = copy.deepcopy(network.backbone).to(memory_format=torch.contiguous_format)

    def one_batch() -> Tensor:
        return backbone(network.foveate(images).flatten(0, 1)).view(count, len(GRID), -1).mean(1)

    def loop_over_scales() -> Tensor:
        windows = interpolate_and_crop(images)
        return torch.stack([backbone(windows[:, scale]) for scale in range(len(GRID))]).mean(0)

    times = in_turns(
        {"network": lambda: network(images), "one_batch": one_batch, "loop_over_scales": loop_over_scales},
        device,
        repeats,
    )
    to_batch, to_loop = (
        times[name]["seconds"] / times["network"]["seconds"] for name in ("one_batch", "loop_over_scales")
    )
    return {
        **times,
        "images_per_second": count / times["network"]["seconds"],
        "times_faster_than_one_batch": to_batch,
        "times_faster_than_loop": to_loop,
        "goal": "at least 1.7 times one eager NCHW batch",
    }


def training(device: torch.device, repeats: int) -> dict[str, Any]:
    images = torch.randn(16, 1, 112, 112, device=device)
    labels = torch.randint(0, 10, (16,), device=device)
    network = fovavg(GRID).to(device).train()
    windows = network.foveate(images).flatten(0, 1)
    optimiser = torch.optim.Adam(network.parameters(), fused=True)

    def step(logits: Tensor) -> None:
        optimiser.zero_grad(set_to_none=True)
        F.cross_entropy(logits, labels).backward()
        optimiser.step()

    def bare() -> Tensor:
        return network.backbone(windows).view(16, len(GRID), -1).mean(1)

    times = in_turns(
        {"network": lambda: step(network(images)), "backbone": lambda: step(bare())}, device, 10 * repeats
    )
    ratio = times["network"]["seconds"] / times["backbone"]["seconds"]
    for side in times.values():
        del side["all_seconds"]
    return {**times, "ratio": ratio, "goal": "at most 1.15"}


def memory(device: torch.device) -> dict[str, Any]:
    """In a process of its own: a high-water mark never falls."""
    if device.type == "cuda":
        images = torch.randn(10_000, 1, 112, 112, device=device)
        network = fovavg(GRID).to(device).eval()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        with torch.inference_mode():
            network(images)
        above = (torch.cuda.max_memory_allocated() - before) / 1e6
    else:
        context = multiprocessing.get_context("spawn")
        with context.Pool(1) as pool:
            above = pool.apply(_memory_above_input)
    return {"megabytes_above_input": above, "goal": "at most 300 on a CPU"}


def _memory_above_input() -> float:
    images = torch.rand(10_000, 1, 112, 112)
    network = fovavg(GRID).eval()
    with torch.inference_mode():
        network(images[:1])  # the libraries' own buffers are not the batch's
        resident = _status("VmRSS")  # not the peak so far: an earlier one would hide what comes
        network(images)
    return (_status("VmHWM") - resident) / 1e6


def _status(name: str) -> int:
    """Bytes of this process's memory. (getrusage's peak would be the parent's: it survives an exec.)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(name))
    return int(line.split()[1]) * 1024


def main() -> None:
    chosen = options(__doc__).parse_args()
    device = torch.device(chosen.device)
    report = {
        "environment": environment(device),
        "foveation": foveation(device, chosen.repeats),
        "forward": forward(device, chosen.repeats),
        "evaluation": evaluation(device, chosen.repeats),
        "training": training(device, chosen.repeats),
        "memory": memory(device),
    }
    write(report, chosen.output)


if __name__ == "__main__":
    main()
