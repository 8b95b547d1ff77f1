"""Claims about selected scales: which channel contributes most to the answer at which size."""

from __future__ import annotations

import math
from functools import partial
from itertools import combinations

from scalechannels.paper.claims.claim import Claim, NotEnoughRunsError, need
from scalechannels.paper.recipes import EQUAL_BLUR, NETWORKS, SINGLE, Train, mnist, seeded
from scalechannels.paper.results import MOST_SEEDS, Result, Results
from scalechannels.scales import ScaleGrid
from scalechannels.training.config import NetworkName, RunConfig

SMALLEST, LARGEST = 0.5, 4.0
"""The sizes that are looked at: beyond 4 the image shows only a part of the digit."""
SLOPE, CORRELATION, OVERLAP = (0.8, 1.2), 0.95, 0.7
"""What counts as a linear trend, and as histograms that look alike."""


def scales_of(config: RunConfig) -> list[float]:
    network = config.resolve().network
    assert network.low is not None
    assert network.high is not None
    return list(ScaleGrid(network.low, network.high, ratio=network.ratio))


def histogram(result: Result) -> dict[float, list[float]]:
    """The sizes that are looked at, and each channel's share."""
    return {s: shares for s, shares in result.selection.items() if SMALLEST <= s <= LARGEST * 1.001}


def trend(result: Result) -> tuple[float, float]:
    """Slope and correlation of the histogram's mode against the size, both in log2."""
    scales = scales_of(result.config)
    points = [
        (math.log2(size), math.log2(scales[max(range(len(shares)), key=shares.__getitem__)]))
        for size, shares in histogram(result).items()
    ]
    n = len(points)
    x, y = (sum(point[axis] for point in points) / n for axis in (0, 1))
    xx, yy, xy = (
        sum((p[a] - (x, y)[a]) * (p[b] - (x, y)[b]) for p in points) for a, b in ((0, 0), (1, 1), (0, 1))
    )
    return xy / xx, xy / math.sqrt(xx * yy) if yy > 0 else 0.0


def bias(result: Result) -> float:
    """What channel 1 gets over all sizes, against the mean of its two neighbours: 1 without a bias."""
    scales = scales_of(result.config)
    one = min(range(len(scales)), key=lambda k: abs(scales[k] - 1))
    totals = [sum(shares[k] for shares in histogram(result).values()) for k in (one - 1, one, one + 1)]
    return 2 * totals[1] / (totals[0] + totals[2])


def overlap(one: Result, other: Result) -> float:
    """The common part of two histograms, mean over the sizes: 1 for equal ones, 0 for disjoint ones."""
    first, second = histogram(one), histogram(other)
    common = [sum(map(min, first[size], second[size])) for size in first]
    return sum(common) / len(common)


def _all(results: Results, name: NetworkName, train: Train) -> list[Result]:
    """Every seed that is there."""
    config = mnist(name, train)
    found = [results.find(seeded(config, seed)) for seed in range(MOST_SEEDS)]
    here = [result for result in found if result is not None]
    if not here:
        raise NotEnoughRunsError(f"no result of {NETWORKS[name]} {train} with 17 channels")
    return here


def _linear(results: Results, network: NetworkName) -> tuple[bool, str]:
    shown, holds = [], True
    for train in SINGLE:
        trends = [trend(result) for result in _all(results, network, train)]
        slope, correlation = (sum(t[i] for t in trends) / len(trends) for i in (0, 1))
        holds &= SLOPE[0] <= slope <= SLOPE[1] and correlation >= CORRELATION
        shown.append(f"{train}: slope {slope:.2f}, correlation {correlation:.3f}")
    return holds, "; ".join(shown)


def _alike(results: Results, network: NetworkName) -> tuple[bool, str]:
    first = {train: _all(results, network, train)[0] for train in SINGLE}
    common = {f"{a} and {b}": overlap(first[a], first[b]) for a, b in combinations(SINGLE, 2)}
    shown = ", ".join(f"{names} {value:.2f}" for names, value in common.items())
    return min(common.values()) >= OVERLAP, shown


def _mean_bias(results: Results, network: NetworkName) -> float:
    values = [bias(result) for train in SINGLE for result in _all(results, network, train)]
    return sum(values) / len(values)


def _biased(results: Results) -> tuple[bool, str]:
    fovmax, fovavg = (_mean_bias(results, name) for name in ("fovmax", "fovavg"))
    return fovmax > 1.3 and fovavg < 1.3, f"FovMax {fovmax:.2f}, FovAvg {fovavg:.2f} (1 is no bias)"


def _equalised(results: Results) -> tuple[bool, str]:
    plain = _mean_bias(results, "fovmax")
    blurred = [bias(need(results, mnist("fovmax", train, blur=EQUAL_BLUR))) for train in SINGLE]
    equalised = sum(blurred) / len(blurred)
    return equalised - 1 < (plain - 1) / 2, f"{plain:.2f} becomes {equalised:.2f} (1 is no bias)"


def _less_linear(results: Results) -> tuple[bool, str]:
    """How much of the histogram lies within half an octave of the linear trend of FovAvg and FovMax."""
    near = {}
    for name in ("fovmax", "fovconc", "swmax"):
        shares = []
        for train in SINGLE:
            result = _all(results, name, train)[0]
            scales = scales_of(result.config)
            for size, row in histogram(result).items():
                close = (v for s, v in zip(scales, row, strict=True) if abs(math.log2(s / size)) < 0.51)
                shares.append(sum(close))
        near[name] = sum(shares) / len(shares)
    shown = ", ".join(f"{NETWORKS[name]} {value:.2f}" for name, value in near.items())  # type: ignore[index]
    return near["fovconc"] < near["fovmax"] and near["swmax"] < near["fovmax"], shown


CLAIMS: tuple[Claim, ...] = (
    *(
        Claim(
            f"linear-{name}",
            f"{NETWORKS[name]}: selected scales follow the size linearly (slope {SLOPE[0]} to {SLOPE[1]}, "
            f"correlation {CORRELATION} and more, of the mode, sizes in [1/2,4])",
            "Section 6.9",
            partial(_linear, network=name),
        )
        for name in ("fovavg", "fovmax")
    ),
    *(
        Claim(
            f"alike-{name}",
            f"{NETWORKS[name]}: the histograms of the three training sizes look alike (at least {OVERLAP} in "
            "common)",
            "Section 6.9",
            partial(_alike, network=name),
        )
        for name in ("fovavg", "fovmax")
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
