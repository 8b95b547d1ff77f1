"""Where the numbers of the documents come from: what an expression in tests/docs/numbers may name.

Everything is read from committed files below a root, or computed by the library. Of an accuracy such as
{table("FovLSE+")["[1,4]"]:.2f}, the form :.2f± has the standard deviation over seeds too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any, NamedTuple

import numpy as np

from scalechannels import Detector, load
from scalechannels.backbones.paper import ConvBackbone, mnist_backbone
from scalechannels.backbones.sized import multiplications, sized_backbone
from scalechannels.data.pictures import BACKGROUND
from scalechannels.data.scenes import scene
from scalechannels.data.sizes import MNIST_SIZES, RANGES, accuracies, inside, mean_inside
from scalechannels.paper import recipes
from scalechannels.paper.comparisons import PAIRS, compare
from scalechannels.paper.experiments import experiment
from scalechannels.paper.paired import paired_difference
from scalechannels.paper.published import TABLE1
from scalechannels.paper.results import MOST_SEEDS, RUNS, Results
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig
from scalechannels.training.errors import unpack_errors

SIZES = {"1/2": 0.5, "1/√2": 0.5**0.5, "√2": 2**0.5}
"""As documents write them."""


BEYOND = {
    "RECIPE": "FovLSE, the paper's recipe.",
    "AVERAGED": "FovLSE, smoothed targets, averaged weights.",
    "CROPPED": "FovLSE, smoothed targets, averaged weights, cropped images.",
    "ANTIALIASED": "FovLSE+: smoothed targets",
    "WIDE": "FovLSE+, wide, five views in testing.",
    "NOT_SMOOTHED": "FovLSE+, wide, five views in testing, without smoothed targets.",
    "TEN_SECONDS": "FovLSE in ten seconds, batches of 64, 6 epochs",
}
"""Runs of results/beyond.jsonl, by their remarks."""


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


class Coarse(NamedTuple):
    """Fewer channels at inference."""

    accuracy: float
    lost: Value
    """With its 95 % interval for the standard deviation."""
    time_here: float
    """Of that of all channels, over these sizes."""
    time: float
    """The same, over all sizes."""


def names(root: Path) -> dict[str, Any]:
    """All that expressions may name, with the files of this clone or of a copy."""
    results = Results(root / "results" / RUNS)

    def ran(*configs: RunConfig, seeds: int = MOST_SEEDS) -> Runs:
        """Runs in results/runs, of all seeds that all of these have."""
        found = [[results.find(recipes.seeded(one, seed)) for one in configs] for seed in range(seeds)]
        return Runs([result.values for one in found if None not in one for result in one if result])

    def table(title: str, train: str | None = None) -> Runs:
        """A network of table 1 or of ours below it; without a training set, its mean over single sizes."""
        panels = (*experiment("table1").panels, *experiment("beyond").panels)
        (curves,) = (panel.curves for panel in panels if panel.title == title)
        configs = {curve.label: curve.configs[0] for curve in curves}
        single = [one for name, one in configs.items() if name in recipes.SINGLE]
        return ran(*([configs[train]] if train else single or configs.values()))

    @cache
    def lines(file: str) -> list[dict[str, Any]]:
        text = (root / "results" / f"{file}.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def kept(file: str, remark: str = "", split: str = "validation", **options: Any) -> Runs:
        """Runs in results/FILE.jsonl whose remark begins so, and that have these options.

        Of a run that was trained again, the last one counts.
        """
        found = {
            run["name"]: run
            for run in lines(file)
            if run["remark"].startswith(remark)
            and run["evaluation"]["split"] == split
            and all(_option(run["config"], name) == value for name, value in options.items())
        }
        return Runs(list(found.values()))

    def alone() -> Runs:
        """The run of FovAvg on size 2 that was trained alone."""
        return kept("earlier", split="test", network="fovavg", size=2, seed=0)

    def few_row(recipe: Callable[..., RunConfig], what: str) -> str:
        """Accuracies on [1,4] of networks trained on few samples."""
        return cells(
            *(
                mean(dict(_ranges(run))[1, 4] for run in ran(recipe(what, samples=count)).runs)
                for count in recipes.SAMPLES
            ),
            form=".2f±",
        )

    def batch(size: int, *trained: float) -> str:
        """The cells of the table of batch sizes, for these training sizes; its seed is 1."""
        runs = (kept("batch_size", batch=size, epochs=20, rate=3e-3, size=one, seed=1) for one in trained)
        return " | ".join(one.row("[1,4]", "[1/2,8]") for one in runs)

    def batch_row(**options: Any) -> str:
        """Of the table of batch sizes in the notebook."""
        runs = kept("batch_size", **options)
        sizes = ", ".join(f"{runs.on(size)['1/2']:.1f}" for size in (1, 2, 4))
        of = runs.runs[0]["config"]["training"]
        steps = of["epochs"] * (50_000 // of["batch"])
        return (
            f"{steps:,} | {sizes} | {format(runs['1/2'], '.1f±')} | {runs.row('[1,4]', '[4,8]', '[1/2,8]')}"
        )

    def cifar_row(runs: Runs) -> str:
        """With standard deviations at both ends and in the middle."""
        forms = {"1/2": ".1f±", "1/√2": ".1f", 1: ".1f±", "√2": ".1f", 2: ".1f±"}
        return " | ".join(format(runs[size], form) for size, form in forms.items())

    def chosen_row(file: str, remark: str, network: str | None = None, **options: Any) -> str:
        """One run on the validation images of CIFAR-10."""
        named = options if network is None else {"network": network, **options}
        runs = kept(file, remark, data="cifar10", **named)
        if len(runs) != 1:
            raise ValueError(f"{len(runs)} runs, not one: {[run['name'] for run in runs.runs]}")
        return runs.row("1/2", "1/√2", 1, "√2", 2, form=".1f")

    def residual_row(remark: str) -> str:
        (run,) = kept("beyond", remark, data="cifar10", backbone="residual").runs
        epochs = run["config"]["training"]["epochs"]
        return f"{run['parameters'] / 1e6:.2f} million | {epochs} | {chosen_row('beyond', remark)}"

    def coarse_row(way: str, lost: str = "") -> str:
        found = {over: coarse(way, over) for over in RANGES}
        texts = {over: f"{one.accuracy:.2f}" for over, one in found.items()}
        texts["[1/2,4]"] += f" | {lost or format(found['[1/2,4]'].lost, '.3f±')}"
        return " | ".join(texts[over] for over in RANGES)

    def more(**options: Any) -> Runs:
        """Runs in results/more_seeds."""
        paths = sorted((root / "results" / "more_seeds").glob("*.json"))
        found = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
        return Runs([r for r in found if all(_option(r["config"], k) == v for k, v in options.items())])

    @cache
    def measured(file: str) -> dict[str, Any]:
        """A file of benchmarks/results."""
        path = root / "benchmarks" / "results" / f"{file}.json"
        return json.loads(path.read_text(encoding="utf-8"))

    def cost(mode: str, device: str = "cpu", **case: int) -> dict[str, float]:
        """A case of benchmarks.cost: ms and MB."""
        file = measured(f"cost_{device}")
        entries = [one for part in ("channels", "image", "batch") for one in file[part]]
        wanted = {"mode": mode, "channels": 17, "side": 112, "batch": 16} | case
        found = [one for one in entries if all(one[name] == value for name, value in wanted.items())]
        if not found:
            raise ValueError(f"no case {wanted}")
        return {"ms": 1000 * found[0]["seconds"], "MB": found[0]["megabytes"]}

    def detector(way: str) -> str:
        """A row of the table of benchmarks.detection."""
        ways = [measured("detection_cpu")[background] for background in ("plain", "noisy")]
        precision = [one[way]["average_precision"] for one in ways]
        recall = [one[way]["at_probability_one_half"]["recall"] for one in ways]
        spent, whole = (sum(one[name]["seconds_per_scene"] for one in ways) for name in (way, "everywhere"))
        return " | ".join(f"{value:.3f}" for value in (*precision, *recall)) + f" | {spent / whole:.2f}"

    def coarse(way: str, over: str = "[1/2,4]") -> Coarse:
        """What fewer channels at inference lost and took, see docs/notebook.md."""
        ranges = measured("coarse_to_fine_cpu")["ranges"]
        found = ranges[over][way]
        lost = Value(found["lost_points"])
        lost.std = found["interval"][1] - found["lost_points"]
        return Coarse(
            found["accuracy"], lost, found["seconds_ratio"], ranges["[1/2,8]"][way]["seconds_ratio"]
        )

    def better_by(a: Sequence[RunConfig], b: Sequence[RunConfig], over: str | float) -> float:
        return compare(results, a, b, over).difference

    return {
        **recipes.RECIPES,
        **{name: getattr(recipes, name) for name in ("ROOT2", "ROOT4", "SAMPLES", "SINGLE", "seeded")},
        **{
            one.__name__: one
            for one in (
                ran,
                table,
                kept,
                alone,
                few_row,
                batch,
                batch_row,
                cifar_row,
                chosen_row,
                residual_row,
                coarse_row,
                more,
                measured,
                cost,
                detector,
                coarse,
                better_by,
            )
        },
        **{
            one.__name__: one
            for one in (
                fmean,
                median,
                stdev,
                mean,
                inside,
                cells,
                sized,
                parameters,
                multiplications,
                paired,
                paper,
                windows,
                sides,
            )
        },
        "math": math,
        "BEYOND": ("[1,4]", "[1/2,4]", "[1/2,8]"),
        "OURS": tuple(PAIRS),
        **{name: kept("beyond", remark, data="mnist") for name, remark in BEYOND.items()},
        "TEN_SECONDS_TESTED": kept("beyond", "The run of the same name, in ten seconds", split="test"),
        "RANGES": tuple(RANGES),
        "MORE": kept("deviations", "More seeds", network="fovmax"),
        "BEYOND_2": kept("beyond", "FovAvg, the paper's recipe, training.beyond = 2"),
        "PLUS": lambda option: kept("beyond", f"FovLSE+ with {option}"),
        "BACKGROUND": BACKGROUND,
        "MNIST_SIZES": MNIST_SIZES,
    }


def computer(root: Path) -> Callable[[str], Any]:
    """Computes an expression, once."""
    known = names(root)

    @cache
    def compute(expression: str) -> Any:
        return eval(" ".join(expression.split()), dict(known))

    return compute


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


def _ranges(run: Mapping[str, Any]) -> list[tuple[tuple[float, ...], float]]:
    """Accuracies on test sets with all sizes of a range."""
    entries = run["evaluation"]["sizes"]
    return [(tuple(one["size"]), one["accuracy"]) for one in entries if isinstance(one["size"], list)]


def paired(a: Runs, b: Runs, over: str) -> str:
    """How much better the one is than the other: +0.13 [+0.08, +0.18]."""
    return str(paired_difference(a.right(over), b.right(over)))


def sized(window: int) -> ConvBackbone:
    """The paper's network for windows of so many pixels: of a channel for 28, the plain CNN for 112."""
    return sized_backbone(window, 1, 10)


def parameters(network: ConvBackbone) -> int:
    return sum(one.numel() for one in network.parameters())


def paper(network: str, train: str = "mean") -> dict[str, float]:
    """The paper's own numbers."""
    return TABLE1[network, train]


def cells(*values: float, form: str = ".2f") -> str:
    """Of a table."""
    return " | ".join(format(value, form) for value in values)


def windows(count: int = 17, width: int = 1) -> int:
    """Multiplications of the paper's backbone, `width` times as wide, on so many windows of 28 pixels."""
    return count * multiplications(mnist_backbone(width=width))


def sides() -> list[float]:
    """Of the boxes that the shipped detector draws on the page of detection, in pixels."""
    found = Detector(load("digit-detector"), background=10)(scene(seed=3, background="noisy").image)
    return [28 * one.scale for one in found]
