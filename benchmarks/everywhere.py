"""What looking everywhere costs beside a plain CNN that slides, in one run.

    python -m benchmarks.everywhere [--device cuda] [--output FILE]

training    one step (forward, backward, Adam) on images of 64 x 64 with 7 channels of ratio √2, beside two
            plain CNNs with about as many multiplications: the same backbone on an image so much larger, and a
            wider backbone on the image itself
inference   the same without gradients; the network folds its batch norm, the plain CNNs do not
memory      what explaining an image of 4000 x 3000 needs above the image, in a process of its own

Ratios of medians count: all sides take turns in one run. Above 1, scale channels take so many times longer.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.measure import environment, in_turns, options, write
from scalechannels import LogMeanExpOverScales, ScaleChannelNetwork, ScaleGrid
from scalechannels.backbones.paper import ConvBackbone, mnist_backbone

GRID = ScaleGrid(0.5, 4, ratio=2**0.5)
SIDE, BATCH = 64, 32
LARGE = (3000, 4000)


class PlainSliding(nn.Module):
    """A backbone at every place of the image, and the maximum over places: one scale."""

    def __init__(self, backbone: ConvBackbone) -> None:
        super().__init__()
        self.backbone = backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: Tensor) -> Tensor:
        return self.backbone.logit_map(images).flatten(2).max(2).values  # (B, K)


def everywhere() -> ScaleChannelNetwork:
    return ScaleChannelNetwork(mnist_backbone(), GRID, LogMeanExpOverScales(), look="everywhere")


def multiplications(backbone: ConvBackbone, height: int, width: int) -> int:
    """Of one image, by the backbone at all of its places."""
    places = backbone.places(height) * backbone.places(width)
    inputs, total = backbone.channels, 0
    for outputs, stride in zip(backbone.features, backbone.strides, strict=True):
        height, width = ((side - 3) // stride + 1 for side in (height, width))
        total += height * width * 9 * inputs * outputs
        inputs = outputs
    return total + places * (inputs * backbone.side**2 * backbone.hidden + backbone.hidden * backbone.classes)


def wider(wanted: int) -> ConvBackbone:
    """The backbone for the image itself whose multiplications come nearest to those that are wanted."""
    tried = [
        ConvBackbone((4 * part, 4 * part, 8 * part, 8 * part), hidden=25 * part) for part in range(4, 24)
    ]
    return min(tried, key=lambda one: abs(math.log(multiplications(one, SIDE, SIDE) / wanted)))


def compared(device: torch.device, repeats: int) -> dict[str, Any]:
    network: Any = everywhere()
    sizes = [network.everywhere.sampled_size((SIDE, SIDE), sigma) for sigma in GRID]
    same = network.backbone
    cost = sum(multiplications(same, *size) for size in sizes)
    side = min(range(SIDE, 10 * SIDE), key=lambda one: abs(multiplications(same, one, one) - cost))
    wide = wider(cost)
    sides = {"everywhere": SIDE, "larger_image": side, "wider": SIDE}
    models: dict[str, nn.Module] = {
        "everywhere": network,
        "larger_image": PlainSliding(mnist_backbone()),
        "wider": PlainSliding(wide),
    }
    costs = {
        "everywhere": cost,
        "larger_image": multiplications(same, side, side),
        "wider": multiplications(wide, SIDE, SIDE),
    }
    images = {name: torch.randn(BATCH, 1, one, one, device=device) for name, one in sides.items()}
    labels = torch.randint(10, (BATCH,), device=device)

    def step(name: str) -> Callable[[], None]:
        model = models[name].to(device).train()
        adam = torch.optim.Adam(model.parameters(), fused=True)

        def learn() -> None:
            adam.zero_grad(set_to_none=True)
            F.cross_entropy(model(images[name]), labels).backward()
            adam.step()

        return learn

    training = in_turns({name: step(name) for name in models}, device, repeats)
    for model in models.values():
        model.eval()
    with torch.inference_mode():
        called = {name: lambda name=name: models[name](images[name]) for name in models}
        inference = in_turns(called, device, repeats)
    return {
        "batch": BATCH,
        "multiplications": costs,
        "training": {**training, "ratios": _ratios(training)},
        "inference": {**inference, "ratios": _ratios(inference)},
    }


def _ratios(times: dict[str, dict[str, Any]]) -> dict[str, float]:
    mine = times["everywhere"]["seconds"]
    return {name: mine / one["seconds"] for name, one in times.items() if name != "everywhere"}


def memory() -> dict[str, float]:
    """The peak of a process that explains one large image, in MB above what it had before; Linux only."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_explained)


def _explained() -> dict[str, float]:
    torch.set_num_threads(1)
    network = everywhere().eval()
    with torch.inference_mode():
        network.explain(torch.randn(1, 1, SIDE, SIDE))  # what a first call loads
        image = torch.randn(1, 1, *LARGE)
        # The peak that `resource` tells begins with that of the parent process, which trained networks.
        Path("/proc/self/clear_refs").write_text("5")
        before = _peak()
        network.explain(image)
    return {"image_megabytes": image.numel() * 4 / 2**20, "megabytes_above_it": _peak() - before}


def _peak() -> float:
    """Of this process's memory since it was last set back, in MB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--no-memory", action="store_true", help="leave the large image out")
    given = parser.parse_args()
    device = torch.device(given.device)
    report = {"environment": environment(device), "compared": compared(device, given.repeats)}
    if not given.no_memory:
        report["memory"] = memory()
    write(report, given.output)


if __name__ == "__main__":
    main()
