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

Many comparisons at once: some intervals leave out 0 by chance alone. `told_apart` says which differences are
clear after Holm's correction. That asks how likely very large differences are, and so for caution with the
spread of three seeds: p-values take it whole, by Student's t, and add what the images have in common.

Limit: of simulated pairs with three seeds each, the interval held the truth 95 to 97 times in 100, and 91
times where one network varied much and the other did not; of the same weights 95, and 90 where seeds varied
much. Of simulated tables of some hundred comparisons without any difference, at most 1 in 20 had one that was
called clear. A network of one seed has no spread, so that its other seeds are not allowed for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

LEVEL = 0.05
"""The chance that any difference of a table is called clear where there is none."""


@dataclass(frozen=True)
class Paired:
    """The accuracy of one network less that of another, in percentage points."""

    difference: float
    low: float
    """The lower end of the 95 % interval."""
    high: float
    seeds: tuple[int, int] = (1, 1)
    """Of the one and the other network; with one of each, the interval is over images alone."""
    p: float = field(default=math.nan, compare=False)
    """How likely so large a difference is where there is none, for this comparison by itself."""

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
    several = [one for one in ((first - second,) if same_weights else (first, second)) if len(one) > 1]
    freedoms = [len(one) - 1 for one in several]
    of_seeds, freedom = _added([_variance_of_seeds(one) / len(one) for one in several], freedoms)
    chance = _over_images(by_image, draws, resamples)
    chance += math.sqrt(of_seeds) * draws.standard_t(freedom, resamples)
    low, high = np.quantile(chance, (0.025, 0.975))
    difference = float(by_image.mean())
    spread, free = _added([float(one.mean(1).var(ddof=1)) / len(one) for one in several], freedoms)
    in_common = by_image.var() / (len(by_image) - 1) - sum(
        _of_single_images(one) / len(one) for one in several
    )
    p = chance_of(difference, max(0.0, float(in_common)), spread, free)
    return Paired(difference, float(difference + low), float(difference + high), (len(a), len(b)), p)


def told_apart(p: Sequence[float]) -> list[bool]:
    """Which of these differences are clear: Holm's correction keeps the chance of any mistake below LEVEL."""
    clear = [False] * len(p)
    for rank, place in enumerate(sorted(range(len(p)), key=lambda place: p[place])):
        if not p[place] * (len(p) - rank) <= LEVEL:
            break
        clear[place] = True
    return clear


def chance_of(difference: float, normal: float, spread: float, freedom: float) -> float:
    """How likely two deviations add up to as much, either way.

    normal            the variance of one, a normal deviation
    spread, freedom   the squared scale of the other, one of Student's t with these degrees of freedom
    """
    far = abs(difference)
    if not spread:
        return math.erfc(far / math.sqrt(2 * normal)) if normal else float(not far)
    deviations = np.linspace(-8, 8, 641)  # in standard deviations
    weights = np.exp(-(deviations**2) / 2)
    left = (far - math.sqrt(normal) * deviations) / math.sqrt(spread)  # for Student's t
    beyond = two_sided(left, freedom) / 2
    chances = np.where(left > 0, beyond, 1 - beyond)
    return min(1.0, float(2 * (chances * weights).sum() / weights.sum()))


def two_sided(t: Any, freedom: float) -> Any:
    """The probability that Student's t is at least so far from 0; for a number or an array of them."""
    # With t = √freedom · tan θ the density is a power of cos θ, and its tail a finite interval.
    angles = np.linspace(math.pi / 2, 0, 20_001)
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    values = np.cos(angles).clip(0) ** (freedom - 1)
    tails = np.concatenate([[0], np.cumsum((values[1:] + values[:-1]) / 2 * -np.diff(angles))])
    there = np.arctan(np.abs(t) / math.sqrt(freedom))
    return 2 * scale * np.interp(there, angles[::-1], tails[::-1])


def _over_images(values: np.ndarray, draws: np.random.Generator, resamples: int) -> np.ndarray:
    """By how much the mean of so many images drawn from these, with replacement, is off: (resamples,)."""
    # Most images have the same value, no difference; how often each value is drawn is all that counts.
    different, counts = np.unique(values, return_counts=True)
    drawn = draws.multinomial(len(values), counts / len(values), size=resamples)  # (resamples, different)
    return (drawn - counts) @ different / len(values)


def _added(variances: Sequence[float], freedoms: Sequence[int]) -> tuple[float, float]:
    """The sum of variances that were each found with such degrees of freedom, and Welch's for it."""
    total = sum(variances)
    squares = sum(one**2 / free for one, free in zip(variances, freedoms, strict=True))
    return total, total**2 / squares if squares else 1.0


def _variance_of_seeds(values: np.ndarray) -> float:
    """The variance of accuracy over seeds on endlessly many images, from (seeds, images), 0 at least."""
    return max(0.0, float(values.mean(1).var(ddof=1)) - _of_single_images(values))


def _of_single_images(values: np.ndarray) -> float:
    """How much seeds that are equally good vary, from (seeds, images), since they differ on so few images.

    It is the variance of what is left of an image's value when its own mean and the seed's are taken off.
    """
    seeds, images = values.shape
    means = values.mean(1)  # (seeds,)
    left = values - values.mean(0) - (means - means.mean())[:, None]  # (seeds, images)
    return float((left**2).sum() / ((seeds - 1) * (images - 1)) / images)
