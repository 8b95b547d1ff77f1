"""Which of our networks is better than which other, by how much, and how sure that is.

Law: every comparison has a paired 95 % interval over seeds and test images, see `paired`. Limit: both
networks need results that say which images were wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from scalechannels.paper.compared_results import Size, compare
from scalechannels.paper.experiments import experiment
from scalechannels.paper.paired import Paired
from scalechannels.paper.recipes import ROOT2, SAMPLES, SINGLE, better_cifar, cifar, residual_cifar, seeded
from scalechannels.paper.results import NotEnoughRunsError, Results
from scalechannels.training.config import RunConfig

OVER: dict[str, str | Size] = {over: over for over in ("[1,4]", "[1/2,4]", "[1/2,8]")}
CIFAR_OVER: dict[str, str | Size] = {"size 1/2": 0.5, "size 1": 1.0, "size 2": 2.0}
BASELINES = ("FovAvg", "FovMax", "CNN, all sizes", "CNN, averaged")
PAIRS: dict[str, tuple[str, ...]] = {
    "FovLSE": BASELINES,
    "FovLSE+": ("FovLSE", *BASELINES),
    "FovLSE+, shifts": ("FovLSE+", "FovAvg", "FovMax"),
    "FovLSE+, wide, shifts": ("FovLSE+, shifts", *BASELINES),
}
"""Which networks of table 1, and ours below it, are compared with which."""
CIFAR_PAIRS: dict[str, tuple[str, ...]] = {
    "FovLSE+": ("FovAvg", "FovAvg, 9 channels", "FovMax"),
    "FovLSE+, residual": ("FovAvg, residual", "CNN, residual", "FovLSE+"),
}
CIFAR_RUNS: dict[str, RunConfig] = {
    "FovLSE+": better_cifar(),
    "FovAvg": cifar("fovavg", ROOT2),
    "FovAvg, 9 channels": cifar("fovavg"),
    "FovMax": cifar("fovmax", ROOT2),
    "FovLSE+, residual": residual_cifar("fovlse"),
    "FovAvg, residual": residual_cifar("fovavg"),
    "CNN, residual": residual_cifar("cnn"),
}


@dataclass(frozen=True)
class Comparison:
    """One network against another."""

    network: str
    other: str
    by: dict[str, Paired]
    """For each range of test sizes; empty where runs are missing."""
    lacking: str = ""
    """What is missing."""


@lru_cache(maxsize=4)
def comparisons(results: Results) -> list[Comparison]:
    """All of them, those that wait for runs as well."""
    found = [
        _compared(results, (network, _runs(network)), (other, _runs(other)), OVER)
        for network, others in PAIRS.items()
        for other in others
    ]
    few = {curve.label: curve.configs for curve in experiment("beyond-few").panels[0].curves}
    for place, samples in enumerate(SAMPLES):
        one, other = ((f"{name}, {samples:,} samples", [few[name][place]]) for name in ("FovLSE+", "FovAvg"))
        found.append(_compared(results, one, other, {"[1,4]": (1.0, 4.0)}))
    return found


@lru_cache(maxsize=4)
def cifar_comparisons(results: Results) -> list[Comparison]:
    """The same on rescaled CIFAR-10."""
    return [
        _compared(results, (network, [CIFAR_RUNS[network]]), (other, [CIFAR_RUNS[other]]), CIFAR_OVER)
        for network, others in CIFAR_PAIRS.items()
        for other in others
    ]


def without_errors(results: Results, seeds: int) -> list[RunConfig]:
    """Runs to compare with whose result does not say which images were wrong: it is old, to be done again."""
    runs = [seeded(run, seed) for title in BASELINES for run in _runs(title) for seed in range(seeds)]
    found = ((run, results.find(run)) for run in runs)
    return [run for run, result in found if result is not None and not result.errors]


def _runs(title: str) -> tuple[RunConfig, ...]:
    """A network's runs of table 1: those on one training size, where it has them."""
    panels = (*experiment("table1").panels, *experiment("beyond").panels)
    (curves,) = (panel.curves for panel in panels if panel.title == title)
    single = tuple(curve.configs[0] for curve in curves if curve.label in SINGLE)
    return single or tuple(curve.configs[0] for curve in curves)


def _compared(
    results: Results,
    one: tuple[str, Sequence[RunConfig]],
    other: tuple[str, Sequence[RunConfig]],
    over: Mapping[str, str | Size],
) -> Comparison:
    try:
        by = {name: compare(results, one[1], other[1], where) for name, where in over.items()}
    except NotEnoughRunsError as error:
        return Comparison(one[0], other[0], {}, str(error))
    return Comparison(one[0], other[0], by)


def comparisons_json(results: Results) -> list[dict[str, Any]]:
    tables = {"mnist": comparisons(results), "cifar10": cifar_comparisons(results)}
    return [
        {
            "data": data,
            "network": one.network,
            "other": one.other,
            "by": {
                over: {
                    "difference": round(paired.difference, 4),
                    "interval": [round(paired.low, 4), round(paired.high, 4)],
                    "seeds": list(paired.seeds),
                }
                for over, paired in one.by.items()
            },
            "lacking": one.lacking,
        }
        for data, found in tables.items()
        for one in found
    ]
