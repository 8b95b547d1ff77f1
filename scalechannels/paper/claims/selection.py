"""Claims about selected scales: which channel contributes most to the answer at which size."""

from __future__ import annotations

import math
from itertools import combinations
from statistics import correlation, fmean, linear_regression

from scalechannels.paper.claims.claim import FOVEATED, Checked, Claim, for_each, listed, need
from scalechannels.paper.experiments import Curve, experiment
from scalechannels.paper.recipes import NETWORKS, SINGLE, Train, mnist, scales_of
from scalechannels.paper.results import NotEnoughRunsError, Result, Results
from scalechannels.training.config import NetworkName

SMALLEST, LARGEST = 0.5, 4.0
"""The sizes that are looked at: beyond 4 the image shows only a part of the digit."""
SLOPE, CORRELATION, OVERLAP = (0.8, 1.2), 0.95, 0.7
"""What counts as a linear trend, and as histograms that look alike."""


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
    found = results.of(Curve(train, (mnist(name, train),)))
    if not found:
        raise NotEnoughRunsError(f"no result of {NETWORKS[name]} {train} with 17 channels")
    return found


def _linear(results: Results, network: NetworkName) -> Checked:
    shown, holds = [], True
    for train in SINGLE:
        trends = [trend(result) for result in _all(results, network, train)]
        slope, linear = map(fmean, zip(*trends, strict=True))
        holds &= SLOPE[0] <= slope <= SLOPE[1] and linear >= CORRELATION
        shown.append(f"{train}: slope {slope:.2f}, correlation {linear:.3f}")
    return holds, "; ".join(shown)


def _alike(results: Results, network: NetworkName) -> Checked:
    first = {train: _all(results, network, train)[0] for train in SINGLE}
    common = {f"{a} and {b}": overlap(first[a], first[b]) for a, b in combinations(SINGLE, 2)}
    return min(common.values()) >= OVERLAP, listed(common)


def _mean_bias(results: Results, network: NetworkName) -> float:
    return fmean(bias(result) for train in SINGLE for result in _all(results, network, train))


def _biased(results: Results) -> Checked:
    fovmax, fovavg = (_mean_bias(results, name) for name in ("fovmax", "fovavg"))
    return fovmax > 1.3 and fovavg < 1.3, f"FovMax {fovmax:.2f}, FovAvg {fovavg:.2f} (1 is no bias)"


def _equalised(results: Results) -> Checked:
    plain = _mean_bias(results, "fovmax")
    equalised = fmean(bias(need(results, run)) for run in experiment("equal-blur").runs(1))
    return equalised - 1 < (plain - 1) / 2, f"{plain:.2f} becomes {equalised:.2f} (1 is no bias)"


def _near_diagonal(result: Result) -> list[float]:
    """For each size, the part of the histogram within half an octave of it."""
    scales = scales_of(result.config)
    return [
        sum(share for s, share in zip(scales, shares, strict=True) if abs(math.log2(s / size)) < 0.51)
        for size, shares in histogram(result).items()
    ]


def _less_linear(results: Results) -> Checked:
    """How much of the histogram lies near the linear trend of FovAvg and FovMax."""
    names: tuple[NetworkName, ...] = ("fovmax", "fovconc", "swmax")
    near = {
        NETWORKS[name]: fmean(
            share for train in SINGLE for share in _near_diagonal(_all(results, name, train)[0])
        )
        for name in names
    }
    return max(near["FovConc"], near["SWMax"]) < near["FovMax"], listed(near)


CLAIMS: tuple[Claim, ...] = (
    *for_each(
        FOVEATED,
        "linear",
        f"{{}}: selected scales follow the size linearly (slope {SLOPE[0]} to {SLOPE[1]}, correlation "
        f"{CORRELATION} and more, of the mode, sizes in [1/2,4])",
        "Section 6.9",
        _linear,
    ),
    *for_each(
        FOVEATED,
        "alike",
        f"{{}}: the histograms of the three training sizes look alike (at least {OVERLAP} in common)",
        "Section 6.9",
        _alike,
    ),
    Claim(
        "bias",
        "FovMax is biased towards channel 1 (more than 1.3 times its neighbours), FovAvg hardly (less)",
        "Section 6.9, footnote",
        _biased,
    ),
    Claim(
        "equal-blur",
        "Equalised blur takes away most of the bias (more than half)",
        "Section 6.9, footnote",
        _equalised,
    ),
    Claim(
        "less-linear",
        "FovConc and SWMax are less concentrated about the linear trend than FovMax (share within half an "
        "octave)",
        "Section 6.9",
        _less_linear,
    ),
)
