"""Is one network better than another? Their difference in accuracy, and how far it can be trusted.

Law: the 95 % interval is about the networks, not about these runs: it allows for other seeds and for other
test images. Both networks see the same images, so what makes an image hard for both cancels.

Images and seeds are two sources of chance, which add up. Images are resampled (a bootstrap), the same ones
for both networks, all seeds and all sizes, since the test sets of all sizes show the same objects. Seeds are
too few for that: with three of them, resampled, the interval held the truth 82 times in 100 where seeds
mattered most. So what further seeds would do is drawn from Student's t with Welch's degrees of freedom, by
which one network may vary more than the other; the part of their spread that single images make is taken off,
since the resampled images have it already.

Where both are the same weights, tested in two ways, a seed is a pair as well: its own difference counts.

Limit: of simulated pairs with three seeds each, the interval held the truth 95 to 97 times in 100, and 91
times where one network varied much and the other did not; of the same weights 95, and 90 where seeds varied
much. A network of one seed has no spread, so that its
other seeds are not allowed for. Nothing tells whether two results are of the same images in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from scalechannels.data.ranges import RANGES, inside
from scalechannels.paper.recipes import SINGLE, TRAINED, Train, seeded
from scalechannels.paper.results import MOST_SEEDS, NotEnoughRunsError, Result, Results, known_results
from scalechannels.training.config import RunConfig

Size = float | tuple[float, float]


@dataclass(frozen=True)
class Paired:
    """The accuracy of one network less that of another, in percentage points."""

    difference: float
    low: float
    """The lower end of the 95 % interval."""
    high: float
    seeds: tuple[int, int] = (1, 1)
    """Of the one and the other network; with one of each, the interval is over images alone."""

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out 0: one of the two is better."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        return f"{self.difference:+.2f} [{self.low:+.2f}, {self.high:+.2f}]"


def paired_difference(
    a: np.ndarray, b: np.ndarray, *, same_weights: bool = False, resamples: int = 2000, seed: int = 0
) -> Paired:
    """How much more accurate `a` is than `b`, on average over seeds, sizes and images.

    a, b   bool (seeds, sizes, images), True where an image was classified rightly. The images are the same
           ones in the same order; seeds and sizes may be others, and more or fewer.
    same_weights   each seed of `a` has the weights of that seed of `b`: they differ in how they are tested
    """
    for name, correct in (("a", a), ("b", b)):
        if correct.dtype != np.bool_ or correct.ndim != 3 or not correct.size or correct.shape[2] < 2:
            raise ValueError(
                f"{name} is bool (seeds, sizes, images) of two images or more, "
                f"got {correct.dtype} of shape {correct.shape}"
            )
    if a.shape[2] != b.shape[2]:
        raise ValueError(f"both networks are tested on the same images, got {a.shape[2]} and {b.shape[2]}")
    if same_weights and len(a) != len(b):
        raise ValueError(f"the same weights have the same seeds, got {len(a)} and {len(b)}")
    if resamples < 100:
        raise ValueError(f"an interval takes at least 100 resamples, got {resamples}")
    draws = np.random.default_rng(seed)
    first, second = 100 * a.mean(1), 100 * b.mean(1)  # (seeds, images)
    by_image = first.mean(0) - second.mean(0)  # (images,)
    varying = (first - second,) if same_weights else (first, second)
    chance = _over_images(by_image, draws, resamples) + _over_seeds(varying, draws, resamples)
    low, high = np.quantile(chance, (0.025, 0.975))
    difference = by_image.mean()
    return Paired(float(difference), float(difference + low), float(difference + high), (len(a), len(b)))


def _over_images(values: np.ndarray, draws: np.random.Generator, resamples: int) -> np.ndarray:
    """By how much the mean of so many images drawn from these, with replacement, is off: (resamples,)."""
    # Most images have the same value, no difference; how often each value is drawn is all that counts.
    different, counts = np.unique(values, return_counts=True)
    drawn = draws.multinomial(len(values), counts / len(values), size=resamples)  # (resamples, different)
    return (drawn - counts) @ different / len(values)


def _over_seeds(networks: Sequence[np.ndarray], draws: np.random.Generator, resamples: int) -> np.ndarray:
    """By how much the difference of two means over seeds is off, from their (seeds, images): (resamples,).

    From one such array, of differences, where seeds are paired.
    """
    several = [values for values in networks if len(values) > 1]
    freedom = np.array([len(values) - 1 for values in several])
    variances = np.array([_variance_of_seeds(values) / len(values) for values in several])
    total = variances.sum()
    if total == 0:
        return np.zeros(resamples)
    return np.sqrt(total) * draws.standard_t(total**2 / (variances**2 / freedom).sum(), resamples)


def _variance_of_seeds(values: np.ndarray) -> float:
    """The variance of accuracy over seeds on endlessly many images, from (seeds, images), 0 at least.

    Seeds that are equally good differ on so few images, too, by the variance of what is left of an image's
    value when its own mean and the seed's are taken off.
    """
    seeds, images = values.shape
    means = values.mean(1)  # (seeds,)
    left = values - values.mean(0) - (means - means.mean())[:, None]  # (seeds, images)
    single = (left**2).sum() / ((seeds - 1) * (images - 1))
    return max(0.0, float(means.var(ddof=1) - single / images))


def trained_on(config: RunConfig, trains: Sequence[Train] = SINGLE) -> tuple[RunConfig, ...]:
    """The same network and training on other sizes: those whose mean is a row of table 1 by default."""
    return tuple(replace(config, data=replace(config.data, sizes=TRAINED[train])) for train in trains)


def compare(
    results: Results | Path | str | None,
    a: Sequence[RunConfig],
    b: Sequence[RunConfig],
    over: str | Size,
    *,
    seeds: Sequence[int] | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> Paired:
    """How much more accurate network `a` is than `b`, from the results of their runs.

        compare("results", trained_on(main("fovlse", "tr1")), trained_on(main("fovavg", "tr1")), "[1,4]")

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
            f"{', '.join(bare)}; they are older than that: move them away and train anew"
        )
    for result, wanted in zip(every, sizes, strict=True):
        if wanted != sizes[0]:
            raise ValueError(
                f"{result.config.name} was tested at {wanted}, {every[0].config.name} at {sizes[0]}"
            )
    return paired_difference(
        _correct(first, sizes[0]),
        _correct(second, sizes[0]),
        same_weights=same_weights,
        resamples=resamples,
        seed=seed,
    )


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
