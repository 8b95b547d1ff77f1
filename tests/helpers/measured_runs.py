"""Runs as results keep them, and what documents tell about them: accuracies, times, paired differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median, stdev
from typing import Any

import numpy as np

from scalechannels.data.sizes import RANGES, accuracies, inside, mean_inside
from scalechannels.paper.paired import paired_difference
from scalechannels.training.errors import unpack_errors

SIZES = {"1/2": 0.5, "1/√2": 0.5**0.5, "√2": 2**0.5}
"""As documents write them."""


class Value(float):
    """A mean, and its standard deviation where there is one."""

    std: float | None = None

    def __format__(self, form: str) -> str:
        if not form.endswith("±"):
            return super().__format__(form)
        form = form[:-1]
        return super().__format__(form) + ("" if self.std is None else f" ± {self.std:{form}}")


def mean(values: Iterable[float]) -> Value:
    found = list(values)
    value = Value(fmean(found))
    value.std = stdev(found) if len(found) > 1 else None
    return value


class Runs:
    """Runs of one kind. An accuracy is the mean over seeds of the mean over the training sizes."""

    def __init__(self, runs: Sequence[Mapping[str, Any]]) -> None:
        if not runs:
            raise ValueError("there are no such runs")
        self.runs = runs

    def per_run(self, over: str | float) -> list[float]:
        ends = RANGES.get(over) if isinstance(over, str) else None
        if ends is None:
            size = SIZES.get(over, over) if isinstance(over, str) else over
            ends = (float(size), float(size))
        tested = [accuracies(run["evaluation"]["sizes"]) for run in self.runs]
        return [mean_inside(one, ends[0] * (1 - 1e-6), ends[1] * (1 + 1e-6)) for one in tested]

    def __getitem__(self, over: str | float) -> Value:
        """Over a range such as "[1,4]", or at one size."""
        by_seed: dict[int, list[float]] = {}
        for run, accuracy in zip(self.runs, self.per_run(over), strict=True):
            by_seed.setdefault(run["config"]["training"]["seed"], []).append(accuracy)
        return mean(fmean(values) for values in by_seed.values())

    def everywhere(self) -> float:
        """Over all test sizes."""
        return fmean(fmean(accuracies(run["evaluation"]["sizes"]).values()) for run in self.runs)

    def row(self, *over: str | float, form: str = ".2f±") -> str:
        """The cells of a table."""
        return " | ".join(format(self[one], form) for one in over)

    def __len__(self) -> int:
        return len(self.runs)

    def on(self, *sizes: float, seeds: Sequence[int] = ()) -> Runs:
        """Those trained on these sizes, with these seeds."""
        found = [run for run in self.runs if not sizes or run["config"]["data"]["sizes"][0] in sizes]
        return Runs([run for run in found if not seeds or run["config"]["training"]["seed"] in seeds])

    def over_sizes(self, over: str | float) -> float:
        """Where some sizes have more seeds: the mean over sizes of the mean over runs."""
        sizes = sorted({run["config"]["data"]["sizes"][0] for run in self.runs})
        return fmean(fmean(self.on(size).per_run(over)) for size in sizes)

    def right(self, over: str) -> np.ndarray:
        """Which images were right: (seeds, training sizes · test sizes, images)."""
        by_seed: dict[int, list[np.ndarray]] = {}
        for run in sorted(self.runs, key=lambda run: run["name"]):
            entries = run["evaluation"]["sizes"]
            wanted = inside([one["size"] for one in entries], *RANGES[over])
            right = [~unpack_errors(one["errors"], one["images"]) for one in entries if one["size"] in wanted]
            by_seed.setdefault(run["config"]["training"]["seed"], []).extend(right)
        return np.array(list(by_seed.values()))

    @property
    def parameters(self) -> int:
        (count,) = {run["parameters"] for run in self.runs}
        return int(count)

    @property
    def seconds(self) -> dict[str, float]:
        """Of the one run."""
        (run,) = self.runs
        return run["seconds"]

    @property
    def together(self) -> int:
        """How many runs the first one was trained with."""
        return int(self.runs[0]["seconds"]["runs_together"])

    @property
    def steps(self) -> float:
        """Seconds of the first run's epochs, without what the first of them takes to compile; its share."""
        run = self.runs[0]
        epochs = [one["seconds"] for one in run["history"] if one["epoch"] > 1]
        return run["config"]["training"]["epochs"] * median(epochs) / self.together

    @property
    def compiling(self) -> list[float]:
        """How much longer the first epoch of each run takes than the others; runs together share it."""
        times = [[one["seconds"] for one in run["history"]] for run in self.runs]
        return [one[0] - median(one[1:]) for one in times]

    @property
    def share(self) -> float:
        """Seconds of all runs: data and training are shared by those trained together."""
        every = [run["seconds"] for run in self.runs]
        shares = [(one["data"] + one["training"]) / one["runs_together"] for one in every]
        return sum(shares) + sum(one["evaluation"] for one in every)


def paired(a: Runs, b: Runs, over: str) -> str:
    """How much better the one is than the other: +0.13 [+0.08, +0.18]."""
    return str(paired_difference(a.right(over), b.right(over)))
