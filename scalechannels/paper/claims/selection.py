"""Claims about selected scales: which channel contributes most to the answer at which size."""

from __future__ import annotations

import math
from itertools import combinations
from statistics import correlation, fmean, linear_regression

from scalechannels.paper.claims.claim import Checked, listed, need
from scalechannels.paper.experiments import experiment
from scalechannels.paper.recipes import NETWORKS, SINGLE, Train, mnist, scales_of
from scalechannels.paper.results import NotEnoughRunsError, Result, Results
from scalechannels.training.config import NetworkName

SMALLEST, LARGEST = 0.5, 4.0
"""The sizes that are looked at: beyond 4 the image shows only a part of the digit."""


def histogram(result: Result) -> dict[float, list[float]]:
    """The sizes that are looked at, and each channel's share."""
    return {s: shares for s, shares in result.selection.items() if SMALLEST <= s <= LARGEST * 1.001}


def trend(result: Result) -> tuple[float, float]:
    """Slope and correlation of the histogram's mode against the size, both in log2."""
    scales, found = scales_of(result.config), histogram(result)
    modes = [scales[max(range(len(shares)), key=shares.__getitem__)] for shares in found.values()]
    x, y = ([math.log2(value) for value in values] for values in (found, modes))
    slope = linear_regression(x, y).slope
    return slope, correlation(x, y) if len(set(y)) > 1 else 0.0


def bias(result: Result) -> float:
    """What channel 1 gets over all sizes, against the mean of its two neighbours: 1 without a bias."""
    scales = scales_of(result.config)
    one = min(range(len(scales)), key=lambda k: abs(scales[k] - 1))
    totals = [sum(shares[k] for shares in histogram(result).values()) for k in (one - 1, one, one + 1)]
    return 2 * totals[1] / (totals[0] + totals[2])


def overlap(one: Result, other: Result) -> float:
    """The common part of two histograms, mean over the sizes: 1 for equal ones, 0 for disjoint ones."""
    first, second = histogram(one), histogram(other)
    return fmean(sum(map(min, first[size], second[size])) for size in first)


def _all(results: Results, name: NetworkName, train: Train) -> list[Result]:
    """Every seed that is there."""
    found = results.of(mnist(name, train))
    if not found:
        raise NotEnoughRunsError(f"no result of {NETWORKS[name]} {train} with 17 channels")
    return found


def linear(results: Results, network: NetworkName, slope: tuple[float, float], least: float) -> Checked:
    """The slope lies between two numbers, and the correlation is not below the least."""
    shown, holds = [], True
    for train in SINGLE:
        trends = [trend(result) for result in _all(results, network, train)]
        steep, correlated = map(fmean, zip(*trends, strict=True))
        holds &= slope[0] <= steep <= slope[1] and correlated >= least
        shown.append(f"{train}: slope {steep:.2f}, correlation {correlated:.3f}")
    return holds, "; ".join(shown)


def alike(results: Results, network: NetworkName, common: float) -> Checked:
    first = {train: _all(results, network, train)[0] for train in SINGLE}
    overlaps = {f"{a} and {b}": overlap(first[a], first[b]) for a, b in combinations(SINGLE, 2)}
    return min(overlaps.values()) >= common, listed(overlaps)


def _mean_bias(results: Results, network: NetworkName) -> float:
    return fmean(bias(result) for train in SINGLE for result in _all(results, network, train))


def biased(results: Results, times: float) -> Checked:
    fovmax, fovavg = (_mean_bias(results, name) for name in ("fovmax", "fovavg"))
    return fovmax > times and fovavg < times, f"FovMax {fovmax:.2f}, FovAvg {fovavg:.2f} (1 is no bias)"


def equalised(results: Results) -> Checked:
    plain = _mean_bias(results, "fovmax")
    without = fmean(bias(need(results, run)) for run in experiment("equal-blur").runs(1))
    return without - 1 < (plain - 1) / 2, f"{plain:.2f} becomes {without:.2f} (1 is no bias)"


def _near_diagonal(result: Result) -> list[float]:
    """For each size, the part of the histogram within half an octave of it."""
    scales = scales_of(result.config)
    return [
        sum(share for s, share in zip(scales, shares, strict=True) if abs(math.log2(s / size)) < 0.51)
        for size, shares in histogram(result).items()
    ]


def less_linear(results: Results) -> Checked:
    """How much of the histogram lies near the linear trend of FovAvg and FovMax."""
    names: tuple[NetworkName, ...] = ("fovmax", "fovconc", "swmax")
    near = {
        NETWORKS[name]: fmean(
            share for train in SINGLE for share in _near_diagonal(_all(results, name, train)[0])
        )
        for name in names
    }
    return max(near["FovConc"], near["SWMax"]) < near["FovMax"], listed(near)
