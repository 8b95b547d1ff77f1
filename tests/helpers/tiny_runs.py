"""Runs small enough to train in a fraction of a second: a hundred digits, three channels, two epochs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import torch

from scalechannels.training import datasets
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig
from scalechannels.training.fit import fit
from scalechannels.training.runs import Run

datasets.STROKES_TEST = 50
SIZES = (1.0, 2.0)


def tiny(
    name: str = "fovavg",
    *,
    samples: int = 100,
    dropout: float = 0.15,
    network: dict[str, Any] | None = None,
    **training: Any,
) -> RunConfig:
    return RunConfig(
        DataConfig(samples=samples),
        NetworkConfig(name, low=1, high=2, ratio=2**0.5, dropout=dropout, **(network or {})),  # type: ignore[arg-type]
        dataclasses.replace(TrainingConfig(epochs=2, batch=20), **training),
    )


def trained(config: RunConfig, folder: Path, **options: Any) -> Run:
    (run,) = fit([config], folder, device="cpu", sizes=SIZES, **options)
    return run


def weights(run: Run) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(run.folder / "model.safetensors")


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert torch.equal(value, other[name]), name
