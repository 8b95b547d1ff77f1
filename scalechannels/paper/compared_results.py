"""Two networks compared by their committed results: the runs that are there, on the same test images.

Law: both networks are compared over the same test sizes, and each on all of its training sets with the same
seeds. Limit: nothing tells whether two results are of the same images in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from scalechannels.data.sizes import RANGES, inside
from scalechannels.paper.paired import Paired, paired_difference
from scalechannels.paper.recipes import seeded
from scalechannels.paper.results import MOST_SEEDS, NotEnoughRunsError, Result, Results, known_results
from scalechannels.training.config import RunConfig

Size = float | tuple[float, float]


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
