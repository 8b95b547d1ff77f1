"""Claims about curves: accuracy against the size of the test, and against the number of training samples."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

from scalechannels.data.sizes import mean_inside
from scalechannels.paper.claims.claim import Checked, listed, need, need_curve
from scalechannels.paper.experiments import experiment
from scalechannels.paper.recipes import NETWORKS, RECIPES, ROOT2, ROOT4, SINGLE, TRAINED, cifar, mnist
from scalechannels.paper.results import Results
from scalechannels.training.config import NetworkName

CNN = "Standard CNN"
"""The panel of the CNN."""


def gain(
    results: Results,
    options: dict[str, Any],
    runs: Sequence[dict[str, Any]],
    sizes: tuple[float, float],
    between: tuple[float, float],
    measured: str,
    **network: NetworkName,
) -> Checked:
    """What the best of the further runs gains over the first one, in points, lies between two numbers.

    options    a recipe, and what all of its runs have
    runs       what each of them has besides
    sizes      the test sizes, from and to, over which the accuracies are averaged
    measured   how these means are told
    """
    common = options | network
    recipe = RECIPES[common.pop("recipe")]
    first, *further = (mean_inside(need(results, recipe(**common, **run)).accuracies, *sizes) for run in runs)
    low, high = between
    return low < max(further) - first < high, measured.format(first, *further)


def cnn_drops(results: Results, drop: float) -> Checked:
    """Beyond √2, at the tested factors 2^(3/4) and 2 in both directions, far more is lost than up to √2."""
    shown, holds = [], True
    for train in SINGLE:
        curve = need_curve(results, "figure5", CNN, train)
        at = {round(size / TRAINED[train][0], 4): accuracy for size, accuracy in curve.items()}
        inner, outer = (
            fmean(at[1.0] - at[round(factor, 4)] for factor in factors)
            for factors in ((1 / ROOT2, 1 / ROOT4, ROOT4, ROOT2), (0.5, 2**-0.75, 2**0.75, 2.0))
        )
        holds &= outer > drop and outer > 2 * inner
        shown.append(f"{train}: −{inner:.1f} up to √2, −{outer:.1f} from there to 2")
    return holds, "; ".join(shown)


def cnn_extrapolates_not(results: Results, gain: float, drop: float) -> Checked:
    """Outside the trained range by √2 and more, against the network of the nearest single size."""
    shown, holds = [], True
    for low, high in ((1.0, 2.0), (2.0, 4.0)):
        ranged = need_curve(results, "figure9", CNN, f"trained on [{low:g}, {high:g}]")
        inside = mean_inside(ranged, low, high)
        for side, end, sizes in (("below", low, (0.5, low / ROOT2)), ("above", high, (high * ROOT2, 8.0))):
            single = need_curve(results, "figure9", CNN, f"tr{end:g}")
            outside, reference = (mean_inside(curve, *sizes) for curve in (ranged, single))
            holds &= outside - reference < gain and outside < inside - drop
            shown.append(f"[{low:g},{high:g}] {side}: {outside:.1f} (tr{end:g}: {reference:.1f})")
    return holds, "; ".join(shown)


def _means(results: Results, id: str, network: NetworkName, low: float, high: float) -> dict[str, float]:
    """Curve → mean over the test sizes from low to high, in this network's panel of an experiment."""
    (panel,) = (one for one in experiment(id).panels if one.title == f"The {NETWORKS[network]} network")
    curves = {curve.label: need_curve(results, id, panel.title, curve.label) for curve in panel.curves}
    return {label: mean_inside(curve, low, high) for label, curve in curves.items()}


def wider(results: Results, network: NetworkName) -> Checked:
    means = _means(results, "figure6", network, 0.5, 8)
    return all(a < b for a, b in pairwise(means.values())), listed(means)


def wider_is_worse(results: Results, network: NetworkName) -> Checked:
    means = _means(results, "figure6", network, 0.5, 8)
    narrowest, narrow, *_, widest = means.values()
    return widest < min(narrowest, narrow), listed(means)


def denser(results: Results, network: NetworkName, points: float) -> Checked:
    means = _means(results, "figure7", network, 0.5, 4)
    first = means["ratio 2^(1/2)"] - means["ratio 2"]
    second = means["ratio 2^(1/4)"] - means["ratio 2^(1/2)"]
    return first > points and second < first / 2, f"{listed(means)}: {first:+.2f}, then {second:+.2f}"


def denser_is_worse(results: Results, network: NetworkName) -> Checked:
    means = _means(results, "figure7", network, 0.5, 4)
    return means["ratio 2^(1/4)"] < min(means["ratio 2²"], means["ratio 2"]), listed(means)


def swmax_density(results: Results) -> Checked:
    """How much the ratio of the channels matters: the best of the three less the worst."""

    def spread(network: NetworkName, low: float, high: float) -> float:
        means = _means(results, "figure7", network, low, high).values()
        return max(means) - min(means)

    networks: tuple[NetworkName, ...] = ("swmax", "fovmax", "fovavg")
    swmax, *others = (spread(network, 0.5, 8) for network in networks)
    small, large = spread("swmax", 0.5, 2 / ROOT4), spread("swmax", 2 * ROOT4, 8)
    measured = f"SWMax {swmax:.2f}, FovMax {others[0]:.2f}, FovAvg {others[1]:.2f} points on [1/2,8]; "
    measured += f"SWMax {small:.2f} on smaller sizes, {large:.2f} on larger ones"
    return swmax > max(others) and large > small, measured


def swmax_large(results: Results) -> Checked:
    """Trained on size 2, as far up as down: the loss against FovMax, which sees as much of the digit."""
    swmax = need_curve(results, "figure5", "The SWMax network", "tr2")
    fovmax = need_curve(results, "figure5", "The FovMax and FovAvg networks", "FovMax tr2")
    small, large = (
        mean_inside(fovmax, *sizes) - mean_inside(swmax, *sizes)
        for sizes in ((0.5, 2 / ROOT4), (2 * ROOT4, 8))
    )
    measured = f"below FovMax by {small:.2f} points on smaller sizes, by {large:.2f} on larger ones"
    return large > small, measured


def _few(results: Results, network: str) -> dict[float, float]:
    """Number of training samples → accuracy."""
    return need_curve(results, "figure11", "Trained and tested on sizes in [1, 4]", network)


def few_samples(results: Results) -> Checked:
    curves = {title: _few(results, title) for title in NETWORKS.values()}
    means = {title: fmean(curve.values()) for title, curve in curves.items()}
    order = sorted(means, key=lambda title: -means[title])
    fewest = min(curves["FovAvg"])
    at = ", ".join(f"{title} {curves[title][fewest]:.1f}" for title in order)
    leads = means["FovAvg"] > max(value for title, value in means.items() if title != "FovAvg")
    shown = listed({title: means[title] for title in order})
    return leads, f"mean over all sizes of the training set: {shown}; {fewest:g} samples: {at}"


def few_fovconc(results: Results) -> Checked:
    conc, cnn = (fmean(_few(results, title).values()) for title in ("FovConc", "CNN"))
    return conc > cnn, f"{conc - cnn:+.2f} points over all sizes of the training set"


def single_channel(results: Results, own: float, drop: float) -> Checked:
    found = need(results, mnist("fovmax", "tr2", low=2.0, high=2.0)).accuracies
    at, whole = found[2.0], mean_inside(found, 0.5, 4)
    return at > own and whole < at - drop, f"{at:.2f} at the size of training, {whole:.2f} on [1/2,4]"


def cifar_ends(
    results: Results, network: NetworkName, half: tuple[float, float], double: tuple[float, float]
) -> Checked:
    """The accuracies at factors 1/2 and 2 lie between two numbers each."""
    found = need(results, cifar(network)).accuracies
    holds = half[0] < found[0.5] < half[1] and double[0] < found[2.0] < double[1]
    ratio = "" if network == "cnn" else " (ratio 2^(1/4))"
    return holds, f"{found[0.5]:.1f} at 1/2, {found[2.0]:.1f} at 2{ratio}"


def cifar_fovconc(results: Results, points: float) -> Checked:
    cnn = mean_inside(need(results, cifar("cnn")).accuracies, 0.5, 2)
    gains = {
        f"ratio {name}": mean_inside(need(results, cifar("fovconc", ratio)).accuracies, 0.5, 2) - cnn
        for name, ratio in (("2", 2.0), ("√2", ROOT2), ("2^(1/4)", ROOT4))
    }
    shown = ", ".join(f"{label} {gain:+.2f}".replace("-", "−") for label, gain in gains.items())
    return min(
        gains.values()
    ) > points, f"against the CNN's {cnn:.2f} on average over the nine sizes: {shown}"


def cifar_peak(results: Results) -> Checked:
    networks: tuple[NetworkName, ...] = ("fovavg", "fovmax")
    avg, best = (
        max(max(need(results, cifar(name, ratio)).accuracies.values()) for ratio in (ROOT2, ROOT4))
        for name in networks
    )
    return avg > best, f"FovAvg {avg:.2f}, FovMax {best:.2f}"
