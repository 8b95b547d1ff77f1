"""The committed results: one JSON file for each run, as training wrote it, found by the run's name.

Law: a result is used only if it is whole, and of the configuration that its name promises; anything else is
told with its file and what is wrong with it. Limit: the figures in it are believed, but an accuracy must be
that of the errors, where a result has kept which images these were.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalechannels.data.sizes import CIFAR_SIZES, MNIST_SIZES
from scalechannels.files import atomic_path
from scalechannels.paper.recipes import Curve, seeded
from scalechannels.training.config import RunConfig

if TYPE_CHECKING:
    import numpy as np

RUNS, PICTURES = "runs", "pictures"
"""The folders within results/: of the runs, and of what pictures are drawn from."""
MOST_SEEDS = 5
"""Seeds that are looked for: 0 to 4."""
HISTORY = 100
"""Epochs that are kept of a longer history."""


class ResultError(ValueError):
    """A result that cannot be used: damaged, incomplete, or of another run."""


class NotEnoughRunsError(ValueError):
    """Something asked for a result that is not there."""


@dataclass(frozen=True)
class Result:
    """One run's figures."""

    config: RunConfig
    values: dict[str, Any]

    @property
    def accuracies(self) -> dict[float, float]:
        """Size to accuracy in per cent, for test sets of one size."""
        return {
            entry["size"]: entry["accuracy"]
            for entry in self.values["evaluation"]["sizes"]
            if not isinstance(entry["size"], list)
        }

    def accuracy_over(self, low: float, high: float) -> float | None:
        """The accuracy on the test set with all sizes of a range; None where it was not tested."""
        for entry in self.values["evaluation"]["sizes"]:
            if entry["size"] == [low, high]:
                return float(entry["accuracy"])
        return None

    @property
    def selection(self) -> dict[float, list[float]]:
        """Size to each channel's share in the winning class; empty for a network without channels."""
        return {
            entry["size"]: entry["selection"]
            for entry in self.values["evaluation"]["sizes"]
            if entry["selection"] is not None and not isinstance(entry["size"], list)
        }

    @property
    def errors(self) -> dict[float | tuple[float, float], np.ndarray]:
        """Size, or range of sizes, to which images were classified wrongly, bool (images,).

        Sizes whose errors were not kept are left out: all of them in results of before they were.
        """
        from scalechannels.training.errors import unpack_errors  # numpy, for those alone who need it

        kept = [entry for entry in self.values["evaluation"]["sizes"] if entry.get("errors") is not None]
        sizes = [tuple(entry["size"]) if isinstance(entry["size"], list) else entry["size"] for entry in kept]
        wrong = [unpack_errors(entry["errors"], int(entry["images"])) for entry in kept]
        return dict(zip(sizes, wrong, strict=True))

    @property
    def seconds(self) -> float:
        """What the run cost: runs that were trained together share their time."""
        seconds = self.values["seconds"]
        together = seconds.get("runs_together", 1)
        return float((seconds["data"] + seconds["training"]) / together + seconds["evaluation"])


@dataclass(eq=False)
class Results:
    """The results of a folder, each read once. Those that cannot be used are in `faults` when asked for."""

    folder: Path
    faults: dict[str, str] = field(default_factory=dict)
    _known: dict[str, Result | None] = field(default_factory=dict)

    def find(self, config: RunConfig, tested: Iterable[tuple[float, float]] = ()) -> Result | None:
        """The result of a run, trained on a GPU or else on a CPU; None where there is none to use."""
        for device in ("cuda", "cpu"):
            resolved, name = _resolved(config, device)
            if name not in self._known:
                self._known[name] = self._load(resolved, name, tuple(tested))
            found = self._known[name]
            if found is not None:
                return found
        return None

    def of(self, curve: Curve, point: int = 0) -> list[Result]:
        """The results of a curve, one for each seed that is there."""
        runs = (seeded(curve.configs[point], seed) for seed in range(MOST_SEEDS))
        return [result for result in map(self.find, runs) if result is not None]

    def _load(self, config: RunConfig, name: str, tested: tuple[tuple[float, float], ...]) -> Result | None:
        path = self.folder / f"{name}.json"
        if not path.exists():
            return None
        try:
            return Result(config, read_result(path, config, tested))
        except ResultError as error:
            self.faults[name] = str(error)
            return None


def results_folder(given: Path | str | None = None) -> Path:
    """The folder of the results: the given one, else ./results, else that of the clone this code lies in."""
    if given is not None:
        return Path(given).expanduser()
    here, clone = Path("results"), Path(__file__).parents[2] / "results"
    return here if (here / RUNS).is_dir() or not (clone / RUNS).is_dir() else clone


def known_results(given: Path | str | None = None) -> Results:
    """The results to read; an error where there is no such folder."""
    folder = results_folder(given)
    if not (folder / RUNS).is_dir():
        raise FileNotFoundError(
            f"{folder} holds no results: give --results, or make some with scalechannels reproduce"
        )
    return Results(folder / RUNS)


@cache
def _resolved(config: RunConfig, device: str) -> tuple[RunConfig, str]:
    """Kept, since a table asks for hundreds of names and each takes a millisecond."""
    resolved = config.resolve(device)
    return resolved, resolved.name


def read_result(path: Path, config: RunConfig, tested: Iterable[tuple[float, float]] = ()) -> dict[str, Any]:
    """The result in a file, checked to be whole and that of this resolved configuration."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ResultError(f"{path} is damaged: {error}") from error
    try:
        found = RunConfig.from_dict(values["config"])
        evaluation, history = values["evaluation"], values["history"]
        entries = {_key(entry["size"]): entry for entry in evaluation["sizes"]}
        figures = [float(entry["accuracy"]) for entry in entries.values()]
        epochs = int(history[-1]["epoch"])
        for part in ("data", "training", "evaluation"):
            float(values["seconds"][part])
        known = {"name": str(values["name"]), "split": evaluation["split"], **values["environment"]}
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ResultError(f"{path} is damaged: {type(error).__name__}: {error}") from error
    if found != config or known["name"] != config.name:
        raise ResultError(f"{path} holds the run {found.name}, not {config.name}, which its name promises")
    if known["split"] != "test":
        raise ResultError(
            f"{path} was evaluated on the {known['split']} split; results are of the test split"
        )
    if epochs != config.training.epochs:
        raise ResultError(f"{path} ends after {epochs} of {config.training.epochs} epochs")
    sizes = CIFAR_SIZES if config.data.name == "cifar10" else MNIST_SIZES
    untested = [size for size in (*sizes, *tested) if _key(size) not in entries]
    if untested:
        raise ResultError(f"{path} lacks the test sizes {untested}")
    if not all(0 <= figure <= 100 and math.isfinite(figure) for figure in figures):
        raise ResultError(f"{path} has accuracies that are no percentages: {figures}")
    for entry in evaluation["sizes"]:
        if entry.get("errors") is not None:
            _check_errors(path, entry)
    return values


def _check_errors(path: Path, entry: dict[str, Any]) -> None:
    """That the errors of a test set can be read and are as many as its accuracy says."""
    from scalechannels.training.errors import unpack_errors

    try:
        images = int(entry["images"])
        wrong = int(unpack_errors(entry["errors"], images).sum())
    except (KeyError, TypeError, ValueError) as error:
        raise ResultError(f"{path} is damaged at size {entry['size']}: {error}") from error
    if abs(images - wrong - images * float(entry["accuracy"]) / 100) > 1e-3:
        raise ResultError(
            f"{path} is damaged at size {entry['size']}: {wrong} of {images} images are kept as wrong, "
            f"which an accuracy of {entry['accuracy']} % is not"
        )


def store_result(path: Path, values: dict[str, Any]) -> None:
    """Write a result; of a history of thousands of epochs a hundred are kept, the last one among them."""
    history = values["history"]
    step = -(-len(history) // HISTORY)
    kept = {**values, "history": history[::-1][::step][::-1]}
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def _key(size: Any) -> tuple[float, ...]:
    return tuple(round(float(end), 6) for end in (size if isinstance(size, (list, tuple)) else (size,)))
