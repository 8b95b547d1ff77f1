"""Made-up results: whole, as training writes them, with accuracies that a function of the size gives."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from scalechannels.paper.comparisons import Size
from scalechannels.paper.recipes import seeded
from scalechannels.paper.results import Result
from scalechannels.scales import ScaleGrid
from scalechannels.training.config import RunConfig
from scalechannels.training.errors import pack_errors

IMAGES = 40
"""As many does a made-up test set have, where it is said which were wrong."""


def made_up(
    config: RunConfig,
    accuracy: Callable[[float], float] = lambda size: 99.0,
    ranges: Sequence[tuple[float, float]] = (),
    device: str = "cuda",
    selection: Callable[[float, float], float] = lambda size, scale: 1.0 if scale == size else 0.0,
) -> Result:
    """A result of this run: `accuracy(size)` in per cent, `selection(size, scale)` the share of a channel."""
    resolved = config.resolve(device)
    assert resolved.network.low is not None
    assert resolved.network.high is not None
    grid = ScaleGrid(resolved.network.low, resolved.network.high, ratio=resolved.network.ratio)
    sizes = config.data.about.test_sizes
    entries: list[dict[str, Any]] = []
    for size in sizes:
        shares = [selection(size, scale) for scale in grid]
        total = sum(shares) or 1.0
        entries.append(
            {
                "size": size,
                "images": 10,
                "accuracy": accuracy(size),
                "per_class": [accuracy(size)] * 10,
                "confusion": [[0] * 10] * 10,
                "selection": None if config.network.name == "cnn" else [share / total for share in shares],
            }
        )
    for low, high in ranges:
        entries.append({**entries[0], "size": [low, high], "accuracy": accuracy((low * high) ** 0.5)})
    values = {
        "name": resolved.name,
        "config": json.loads(json.dumps(resolved.as_dict())),
        "classes": [str(digit) for digit in range(10)],
        "parameters": 68_870,
        "environment": {"scalechannels": "0", "commit": "abc", "torch": "2", "device": "made up"},
        "seconds": {"data": 2.0, "training": 20.0, "evaluation": 1.0, "runs_together": 2},
        "history": [{"epoch": resolved.training.epochs, "rate": 1e-3, "loss": 0.1, "seconds": 1.0}],
        "evaluation": {"split": "test", "sizes": entries},
    }
    return Result(resolved, values)


def write(folder: Path, *results: Result) -> None:
    """Write them where `results/runs` would be."""
    folder.mkdir(parents=True, exist_ok=True)
    for result in results:
        (folder / f"{result.config.name}.json").write_text(json.dumps(result.values))


def wrong_of(config: RunConfig, size: Size) -> np.ndarray:
    """Which of 40 images a made-up run gets wrong: others for each run and size."""
    canonical = json.dumps([config.resolve("cuda").name, size])
    draws = np.random.default_rng(list(canonical.encode()))
    return draws.random(IMAGES) < (0.1 if config.network.name == "fovlse" else 0.3)


def keep(
    folder: Path,
    *configs: RunConfig,
    seeds: int = 3,
    ranges: tuple[tuple[float, float], ...] = (),
    wrong: Callable[[RunConfig, Size], np.ndarray] | None = wrong_of,
) -> None:
    """Results of these runs with as many seeds; None for those of before errors were kept."""
    for config in (seeded(config, seed) for config in configs for seed in range(seeds)):
        result = made_up(config, ranges=ranges)
        for entry in result.values["evaluation"]["sizes"]:
            if wrong is not None:
                errors = wrong(
                    config, tuple(entry["size"]) if isinstance(entry["size"], list) else entry["size"]
                )
                entry["images"] = len(errors)
                entry["accuracy"] = 100 * (1 - float(errors.mean()))
                entry["errors"] = pack_errors(torch.from_numpy(errors))
        write(folder, result)
