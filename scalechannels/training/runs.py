"""A run's folder: its identity, what is kept of it, and how it resumes after a kill.

    runs/fovavg-mnist-tr2-seed0-561110c6/
      config.toml              the resolved configuration; the folder's name ends with its digest
      checkpoint.safetensors   after each epoch: weights, Adam's moments, history; removed when done
      previous.safetensors     the same one epoch earlier, for runs that are trained together
      model.safetensors, config.json, README.md   the trained network, for scalechannels.load(folder)
      result.json              configuration, environment, history, timings, evaluation: the run is done

Every file is moved into place when it is complete, so a kill at any moment leaves the last epoch's state.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from scalechannels import __version__
from scalechannels.files import atomic_path, locked, write_tensors, write_text
from scalechannels.training.config import ResolvedRun
from scalechannels.training.datasets import Size

CONFIG, RESULT = "config.toml", "result.json"
REMOVE = "remove it to resume from what is left"
CHECKPOINT, PREVIOUS = "checkpoint.safetensors", "previous.safetensors"


@dataclass(frozen=True)
class Checkpoint:
    """The state after `epoch` epochs."""

    epoch: int
    tensors: dict[str, Tensor]
    history: list[dict[str, float]] = field(default_factory=list)
    path: Path | None = None
    """Where it was read from."""

    def require_shapes(self, expected: Mapping[str, Sequence[int]]) -> None:
        """An error that names the file, unless it holds tensors of these names and shapes."""
        found = {name: tuple(value.shape) for name, value in self.tensors.items()}
        wanted = {name: tuple(shape) for name, shape in expected.items()}
        if found != wanted:
            names = sorted({name for name, _ in found.items() ^ wanted.items()})
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise ValueError(
                f"{self.path} does not fit its run, or was saved by runs that were trained together: "
                f"{', '.join(names[:3])}{more} differ; {REMOVE}"
            )


@dataclass(frozen=True)
class Run:
    """A resolved configuration and its folder."""

    config: ResolvedRun
    folder: Path

    @classmethod
    def open(cls, root: Path | str, config: ResolvedRun) -> Run:
        """The run of this configuration under `root`, its folder made on first use."""
        run = cls(config, Path(root) / config.name)
        path = run.folder / CONFIG
        if not path.exists():
            # Whoever holds the lock removes unfinished files, so nothing is written without it.
            with locked(run.folder, timeout=2):
                if not path.exists():
                    write_text(path, config.to_toml())
        if ResolvedRun.from_toml(path) != config:
            raise ValueError(
                f"{path} describes a different run than its folder's name says; move the folder away"
            )
        return run

    @property
    def done(self) -> bool:
        return (self.folder / RESULT).exists()

    def exclusive(self) -> AbstractContextManager[None]:
        """Held while training: a second process on the same run fails at once."""
        return locked(self.folder, timeout=1)

    def save(self, checkpoint: Checkpoint) -> None:
        """Keep this state and the one before it: runs trained together may be killed between two saves."""
        path = self.folder / CHECKPOINT
        tensors = {name: value.detach().contiguous().cpu() for name, value in checkpoint.tensors.items()}
        metadata = {
            "run": self.config.name,
            "epoch": str(checkpoint.epoch),
            "history": json.dumps(checkpoint.history),
        }
        with atomic_path(path) as temporary:
            write_tensors(temporary, tensors, metadata)
            if path.exists():
                os.replace(path, self.folder / PREVIOUS)

    def checkpoints(self) -> list[Checkpoint]:
        """What can be resumed from: the last epoch's state, then the one before; empty before the first."""
        paths = (self.folder / CHECKPOINT, self.folder / PREVIOUS)
        return [self._read(path) for path in paths if path.exists()]

    def _read(self, path: Path) -> Checkpoint:
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, "pt") as file:
                metadata = file.metadata()
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            owner = metadata["run"]
            history = json.loads(metadata["history"])
            checkpoint = Checkpoint(int(metadata["epoch"]), tensors, history, path)
            lasted = [float(entry["seconds"]) for entry in history]
        except (SafetensorError, OSError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"{path} is damaged ({error}); {REMOVE}") from error
        if owner != self.config.name:
            raise ValueError(f"{path} belongs to the run {owner}, not to {self.config.name}; move it away")
        epoch, epochs = checkpoint.epoch, self.config.training.epochs
        if not 1 <= epoch <= epochs or len(lasted) != epoch:
            raise ValueError(
                f"{path} does not fit its run of {epochs} epochs: it is the state after epoch {epoch}, with "
                f"the losses of {len(lasted)}; {REMOVE}"
            )
        return checkpoint

    def finish(self, result: dict[str, Any]) -> None:
        """Write the result, then drop the checkpoints."""
        write_text(self.folder / RESULT, json.dumps(result, indent=1) + "\n")
        for name in (CHECKPOINT, PREVIOUS):
            (self.folder / name).unlink(missing_ok=True)

    def result(self) -> dict[str, Any]:
        path = self.folder / RESULT
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise ValueError(f"{path} is damaged ({error}); remove it to do this run again") from error

    @property
    def tested_on(self) -> tuple[str, list[Size]]:
        """The split and the sizes of its result."""
        try:
            evaluation: dict[str, Any] = self.result()["evaluation"]
            sizes = [entry["size"] for entry in evaluation["sizes"]]
            return evaluation["split"], [tuple(size) if isinstance(size, list) else size for size in sizes]
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"'{self.folder / RESULT}' is not a run's result ({error} is missing); delete it to repeat "
                "the run"
            ) from error


def environment(device: torch.device) -> dict[str, Any]:
    """What a result was obtained with."""
    processor = platform.processor() or platform.machine()
    return {
        "scalechannels": __version__,
        "commit": _commit(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else processor,
        "threads": torch.get_num_threads(),
    }


def _commit() -> str | None:
    if "SCALECHANNELS_COMMIT" in os.environ:  # where the sources were copied without their history
        return os.environ["SCALECHANNELS_COMMIT"]
    source = Path(__file__)
    # Asked about this very file: an installed copy may lie inside another project's repository.
    known = _git(source.parent, "ls-files", "--error-unmatch", source.name)
    return _git(source.parent, "describe", "--always", "--dirty") if known else None


def _git(folder: Path, *command: str) -> str | None:
    try:
        found = subprocess.run(["git", *command], cwd=folder, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None
