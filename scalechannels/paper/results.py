"""The committed results: one JSON file for each run, found by the run's name.

Law: a result is used only if it is whole and of the configuration that its name promises; anything else is
reported with its file and what is wrong with it. Keys that nothing reads are allowed, such as `remark`.
Limit: the numbers in it are trusted, but an accuracy must match the errors where a result has kept them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from scalechannels.data.sizes import accuracies
from scalechannels.files import json_text, write_text
from scalechannels.paper.recipes import seeded
from scalechannels.training.config import ResolvedRun, RunConfig
from scalechannels.training.errors import unpack_errors

RUNS, PICTURES = "runs", "pictures"
"""The folders within results/: the runs, and what the pictures are drawn from."""
MOST_SEEDS = 6
"""Seeds 0 to 5 are looked for."""
HISTORY = 100
"""Epochs that are kept of a longer history."""
NOT_KEPT = ("per_class", "confusion")
"""What training reports for each test size but no table, figure or claim of the paper reads."""


class ResultError(ValueError):
    """A result that cannot be used: damaged, incomplete, or of another run."""


class NotEnoughRunsError(ValueError):
    """A result was asked for that does not exist."""


@dataclass(frozen=True)
class Result:
    """One run's numbers."""

    config: RunConfig
    values: dict[str, Any]

    @property
    def accuracies(self) -> dict[float, float]:
        """Size to accuracy in per cent, for test sets of one size."""
        return accuracies(self.values["evaluation"]["sizes"])

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

        Sizes without errors are left out: in the oldest results, all of them.
        """
        kept = [entry for entry in self.values["evaluation"]["sizes"] if entry.get("errors") is not None]
        sizes = [tuple(entry["size"]) if isinstance(entry["size"], list) else entry["size"] for entry in kept]
        wrong = [unpack_errors(entry["errors"], int(entry["images"])) for entry in kept]
        return dict(zip(sizes, wrong, strict=True))

    @property
    def seconds(self) -> float:
        """What the run cost: runs trained together share their time."""
        seconds = self.values["seconds"]
        together = seconds.get("runs_together", 1)
        return float((seconds["data"] + seconds["training"]) / together + seconds["evaluation"])


@dataclass(eq=False)
class Results:
    """The results of a folder, each read once. What was asked for and cannot be used is in `faults`."""

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

    def of(self, config: RunConfig) -> list[Result]:
        """The results of a run, one for each seed that is there."""
        return [result for (result,) in self.by_seed([config])]

    def by_seed(
        self, runs: Sequence[RunConfig], seeds: Iterable[int] = range(MOST_SEEDS)
    ) -> list[list[Result]]:
        """The results of all of these runs, for each seed that all of them have."""
        every = ([self.find(seeded(run, seed)) for run in runs] for seed in seeds)
        there = ([result for result in found if result is not None] for found in every)
        return [found for found in there if len(found) == len(runs)]

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
    """The folder of the results: the given one, else ./results, else that of the clone with this code."""
    if given is not None:
        return Path(given).expanduser()
    here, clone = Path("results"), Path(__file__).parents[2] / "results"
    return here if (here / RUNS).is_dir() or not (clone / RUNS).is_dir() else clone


def known_results(given: Path | str | None = None) -> Results:
    """The results to read; an error where the folder has none."""
    folder = results_folder(given)
    if not (folder / RUNS).is_dir():
        state = "holds no results" if folder.exists() else "does not exist"
        where = "" if given is not None else ": run this in a clone of the repository, which has the results"
        raise FileNotFoundError(
            f"'{folder}' {state}{where}; give another --results, or make some with scalechannels reproduce"
        )
    return Results(folder / RUNS)


@cache
def _resolved(config: RunConfig, device: str) -> tuple[RunConfig, str]:
    """Cached: a table asks for hundreds of names, and each takes a millisecond."""
    resolved = config.resolve(device)
    return resolved, resolved.name


def read_result(path: Path, config: RunConfig, tested: Iterable[tuple[float, float]] = ()) -> dict[str, Any]:
    """The result in a file, checked to be whole and that of this resolved configuration."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ResultError(f"{path} is damaged: {error}") from error
    try:
        found = ResolvedRun.from_dict(values["config"])
        evaluation, history = values["evaluation"], values["history"]
        entries = {_key(entry["size"]): entry for entry in evaluation["sizes"]}
        accuracies = [float(entry["accuracy"]) for entry in entries.values()]
        epochs = int(history[-1]["epoch"])
        for part in ("data", "training", "evaluation"):
            float(values["seconds"][part])
        known = {"name": str(values["name"]), "split": evaluation["split"], **values["environment"]}
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ResultError(f"{path} is damaged: {type(error).__name__}: {error}") from error
    if found != config or known["name"] != config.name:
        raise ResultError(f"{path} holds the run {found.name}, but its name promises {config.name}")
    if known["split"] != "test":
        raise ResultError(
            f"{path} was evaluated on the {known['split']} split; results are of the test split"
        )
    if epochs != config.training.epochs:
        raise ResultError(f"{path} ends after {epochs} of {config.training.epochs} epochs")
    untested = [size for size in (*config.data.about.test_sizes, *tested) if _key(size) not in entries]
    if untested:
        raise ResultError(f"{path} lacks the test sizes {untested}")
    if not all(0 <= accuracy <= 100 and math.isfinite(accuracy) for accuracy in accuracies):
        raise ResultError(f"{path} has accuracies that are no percentages: {accuracies}")
    for entry in evaluation["sizes"]:
        if entry.get("errors") is not None:
            _check_errors(path, entry)
    return values


def _check_errors(path: Path, entry: dict[str, Any]) -> None:
    """The errors of a test set must be readable, and as many as its accuracy says."""
    try:
        images = int(entry["images"])
        wrong = int(unpack_errors(entry["errors"], images).sum())
    except (KeyError, TypeError, ValueError) as error:
        raise ResultError(f"{path} is damaged at size {entry['size']}: {error}") from error
    if abs(images - wrong - images * float(entry["accuracy"]) / 100) > 1e-3:
        raise ResultError(
            f"{path} is damaged at size {entry['size']}: {wrong} of {images} images are kept as wrong, "
            f"which is not an accuracy of {entry['accuracy']} %"
        )


def store_result(path: Path, values: dict[str, Any]) -> None:
    """Write a result without what is `NOT_KEPT`; of thousands of epochs a hundred stay, with the last one."""
    write_text(path, result_text(values))


def result_text(values: dict[str, Any]) -> str:
    """A result as it is committed: one line for each section, for the history and for each test size."""
    history, evaluation = values["history"], values["evaluation"]
    step = -(-len(history) // HISTORY)
    sizes = [
        {key: value for key, value in entry.items() if key not in NOT_KEPT} for entry in evaluation["sizes"]
    ]
    kept = {**values, "history": history[::-1][::step][::-1], "evaluation": {**evaluation, "sizes": sizes}}
    return json_text(kept, whole=("history",)) + "\n"


def _key(size: Any) -> tuple[float, ...]:
    return tuple(round(float(end), 6) for end in (size if isinstance(size, (list, tuple)) else (size,)))
