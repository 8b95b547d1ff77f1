"""Where the numbers of the documents come from: the committed files below a root.

An expression in tests/docs/numbers may name every method here and in number_rows, by its name alone. Of an
accuracy such as {table("FovLSE+")["[1,4]"]:.2f}, the form :.2f± has the standard deviation over seeds too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from helpers.measured_runs import Runs, Value

from scalechannels.paper import recipes
from scalechannels.paper.experiments import experiment
from scalechannels.paper.results import MOST_SEEDS, RUNS, Results
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig


class Coarse(NamedTuple):
    """Fewer channels at inference."""

    accuracy: float
    lost: Value
    """With its 95 % interval for the standard deviation."""
    time_here: float
    """Of that of all channels, over these sizes."""
    time: float
    """The same, over all sizes."""


class Sources:
    """The files of this clone, or of a copy."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._results = Results(root / "results" / RUNS)
        self._read: dict[str, Any] = {}

    def _file(self, name: str) -> Any:
        """Read once: the values of a JSON file, or of each line."""
        if name not in self._read:
            text = (self._root / name).read_text(encoding="utf-8")
            lines = name.endswith(".jsonl")
            self._read[name] = [*map(json.loads, text.splitlines())] if lines else json.loads(text)
        return self._read[name]

    def ran(self, *configs: RunConfig, seeds: int = MOST_SEEDS) -> Runs:
        """Runs in results/runs, of all seeds that all of these have."""
        found = [[self._results.find(recipes.seeded(one, seed)) for one in configs] for seed in range(seeds)]
        return Runs([result.values for one in found if None not in one for result in one if result])

    def table(self, title: str, train: str | None = None) -> Runs:
        """A network of table 1 or of ours below it; without a training set, its mean over single sizes."""
        panels = (*experiment("table1").panels, *experiment("beyond").panels)
        (curves,) = (panel.curves for panel in panels if panel.title == title)
        configs = {curve.label: curve.configs[0] for curve in curves}
        single = [one for name, one in configs.items() if name in recipes.SINGLE]
        return self.ran(*([configs[train]] if train else single or configs.values()))

    def kept(self, file: str, remark: str = "", split: str = "validation", **options: Any) -> Runs:
        """Runs in results/FILE.jsonl whose remark begins so, and that have these options.

        Of a run that was trained again, the last one counts.
        """
        found = {
            run["name"]: run
            for run in self._file(f"results/{file}.jsonl")
            if run["remark"].startswith(remark)
            and run["evaluation"]["split"] == split
            and all(_option(run["config"], name) == value for name, value in options.items())
        }
        return Runs(list(found.values()))

    def measured(self, file: str) -> dict[str, Any]:
        """A file of benchmarks/results."""
        return self._file(f"benchmarks/results/{file}.json")

    def candidate(self, name: str) -> dict[str, Any]:
        """A line of benchmarks.detection_candidates, of seed 0."""
        lines = self._file("benchmarks/results/detection_candidates.jsonl")
        (found,) = (one for one in lines if (one["candidate"], one["seed"]) == (name, 0))
        return dict(found)

    def placed_line(
        self, name: str, seed: int | str, file: str = "anywhere_trials", train: str = "lower"
    ) -> dict[str, Any]:
        """A line of benchmarks.anywhere_trials, trained on a third."""
        wanted = (name, f"{train} third", seed)
        lines = self._file(f"benchmarks/results/{file}.jsonl")
        (found,) = (one for one in lines if (one["trial"], one["trained_on"], one["seed"]) == wanted)
        return dict(found)

    def placed_trial(
        self,
        name: str,
        seed: int | str,
        file: str = "anywhere_trials",
        tested: str = "own",
        train: str = "lower",
    ) -> str:
        """Its accuracies as cells of a table."""
        values = self.placed_line(name, seed, file, train)["tested"][tested]["accuracy"]
        return " | ".join(f"{value:.1f}" for value in values)

    def tested_anywhere(self, run: int) -> list[float]:
        """The accuracies of a run that was tested before the recipe was settled, by size."""
        return list(self._file("benchmarks/results/anywhere_tested.jsonl")[run]["accuracy"])

    def cost(self, mode: str, device: str = "cpu", **case: int) -> dict[str, float]:
        """A case of benchmarks.cost: ms and MB."""
        file = self.measured(f"cost_{device}")
        entries = [one for part in ("channels", "image", "batch") for one in file[part]]
        wanted = {"mode": mode, "channels": 17, "side": 112, "batch": 16} | case
        found = [one for one in entries if all(one[name] == value for name, value in wanted.items())]
        if not found:
            raise ValueError(f"no case {wanted}")
        return {"ms": 1000 * found[0]["seconds"], "MB": found[0]["megabytes"]}

    def coarse(self, way: str, over: str = "[1/2,4]") -> Coarse:
        """What fewer channels at inference lost and took, see docs/notebook.md."""
        ranges = self.measured("coarse_to_fine_cpu")["ranges"]
        found = ranges[over][way]
        lost = Value(found["lost_points"])
        lost.std = found["interval"][1] - found["lost_points"]
        return Coarse(
            found["accuracy"], lost, found["seconds_ratio"], ranges["[1/2,8]"][way]["seconds_ratio"]
        )

    def own(self, method: str, kind: str, images: int) -> dict[str, float]:
        """Accuracies of benchmarks/own_images.py under each condition, and their mean; means over seeds.

        "std" is the standard deviation of the seeds' means.
        """
        found = [
            one["accuracy"]
            for one in self._file("benchmarks/results/own_images.jsonl")
            if (one["method"], one["kind"], one["images"]) == (method, kind, images)
        ]
        means = {name: fmean(one[name] for one in found) for name in found[0]}
        return {**means, "mean": fmean(means.values()), "std": stdev(fmean(one.values()) for one in found)}

    def unbalanced(self, folder: str, method: str, weights: str) -> float:
        """Balanced accuracy of benchmarks/unbalanced.py, the mean over sizes and seeds."""
        return fmean(
            entry["balanced"]
            for one in self._file("benchmarks/results/unbalanced.jsonl")
            if (one["folder"], one["method"], one["weights"]) == (folder, method, weights)
            for entry in one["sizes"].values()
        )

    def kept_run(self, kind: str) -> dict[str, Any]:
        """A run of benchmarks/kept_network.py."""
        (found,) = (one for one in self.measured("kept_network")["runs"] if one["kind"] == kind)
        return dict(found)

    def kept_network(self, kind: str, network: str) -> str:
        """What a network of such a run knows at each size, as cells of a table."""
        return " | ".join(f"{value:.1f}" for value in self.kept_run(kind)["accuracy"][network]["sizes"])

    def best_of_others(self, kind: str) -> list[float]:
        """The accuracy of the best candidate at each size."""
        found = self.kept_run(kind)["accuracy"]
        return [
            max(one) for one in zip(*(found[name]["sizes"] for name in found if name != "kept"), strict=True)
        ]

    def lost_off_centre(self, pixels: int, told: bool = False) -> float:
        """What the kept network loses in frames, on new images or as its report told."""
        run = self.kept_run("fashion-frames")
        if told:
            return float(run["told"]["0"] - run["told"][str(pixels)])
        own = run["accuracy"]["kept"]
        return float(own["sizes"][1] - own["offsets"][{2: 0, 4: 1}[pixels]])

    def patience(self, method: str, patience: str, what: str = "accuracy") -> float:
        """Accuracy of benchmarks/patience.py, the mean over sizes and seeds, or the epochs that it took."""
        found = [
            one
            for one in self._file("benchmarks/results/patience.jsonl")
            if (one["method"], one["patience"]) == (method, patience)
        ]
        return fmean(fmean(one["accuracy"].values()) if what == "accuracy" else one[what] for one in found)


def _option(config: Mapping[str, Any], name: str) -> Any:
    """An option of a configuration, whichever section has it; `training_seed` where two have one."""
    if name == "seed":
        return config["training"]["seed"]
    if name == "network":
        return config["network"]["name"]
    if name == "data":
        return config["data"]["name"]
    if name == "size":
        return config["data"]["sizes"][0]
    sections = {"data": DataConfig, "network": NetworkConfig, "training": TrainingConfig}
    for section, cls in sections.items():
        if name in {one.name for one in fields(cls)}:
            return config[section].get(name)
    return config["training"].get(name)  # an option that is gone
