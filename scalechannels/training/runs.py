"""A run's folder: its identity, what is kept of it, and how it goes on after a kill.

    runs/fovavg-mnist-tr2-seed0-795053ea/
      config.toml              the resolved configuration; the folder's name ends with its digest
      checkpoint.safetensors   after each epoch: weights, Adam's moments, history; removed when done
      model.safetensors, config.json, README.md   the trained network, for scalechannels.load(folder)
      result.json              configuration, environment, history, timings, evaluation: the run is done

Every file is moved into place when it is complete, so a kill at any moment leaves the last epoch's state.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from scalechannels.data.storage import atomic_path, locked
from scalechannels.training.config import RunConfig
from scalechannels.version import __version__

CONFIG, CHECKPOINT, RESULT = "config.toml", "checkpoint.safetensors", "result.json"


@dataclass(frozen=True)
class Checkpoint:
    """The state after `epoch` epochs."""

    epoch: int
    tensors: dict[str, Tensor]
    history: list[dict[str, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """A resolved configuration and its folder."""

    config: RunConfig
    folder: Path

    @classmethod
    def open(cls, root: Path | str, config: RunConfig) -> Run:
        """The run of this configuration under `root`, its folder made on first use."""
        run = cls(config, Path(root) / config.name)
        path = run.folder / CONFIG
        if path.exists():
            if RunConfig.from_toml(path) != config:
                raise ValueError(f"{path} describes another run than the folder's name; move the folder away")
            return run
        try:
            with atomic_path(path) as temporary:
                temporary.write_text(config.to_toml(), encoding="utf-8")
        except OSError as error:
            raise OSError(f"cannot write the run's folder {run.folder}: {error}") from error
        return run

    @property
    def done(self) -> bool:
        return (self.folder / RESULT).exists()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Held while training: a second process on the same run is told so at once."""
        with locked(self.folder, timeout=1):
            yield

    def save(self, checkpoint: Checkpoint) -> None:
        from safetensors.torch import save_file

        tensors = {name: value.detach().contiguous().cpu() for name, value in checkpoint.tensors.items()}
        metadata = {"epoch": str(checkpoint.epoch), "history": json.dumps(checkpoint.history)}
        with atomic_path(self.folder / CHECKPOINT) as temporary:
            save_file(tensors, temporary, metadata)

    def checkpoint(self) -> Checkpoint | None:
        """The last epoch's state, or None before the first."""
        from safetensors import SafetensorError, safe_open

        path = self.folder / CHECKPOINT
        if not path.exists():
            return None
        try:
            with safe_open(path, "pt") as file:
                metadata = file.metadata()
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return Checkpoint(int(metadata["epoch"]), tensors, json.loads(metadata["history"]))
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged ({error}); remove it to begin this run anew") from error

    def finish(self, result: dict[str, Any]) -> None:
        """Write the result, then drop the checkpoint."""
        with atomic_path(self.folder / RESULT) as temporary:
            temporary.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        (self.folder / CHECKPOINT).unlink(missing_ok=True)

    def result(self) -> dict[str, Any]:
        path = self.folder / RESULT
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise ValueError(f"{path} is damaged ({error}); remove it to do this run anew") from error


def environment(device: torch.device) -> dict[str, Any]:
    """What a result was obtained with."""
    return {
        "scalechannels": __version__,
        "commit": _commit(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else _processor(),
        "threads": torch.get_num_threads(),
    }


def _commit() -> str | None:
    if "SCALECHANNELS_COMMIT" in os.environ:  # where the sources were copied without their history
        return os.environ["SCALECHANNELS_COMMIT"]
    try:
        source = Path(__file__).parent
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=source, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None


def _processor() -> str:
    return platform.processor() or platform.machine()
