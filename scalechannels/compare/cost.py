"""What a network costs, measured on the network itself: parameters, multiplications, memory, time.

multiplications   of one image in testing, as PyTorch counts the products of its convolutions and matrices;
                  a rival adds what that count misses (Fourier transforms) or takes off products with 0
megabytes         kept of one image for the backward pass of training, in float32: what limits the batch
milliseconds      of one image in testing, the median, on the device and with the threads that are named

Law: the first three depend on the network and the size of the image alone. Limit: the sampling of windows and
poolings without products count for nothing, which is little beside the convolutions.
"""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from scalechannels.files import json_text, locked, write_text
from scalechannels.training.build import build_network, tested_network
from scalechannels.training.config import ResolvedRun, RunConfig
from scalechannels.training.runs import environment

COSTS = "costs.json"
"""The file in results/ with what was measured."""
REPEATS = 5
IMAGES = {"cpu": 8, "cuda": 256}
"""That are tested at once for their time."""
LEARNT = 2
"""Images of the step whose memory is measured: batch norm needs two."""


def multiplications(network: nn.Module, image: Tensor) -> int:
    """Of one image (1, C, H, W)."""
    network.eval()
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        network(image)
    correct = getattr(getattr(network, "backbone", network), "correction", None)
    extra = correct(*image.shape[2:]) if correct else 0
    return counter.get_total_flops() // 2 + extra  # a product and a sum are two


def megabytes(network: nn.Module, images: Tensor) -> float:
    """That autograd keeps for each of these images; weights are not counted, nor the images themselves."""
    held = {
        value.untyped_storage().data_ptr() for value in (*network.parameters(), *network.buffers(), images)
    }
    kept: dict[int, int] = {}

    def note(value: Tensor) -> Tensor:
        storage = value.untyped_storage()
        if storage.data_ptr() not in held:
            kept[storage.data_ptr()] = storage.nbytes()
        return value

    network.train()
    with torch.autograd.graph.saved_tensors_hooks(note, lambda value: value):
        logits = network(images)  # held until here: a freed address would be counted once for two tensors
    del logits
    return sum(kept.values()) / len(images) / 1e6


def milliseconds(network: nn.Module, images: Tensor, repeats: int = REPEATS) -> float:
    """Of one of these images, the median of some repetitions after one to warm up."""
    network.eval()
    taken = []
    for _ in range(repeats + 1):
        _wait(images)
        started = time.perf_counter()
        with torch.inference_mode():
            network(images)
        _wait(images)
        taken.append(time.perf_counter() - started)
    return 1000 * statistics.median(taken[1:]) / len(images)


def _wait(images: Tensor) -> None:
    if images.is_cuda:
        torch.cuda.synchronize(images.device)


def measured(config: ResolvedRun, channels: int, classes: int, device: torch.device) -> dict[str, Any]:
    """All of it for the network of a run, as it is tested, on random images; its weights are random, too."""
    network: Any = build_network(config, channels, classes).to(device)
    side = config.data.about.image
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(IMAGES[device.type], channels, side, side, generator=generator).to(device)
    kept = megabytes(network, images[:LEARNT])
    tested = tested_network(config, network)
    return {
        "parameters": sum(weight.numel() for weight in network.parameters()),
        "multiplications": multiplications(tested, images[:1]),
        "megabytes": round(kept, 3),
        "milliseconds": {
            device.type: {"value": round(milliseconds(tested, images), 4), **environment(device)}
        },
    }


class Costs:
    """The measured costs of a results folder, each of a run whatever its seed."""

    def __init__(self, results: Path) -> None:
        self.path = results / COSTS
        self.values: dict[str, dict[str, Any]] = self._read()

    def _read(self) -> dict[str, dict[str, Any]]:
        if not self.path.exists():
            return {}
        try:
            values = json.loads(self.path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise ValueError(f"'{self.path}' is damaged ({error}); remove it to measure again") from error
        return dict(values)

    def of(self, config: RunConfig) -> dict[str, Any]:
        """What is known; empty where nothing was measured."""
        return self.values.get(key_of(config), {})

    def add(self, config: RunConfig, found: dict[str, Any]) -> None:
        """Keep a measurement beside those of other devices, and of others who measure now."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.path, timeout=60):
            self.values = self._read()
            before = self.values.get(key_of(config), {})
            times = {**before.get("milliseconds", {}), **found["milliseconds"]}
            self.values[key_of(config)] = {**before, **found, "milliseconds": times}
            write_text(self.path, json_text(dict(sorted(self.values.items()))) + "\n")


def key_of(config: RunConfig) -> str:
    """The name of the run of seed 0 on a GPU: seeds and precision cost the same."""
    from scalechannels.paper.recipes import seeded

    return seeded(config, 0).resolve("cuda").name
