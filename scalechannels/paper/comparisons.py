"""Which of our networks is better than which other, by how much, and how sure that is.

Law: every comparison has a paired 95 % interval over seeds and test images, see `paired`. Both networks are
compared over the same test sizes, and each on all of its training sets with the same seeds. Limit: both need
results that say which images were wrong; nothing tells whether two results are of the same images in the same
order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from scalechannels.data.sizes import RANGES, inside
from scalechannels.paper.experiments import Experiment, experiment
from scalechannels.paper.paired import Paired, paired_difference, told_apart
from scalechannels.paper.recipes import SAMPLES, SINGLE, seeded
from scalechannels.paper.results import MOST_SEEDS, NotEnoughRunsError, Result, Results, known_results
from scalechannels.training.config import RunConfig

Size = float | tuple[float, float]
MEANS = {**RANGES, "[1/2,2]": (0.5, 2.0)}
"""Ranges of test sizes to average over, those of table 1 and that of rescaled CIFAR-10."""


@dataclass(frozen=True)
class Comparison:
    """One network against another."""

    network: str
    other: str
    by: dict[str, Paired]
    """For each range of test sizes; empty where runs are missing."""
    lacking: str = ""
    """What is missing."""
    clear: frozenset[str] = frozenset()
    """Over which ranges the two are told apart, after correction for all comparisons of the table."""


@lru_cache(maxsize=4)
def comparisons(results: Results, id: str) -> list[Comparison]:
    """Those of an experiment's pairs, those that wait for runs as well; what is clear about all of them."""
    one = experiment(id)
    over = {column: over_column(column) for column in one.columns}
    found = [
        _compared(results, (row, row_runs(one, row)), (other, row_runs(one, other)), over)
        for row, others in one.pairs.items()
        for other in others
    ]
    if id == "beyond":
        few = {curve.label: curve.configs for curve in experiment("beyond-few").panels[0].curves}
        for place, samples in enumerate(SAMPLES):
            ours, theirs = (
                (f"{name}, {samples:,} samples", [few[name][place]]) for name in ("FovLSE+", "FovAvg")
            )
            found.append(_compared(results, ours, theirs, {"[1,4]": (1.0, 4.0)}))
    return corrected(found)


def corrected(found: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons of one table, with what is clear about them after correction for their number."""
    # One seed says nothing about others, so such a comparison is never clear.
    tests = [
        (place, over) for place, row in enumerate(found) for over in row.by if min(row.by[over].seeds) > 1
    ]
    clear = told_apart([found[place].by[over].p for place, over in tests])
    sure = {test for test, is_so in zip(tests, clear, strict=True) if is_so}
    return [
        replace(row, clear=frozenset(over for over in row.by if (place, over) in sure))
        for place, row in enumerate(found)
    ]


def over_column(column: str) -> str | float:
    """What a column's name means: size 1/2 is one size, anything else a range of `MEANS`."""
    return float(Fraction(column.removeprefix("size "))) if column.startswith("size ") else column


def row_runs(one: Experiment, title: str) -> tuple[RunConfig, ...]:
    """A row's runs, or a row of table 1's: those on one training size, where it has them."""
    if one.rows:
        return (one.rows[title],)
    panels = (*one.panels, *(panel for panel in experiment("table1").panels if one.id == "beyond"))
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


def comparisons_json(results: Results, id: str) -> list[dict[str, Any]]:
    data = experiment(id).panels[0].curves[0].configs[0].data.name
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
        for one in comparisons(results, id)
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
        both = found_by_seed(known, (*a, *b), seeds)
        first, second = ([found[part] for found in both] for part in (slice(len(a)), slice(len(a), None)))
    else:
        first, second = (found_by_seed(known, runs, seeds) for runs in (a, b))
    every = [result for network in (first, second) for one in network for result in one]
    sizes = [sizes_over(result, over) for result in every]
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


def found_by_seed(
    known: Results, runs: Sequence[RunConfig], seeds: Sequence[int] | None
) -> list[list[Result]]:
    """For each seed, the results of all training sets."""
    numbers = dict.fromkeys(range(MOST_SEEDS) if seeds is None else seeds)
    whole = known.by_seed(runs, numbers)
    if not whole or (seeds is not None and len(whole) < len(numbers)):
        wanted = (seeded(run, number) for number in numbers for run in runs)
        missing = [run for run in wanted if known.find(run) is None]
        names = [(run.resolve("cuda").name, run.resolve("cpu").name) for run in missing]
        faults = [known.faults[name] for both in names for name in both if name in known.faults]
        raise NotEnoughRunsError(
            f"{known.folder} has no result to use of {', '.join(name for name, _ in names) or 'no seed'}"
            + "".join(f"; {fault}" for fault in faults)
        )
    return whole


def sizes_over(result: Result, over: str | Size) -> list[Size]:
    """The test sizes that are meant, as the result has them."""
    tested = sorted(result.accuracies)
    name = result.config.name
    if isinstance(over, str):
        if over not in MEANS:
            raise ValueError(f"a range is one of {', '.join(MEANS)}, got {over!r}")
        low, high = MEANS[over]
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
