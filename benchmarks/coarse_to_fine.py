"""What fewer channels at inference cost in accuracy and save in time, in one run.

    python -m benchmarks.coarse_to_fine NETWORK [--split validation] [--ways 3,4,0.85 …] [--output FILE]

all              the network as it is, all channels
3,4,0.85         CoarseToFine(network, step=3, refine=4, sure=0.85), and so on for every --ways
coarse alone     only the coarse channels of the first of the ways
every second     the same weights on every second channel of the grid: what a user would do instead

All of them classify the same images, at every size of the data set, and take turns: each size in another
order. For each range of sizes: the accuracy, what is lost against all channels with its 95 % interval over
the images (paired), and the ratio of the times. Choose on --split validation; report on test, once.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.measure import environment, options, write
from scalechannels import ScaleChannelNetwork
from scalechannels.coarse_to_fine import CoarseToFine
from scalechannels.data.ranges import RANGES, inside
from scalechannels.saving.saved_network import SavedNetwork, find_network
from scalechannels.training.config import DataConfig, RunConfig
from scalechannels.training.datasets import open_data

Way = tuple[int, int, float]
WARM_UP = 200  # images


def parse_way(text: str) -> Way:
    step, refine, sure = text.split(",")
    return int(step), int(refine), float(sure)


def ways(network: ScaleChannelNetwork, chosen: list[str]) -> dict[str, ScaleChannelNetwork]:
    first = parse_way(chosen[0])
    every_second = ScaleChannelNetwork(**{**network.arguments(), "grid": network.grid[::2]})
    return {
        "all": network,
        **{text: CoarseToFine(network, *parse_way(text)) for text in chosen},
        "coarse alone": CoarseToFine(network, first[0], 0),
        "every second": every_second.to(network.foveate.spacing.device).eval(),
    }


def timed(way: ScaleChannelNetwork, images: Tensor, device: torch.device) -> tuple[Tensor, float, float]:
    """The result, the wall-clock seconds and those of the processor, which other processes disturb less."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    start, processor = time.perf_counter(), time.process_time()
    result = way(images)
    if device.type == "cuda":
        torch.cuda.synchronize()
    return result, time.perf_counter() - start, time.process_time() - processor


@torch.inference_mode()
def measure(chosen: argparse.Namespace, device: torch.device) -> dict[str, Any]:
    folder = find_network(chosen.network)
    network = SavedNetwork.open(folder).network.to(device)
    compared = ways(network, chosen.ways)
    config = RunConfig.from_toml(folder / "config.toml")
    data = open_data(DataConfig(name=chosen.data or (config.data.name if config else "mnist")), device)
    names = list(compared)
    sizes: list[dict[str, Any]] = []
    losses: list[dict[str, Tensor]] = []  # of every image, at each size
    for number, size in enumerate(data.test_sizes):
        test = data.testing(size, chosen.split)
        images, labels = test.images[: chosen.images], test.labels[: chosen.images]
        right: dict[str, Tensor] = {}
        entry: dict[str, Any] = {"size": size, "images": len(images), "doubtful": {}}
        for name in names[number % len(names) :] + names[: number % len(names)]:
            way = compared[name]
            if not number:
                way(images[:WARM_UP])
            logits, wall, processor = timed(way, images, device)
            right[name] = logits.argmax(1) == labels
            entry[name] = {"seconds": wall, "processor_seconds": processor}
        for name in names:
            entry[name]["accuracy"] = 100 * float(right[name].double().mean())
            entry[name]["only_all_right"] = int((right["all"] & ~right[name]).sum())
            entry[name]["only_this_right"] = int((right[name] & ~right["all"]).sum())
        for name, way in compared.items():
            if isinstance(way, CoarseToFine) and way.refine:
                coarse = CoarseToFine(network, way.step, 0)(images[:1000])
                entry["doubtful"][name] = float((coarse.softmax(1).amax(1) < way.sure).double().mean())
        sizes.append(entry)
        losses.append({name: right["all"].double() - right[name].double() for name in names})  # +1, 0 or −1
    return {
        "sizes": sizes,
        "ranges": {name: summary(sizes, losses, *ends, names) for name, ends in RANGES.items()},
    }


def summary(
    sizes: list[dict[str, Any]], losses: list[dict[str, Tensor]], low: float, high: float, names: list[str]
) -> dict[str, Any]:
    """The means over a range of sizes, and the paired difference to all channels."""
    within = inside((one["size"] for one in sizes), low, high)
    chosen = [k for k, one in enumerate(sizes) if one["size"] in within]
    result = {}
    for name in names:
        # Every size shows the same digits: their means over the sizes are the draws. The network is given.
        of_images = torch.stack([losses[k][name] for k in chosen]).mean(0)  # (images,)
        mean, deviation = float(of_images.mean()), float(of_images.std()) / math.sqrt(len(of_images))
        result[name] = {
            "accuracy": sum(sizes[k][name]["accuracy"] for k in chosen) / len(chosen),
            "lost_points": 100 * mean,
            "interval": [100 * (mean - 1.96 * deviation), 100 * (mean + 1.96 * deviation)],
            **{
                f"{kind}_ratio": sum(sizes[k][name][kind] for k in chosen)
                / sum(sizes[k]["all"][kind] for k in chosen)
                for kind in ("seconds", "processor_seconds")
            },
        }
    return result


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("network", type=Path, help="a run's folder, or a shipped network's name")
    parser.add_argument("--data", choices=("mnist", "strokes", "cifar10"), help="by default the run's own")
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    parser.add_argument("--images", type=int, help="only so many of each size")
    parser.add_argument("--ways", nargs="+", default=["3,4,0.85"], help="step,refine,sure")
    chosen = parser.parse_args()
    device = torch.device(chosen.device)
    report = {
        "environment": environment(device),
        "network": find_network(chosen.network).name,
        "split": chosen.split,
        "goal": "at most 0.05 points lost on [1/2,4] at no more than half of the time",
        **measure(chosen, device),
    }
    write(report, chosen.output)


if __name__ == "__main__":
    main()
