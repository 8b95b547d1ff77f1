"""How long the paper's runs take to train: milliseconds of a step, and the seconds of 62,500 of them.

    python -m benchmarks.training --device cuda [--networks fovavg cnn swmax] [--together 1 12] [--profile]

The engine's own step, as `scalechannels train` takes it: data on the device, the batch of 16 images, loss,
gradient, Adam. Images are random, since no value changes the amount of work. Compiling and capturing is told
apart, as `first_seconds`. With --profile, where the time goes by kernel. Without a GPU it runs too, on
few images and three channels, to see that it does.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any

import torch

from benchmarks.measure import environment, options, write
from scalechannels.data.image_set import ImageSet
from scalechannels.training.build import build_network
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig
from scalechannels.training.inputs import Inputs
from scalechannels.training.stacking import stack
from scalechannels.training.trainer import Trainer, shuffled

PAPER_STEPS = 20 * 50_000 // 16


def made_trainer(name: str, together: int, device: torch.device, images: int) -> tuple[Trainer, torch.Tensor]:
    """The trainer of so many runs of a network, and the order of an epoch."""
    small = {} if device.type == "cuda" else {"low": 1.0, "high": 4.0, "ratio": 2.0}
    config = RunConfig(DataConfig("mnist"), NetworkConfig(name, **small)).resolve(device.type)  # type: ignore
    seeds = [replace(config, training=replace(config.training, seed=seed)) for seed in range(together)]
    networks = [build_network(run).to(device) for run in seeds]
    labels = torch.randint(10, (images,), device=device)
    pictures = torch.randn(images, 1, 112, 112, device=device)
    data = ImageSet(pictures, labels, torch.ones(images, device=device).double())
    inputs = Inputs(seeds, networks, [0] * together, [data], stacked=True)
    trainer = Trainer(
        stack(networks, 112, 112).to(device),
        inputs.resident,
        inputs.labels,
        inputs.of_run,
        precision=config.training.precision,
        compiled=device.type == "cuda",
    )
    return trainer, torch.stack([shuffled(images, 16, seed, 0) for seed in range(together)])


def measure(name: str, together: int, device: torch.device, repeats: int, profile: bool) -> dict[str, Any]:
    trainer, order = made_trainer(name, together, device, 4_000 if device.type == "cuda" else 32)
    began = time.perf_counter()
    trainer.epoch(order, 1e-3)
    first = time.perf_counter() - began
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        trainer.epoch(order, 1e-3)
        taken.append((time.perf_counter() - began) / order.shape[1])
    step = sorted(taken)[len(taken) // 2]
    row = {
        "network": name,
        "together": together,
        "step_milliseconds": 1000 * step,
        "seconds_each": step * PAPER_STEPS / together,
        "first_seconds": first,
    }
    if profile and trainer.graph is not None:
        row["kernels"] = kernels(trainer)
    return row


def kernels(trainer: Trainer) -> list[dict[str, Any]]:
    """Microseconds of a step by kernel, the longest first."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    assert trainer.graph is not None
    trainer.place.zero_()
    with profiler(activities=[ProfilerActivity.CUDA]) as seen:
        trainer.graph.replay()
        torch.cuda.synchronize()
    events = sorted(seen.key_averages(), key=lambda event: -event.self_device_time_total)
    return [
        {
            "kernel": event.key[:100],
            "microseconds": event.self_device_time_total / trainer.unroll,
            "times": event.count / trainer.unroll,
        }
        for event in events
    ]


def main() -> None:
    parser = options(__doc__, repeats=3)
    parser.add_argument("--networks", nargs="+", default=["fovavg", "cnn", "swmax"])
    parser.add_argument("--together", nargs="+", type=int, default=[1, 12])
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    device = torch.device(given.device)
    rows = []
    for name in given.networks:
        for together in given.together:
            rows.append(measure(name, together, device, given.repeats, given.profile))
            shown = {key: value for key, value in rows[-1].items() if key != "kernels"}
            print(shown, file=sys.stderr, flush=True)
    write({"environment": environment(device), "runs": rows}, given.output)


if __name__ == "__main__":
    main()
