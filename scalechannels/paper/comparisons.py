"""Which of our networks is better than which other, by how much, and how sure that is.

Law: every comparison has a paired 95 % interval over seeds and test images, see `paired`. Both networks are
compared over the same test sizes, and each on all of its training sets with the same seeds. Limit: both need
results that say which images were wrong; nothing tells whether two results are of the same images in the same
order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from scalechannels.data.sizes import RANGES, inside
from scalechannels.paper.experiments import experiment
from scalechannels.paper.paired import Paired, paired_difference
from scalechannels.paper.recipes import ROOT2, SAMPLES, SINGLE, better_cifar, cifar, residual_cifar, seeded
from scalechannels.paper.results import MOST_SEEDS, NotEnoughRunsError, Result, Results, known_results
from scalechannels.training.config import RunConfig

Size = float | tuple[float, float]
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


def compare(
    results: Results | Path | str | None,
    a: Sequence[RunConfig],
    b: Sequence[RunConfig],
    over: str | Size,
    *,
    seeds: Sequence[int] | None = None,
) -> Paired:
    """How much more accurate network `a` is than `b`, from the results of their runs.

        compare("results", [main("fovlse", "tr1")], [main("fovavg", "tr1")], "[1,4]")

    results   the folder, as for `known_results`
    a, b      each network's runs, one for each training set; what is compared are the means over these
    over      a range of table 1 such as "[1,4]": the mean over the test sizes in it; or one test size;
              or a low and a high one: the test set with all sizes between them
    seeds     which must be there for all of these runs; by default those that are, as in the table
    """
    known = results if isinstance(results, Results) else known_results(results)
    if not a or not b:
        raise ValueError("each network takes at least one run to compare")
    tests = {(config.data.name, config.data.seed) for config in (*a, *b)}
    if len(tests) > 1:
        named = ", ".join(f"{name} with data.seed {number}" for name, number in sorted(tests))
        raise ValueError(f"networks are compared on the same test images, got {named}")
    same_weights = [run.learnt for run in a] == [run.learnt for run in b]
    if same_weights:
        both = _found(known, (*a, *b), seeds)
        first, second = ([found[part] for found in both] for part in (slice(len(a)), slice(len(a), None)))
    else:
        first, second = (_found(known, runs, seeds) for runs in (a, b))
    every = [result for network in (first, second) for one in network for result in one]
    sizes = [_sizes(result, over) for result in every]
    bare = [r.config.name for r, wanted in zip(every, sizes, strict=True) if not set(wanted) <= set(r.errors)]
    if bare:
        raise NotEnoughRunsError(
            f"{len(bare)} of {len(every)} results in {known.folder} do not say which images were wrong: "
            f"{', '.join(bare)}; they are too old: move them away and train again"
        )
    for result, wanted in zip(every, sizes, strict=True):
        if wanted != sizes[0]:
            raise ValueError(
                f"{result.config.name} was tested at {wanted}, {every[0].config.name} at {sizes[0]}"
            )
    a_right, b_right = (_correct(network, sizes[0]) for network in (first, second))
    return paired_difference(a_right, b_right, same_weights=same_weights)


def _found(known: Results, runs: Sequence[RunConfig], seeds: Sequence[int] | None) -> list[list[Result]]:
    """For each seed, the results of all training sets."""
    asked = range(MOST_SEEDS) if seeds is None else seeds
    whole, missing = [], []
    for number in dict.fromkeys(asked):
        wanted = [seeded(run, number) for run in runs]
        found = [result for result in map(known.find, wanted) if result is not None]
        missing += [run for run in wanted if known.find(run) is None]
        if len(found) == len(wanted):
            whole.append(found)
    if not whole or (missing and seeds is not None):
        names = [(run.resolve("cuda").name, run.resolve("cpu").name) for run in missing]
        faults = [known.faults[name] for both in names for name in both if name in known.faults]
        raise NotEnoughRunsError(
            f"{known.folder} has no result to use of {', '.join(name for name, _ in names) or 'no seed'}"
            + "".join(f"; {fault}" for fault in faults)
        )
    return whole


def _sizes(result: Result, over: str | Size) -> list[Size]:
    """The test sizes that are meant, as the result has them."""
    tested = sorted(result.accuracies)
    name = result.config.name
    if isinstance(over, str):
        if over not in RANGES:
            raise ValueError(f"a range is one of {', '.join(RANGES)}, got {over!r}")
        low, high = RANGES[over]
        if not (_near(low, tested) and _near(high, tested)):
            raise ValueError(f"{name} was tested at {min(tested):g} to {max(tested):g}, not on {over}")
        return [*inside(tested, low, high)]
    if isinstance(over, tuple):
        if result.accuracy_over(*over) is None:
            raise ValueError(f"{name} was not tested on a set with all sizes from {over[0]:g} to {over[1]:g}")
        return [over]
    if not _near(over, tested):
        raise ValueError(f"{name} was tested at {', '.join(f'{s:g}' for s in tested)}, not at {over:g}")
    return list(_near(over, tested))


def _near(size: float, tested: Sequence[float]) -> list[float]:
    return [one for one in tested if abs(one / size - 1) < 1e-3]  # 1.189 is meant for 2^(1/4)


def _correct(network: Sequence[Sequence[Result]], sizes: Sequence[Size]) -> np.ndarray:
    """(seeds, training sets · sizes, images)"""
    rows = [[r.errors for r in one] for one in network]
    right = [[~errors[size] for errors in one for size in sizes] for one in rows]
    counts = {len(images) for one in right for images in one}
    if len(counts) > 1:
        raise ValueError(
            f"{network[0][0].config.name} and its other runs were tested on {sorted(counts)} images"
        )
    return np.array(right)
