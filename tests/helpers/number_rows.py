"""What expressions in tests/docs/numbers may name beside files: rows of tables, what the library computes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import fmean, median
from typing import Any

import torch
from helpers.document_numbers import written
from helpers.measured_runs import Runs, mean, paired
from helpers.number_sources import Sources

from benchmarks import detection_table
from scalechannels import Detector, cnn, load
from scalechannels.backbones.paper import ConvBackbone, mnist_backbone
from scalechannels.backbones.sized import multiplications, sized_backbone
from scalechannels.commands.quickstart import Effort
from scalechannels.compare.cost import multiplications as counted_products
from scalechannels.data.pictures import BACKGROUND
from scalechannels.data.scenes import scene
from scalechannels.data.sizes import MNIST_SIZES, RANGES, inside
from scalechannels.paper import recipes
from scalechannels.paper.claims.verdicts import failed, verdicts
from scalechannels.paper.comparisons import Comparison, comparisons, row_runs
from scalechannels.paper.experiments import experiment
from scalechannels.paper.factorial import factorial_rows
from scalechannels.paper.outside import DIGITS, PHOTOGRAPHS, outside_rows
from scalechannels.paper.published import TABLE1
from scalechannels.paper.table_text import difference_cell
from scalechannels.training.build import build_network, tested_network
from scalechannels.training.config import RunConfig

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


class Rows(Sources):
    """Rows of the documents' tables, as they are written."""

    def alone(self) -> Runs:
        """The run of FovAvg on size 2 that was trained alone."""
        return self.kept("earlier", split="test", network="fovavg", size=2, seed=0)

    @cache  # noqa: B019 (there is one object for each folder of results)
    def evidence(self, data: str, row: str) -> dict[str, float]:
        """A row of `scalechannels table evidence`: column to mean."""
        (found,) = (
            one for one in factorial_rows(self._results, experiment(f"evidence-{data}")) if one.title == row
        )
        return {column: mean.mean for column, mean in found.by.items()}

    @cache  # noqa: B019 (as above)
    def outside(self, data: str, row: str) -> dict[str, float]:
        """A row of `scalechannels table outside`: column to mean."""
        table = {"mnist": DIGITS, "cifar": PHOTOGRAPHS}[data]
        (found,) = (one for one in outside_rows(self._results.folder.parent, table) if one.title == row)
        return {column: mean.mean for column, mean in found.by.items()}

    def row(self, data: str, title: str) -> tuple[RunConfig, ...]:
        """The runs of a row of `scalechannels table evidence`."""
        return row_runs(experiment(data if data == "beyond" else f"evidence-{data}"), title)

    def work(self, table: str, title: str, of: str = "") -> float:
        """Multiplications for one image by the network of a row, relative to another of the table."""
        one, *_ = self.row(table, title)
        return products(one) / (products(self.row(table, of)[0]) if of else 1)

    def gain(self, table: str, row: str, other: str, column: str) -> str:
        """A difference of `scalechannels table evidence` or `beyond`, with a star where it is told apart."""
        found = self._compared(table, row, other)
        return written(found.by[column].difference, "+.2f") + "*" * (column in found.clear)

    def interval(self, table: str, row: str, other: str, column: str) -> str:
        """The same with its interval."""
        return difference_cell(self._compared(table, row, other), column)

    def _compared(self, table: str, row: str, other: str) -> Comparison:
        id = table if table == "beyond" else f"evidence-{table}"
        (found,) = (one for one in comparisons(self._results, id) if (one.network, one.other) == (row, other))
        return found

    def few_row(self, recipe: Callable[..., RunConfig], what: str) -> str:
        """Accuracies on [1,4] of networks trained on few samples."""
        return cells(
            *(
                mean(dict(_ranges(run))[1, 4] for run in self.ran(recipe(what, samples=count)).runs)
                for count in recipes.SAMPLES
            ),
            form=".2f±",
        )

    def few_mean(self, network: str, samples: int) -> float:
        """Accuracy on [1,4] of one of the paper's networks trained on few samples."""
        return mean(dict(_ranges(run))[1, 4] for run in self.ran(recipes.few(network, samples)).runs)

    def again(self) -> tuple[Runs, Runs]:
        """FovAvg and FovMax on one size, as tested before, and as trained again with the same seeds."""
        before = self.kept("earlier", "Trained before results said which", split="test")
        return before, Runs([self._file(f"results/runs/{run['name']}.json") for run in before.runs])

    def twice(self, over: str) -> float:
        """How far a run and itself trained again differ: the root mean square."""
        before, after = (runs.per_run(over) for runs in self.again())
        return math.sqrt(fmean((a - b) ** 2 for a, b in zip(before, after, strict=True)))

    def seeds_differ(self, over: str) -> float:
        """How far two seeds of the same differ: the root mean square."""
        before, _ = self.again()
        squares = []
        for network in ("fovavg", "fovmax"):
            for size in (1, 2, 4):
                of_one = [run for run in before.on(size).runs if run["config"]["network"]["name"] == network]
                squares += [(a - b) ** 2 for a, b in combinations(Runs(of_one).per_run(over), 2)]
        return math.sqrt(fmean(squares))

    def batch(self, size: int, *trained: float) -> str:
        """The cells of the table of batch sizes, for these training sizes; its seed is 1."""
        runs = (
            self.kept("batch_size", batch=size, epochs=20, rate=3e-3, size=one, seed=1) for one in trained
        )
        return " | ".join(one.row("[1,4]", "[1/2,8]") for one in runs)

    def batch_row(self, **options: Any) -> str:
        """Of the table of batch sizes in the notebook."""
        runs = self.kept("batch_size", **options)
        sizes = ", ".join(f"{runs.on(size)['1/2']:.1f}" for size in (1, 2, 4))
        of = runs.runs[0]["config"]["training"]
        steps = of["epochs"] * (50_000 // of["batch"])
        return (
            f"{steps:,} | {sizes} | {format(runs['1/2'], '.1f±')} | {runs.row('[1,4]', '[4,8]', '[1/2,8]')}"
        )

    def cifar_row(self, runs: Runs) -> str:
        """With standard deviations at both ends and in the middle."""
        forms = {"1/2": ".1f±", "1/√2": ".1f", 1: ".1f±", "√2": ".1f", 2: ".1f±"}
        return " | ".join(format(runs[size], form) for size, form in forms.items())

    def chosen_row(self, file: str, remark: str, network: str | None = None, **options: Any) -> str:
        """One run on the validation images of CIFAR-10."""
        named = options if network is None else {"network": network, **options}
        runs = self.kept(file, remark, data="cifar10", **named)
        if len(runs) != 1:
            raise ValueError(f"{len(runs)} runs, not one: {[run['name'] for run in runs.runs]}")
        return runs.row("1/2", "1/√2", 1, "√2", 2, form=".1f")

    def residual_row(self, remark: str) -> str:
        (run,) = self.kept("beyond", remark, data="cifar10", backbone="residual").runs
        epochs = run["config"]["training"]["epochs"]
        return f"{run['parameters'] / 1e6:.2f} million | {epochs} | {self.chosen_row('beyond', remark)}"

    def coarse_row(self, way: str, lost: str = "") -> str:
        found = {over: self.coarse(way, over) for over in RANGES}
        texts = {over: f"{one.accuracy:.2f}" for over, one in found.items()}
        texts["[1/2,4]"] += f" | {lost or format(found['[1/2,4]'].lost, '.3f±')}"
        return " | ".join(texts[over] for over in RANGES)

    def detected(self, row: str) -> str:
        """A row of the table of benchmarks.detection_table."""
        report = self.measured("detection")
        first = next(iter(report.values()))
        return " | ".join(detection_table.cells(report[row], first))

    def coins(self, learnt: str, seed: int) -> str:
        """What benchmarks.detection_coins found by size; the false alarms in ten photographs and in all."""
        rows = self.measured("detection_coins")["rows"]
        (row,) = [row for row in rows if (row["learnt"], row["seed"]) == (learnt, seed)]
        sizes = [f"{average:.2f}, {row['found'][size]}" for size, average in row["average_precision"].items()]
        alarms = [str(row["photographs"][which]["false_alarms"]) for which in ("ten", "all")]
        return " | ".join([*sizes, *alarms])

    def trees(self, detector: str, image: str) -> str:
        """Both average precisions of a detector of benchmarks.detection_trees in an image, by its sizes."""
        rows = self.measured("detection_trees")["detectors"][detector]["rows"]
        return " | ".join(f"{row['ap40']:.2f}, {row['ap50']:.2f}" for row in rows if row["image"] == image)


def paper(network: str, train: str = "mean") -> dict[str, float]:
    """The paper's own numbers."""
    return TABLE1[network, train]


def cells(*values: float, form: str = ".2f") -> str:
    """Of a table."""
    return " | ".join(format(value, form) for value in values)


def sized(window: int) -> ConvBackbone:
    """The paper's network for windows of so many pixels: of a channel for 28, the plain CNN for 112."""
    return sized_backbone(window, 1, 10)


def parameters(network: ConvBackbone) -> int:
    return sum(one.numel() for one in network.parameters())


def words(count: int) -> str:
    """A whole number as documents write small ones."""
    return [
        "no",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
    ][count]


def fraction(share: float) -> str:
    """In words, to the next fifth: a fifth, four fifths."""
    return {1: "a fifth", 2: "two fifths", 3: "three fifths", 4: "four fifths"}[round(5 * share)]


@cache
def products(run: RunConfig) -> int:
    """Multiplications for one image by the network of a run, as it is tested: its windows count too."""
    config = run.resolve("cuda")
    colours, side = 3 if config.data.name == "cifar10" else 1, config.data.about.image
    network = tested_network(config, build_network(config, colours, 10))
    return counted_products(network, torch.zeros(1, colours, side, side))


def windows(count: int = 17, width: int = 1) -> int:
    """Multiplications of the paper's backbone, `width` times as wide, on so many windows of 28 pixels."""
    return count * multiplications(mnist_backbone(width=width))


@cache
def sides() -> list[float]:
    """Of the boxes that the shipped detector draws on the page of detection, in pixels."""
    found = Detector(load("digit-detector"), background=10)(scene(seed=3, background="noisy").image)
    return [28 * one.scale for one in found]


def _ranges(run: Mapping[str, Any]) -> list[tuple[tuple[float, ...], float]]:
    """Accuracies on test sets with all sizes of a range."""
    entries = run["evaluation"]["sizes"]
    return [(tuple(one["size"]), one["accuracy"]) for one in entries if isinstance(one["size"], list)]


FUNCTIONS = (
    load,
    fmean,
    median,
    inside,
    cells,
    cnn,
    fraction,
    multiplications,
    paired,
    paper,
    parameters,
    products,
    sides,
    sized,
    windows,
    words,
    Effort,
)


def computer(root: Path) -> Callable[[str], Any]:
    """Computes an expression, once, with the files below this root."""
    rows = Rows(root)
    known = {
        **recipes.RECIPES,
        **{name: getattr(rows, name) for name in dir(rows) if not name.startswith("_")},
        **{one.__name__: one for one in FUNCTIONS},
        **{name: rows.kept("beyond", remark, data="mnist") for name, remark in BEYOND.items()},
        "TEN_SECONDS_TESTED": rows.kept("beyond", "The run of the same name, in ten seconds", split="test"),
        "BEYOND_2": rows.kept("beyond", "FovAvg, the paper's recipe, training.beyond = 2"),
        "MORE": rows.kept("deviations", "More seeds", network="fovmax"),
        "PLUS": lambda option: rows.kept("beyond", f"FovLSE+ with {option}"),
        "RANGES": tuple(RANGES),
        "BEYOND": experiment("beyond").columns,
        "OURS": tuple(experiment("beyond").pairs),
        "SINGLE": recipes.SINGLE,
        "ROOT2": recipes.ROOT2,
        "BACKGROUND": BACKGROUND,
        "MNIST_SIZES": MNIST_SIZES,
        "math": math,
        "results": lambda: rows._results,
        "verdicts": verdicts,
        "failed": failed,
    }

    @cache
    def compute(expression: str) -> Any:
        return eval(" ".join(expression.split()), dict(known))

    return compute
