"""Claims about curves: accuracy against the size of the test, and against the number of training samples."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean

from scalechannels.data.sizes import mean_inside
from scalechannels.paper.claims.claim import FOVEATED, Checked, Claim, for_each, listed, need, need_curve
from scalechannels.paper.experiments import experiment
from scalechannels.paper.recipes import NETWORKS, ROOT2, ROOT4, TRAINED, main, mnist
from scalechannels.paper.results import Results
from scalechannels.training.config import NetworkName

LARGE_DROP = 10.0
"""Points."""
CNN = "Standard CNN"
"""The panel of the CNN."""


def _cnn_drops(results: Results) -> Checked:
    """Beyond √2, at the tested factors 2^(3/4) and 2 in both directions, far more is lost than up to √2."""
    shown, holds = [], True
    for train in ("tr1", "tr2", "tr4"):
        curve = need_curve(results, "figure5", CNN, train)
        at = {round(size / TRAINED[train][0], 4): accuracy for size, accuracy in curve.items()}
        inner, outer = (
            fmean(at[1.0] - at[round(factor, 4)] for factor in factors)
            for factors in ((1 / ROOT2, 1 / ROOT4, ROOT4, ROOT2), (0.5, 2**-0.75, 2**0.75, 2.0))
        )
        holds &= outer > LARGE_DROP and outer > 2 * inner
        shown.append(f"{train}: −{inner:.1f} up to √2, −{outer:.1f} from there to 2")
    return holds, "; ".join(shown)


def _cnn_extrapolates_not(results: Results) -> Checked:
    """Outside the trained range by √2 and more, against the network of the nearest single size."""
    shown, holds = [], True
    for low, high in ((1.0, 2.0), (2.0, 4.0)):
        ranged = need_curve(results, "figure9", CNN, f"trained on [{low:g}, {high:g}]")
        inside = mean_inside(ranged, low, high)
        for side, end, sizes in (("below", low, (0.5, low / ROOT2)), ("above", high, (high * ROOT2, 8.0))):
            single = need_curve(results, "figure9", CNN, f"tr{end:g}")
            outside, reference = (mean_inside(curve, *sizes) for curve in (ranged, single))
            holds &= outside - reference < 5 and outside < inside - LARGE_DROP
            shown.append(f"[{low:g},{high:g}] {side}: {outside:.1f} (tr{end:g}: {reference:.1f})")
    return holds, "; ".join(shown)


def _means(results: Results, id: str, network: NetworkName, low: float, high: float) -> dict[str, float]:
    """Curve → mean over the test sizes from low to high, in this network's panel of an experiment."""
    (panel,) = (one for one in experiment(id).panels if one.title == f"The {NETWORKS[network]} network")
    curves = {curve.label: need_curve(results, id, panel.title, curve.label) for curve in panel.curves}
    return {label: mean_inside(curve, low, high) for label, curve in curves.items()}


def _wider(results: Results, network: NetworkName) -> Checked:
    means = _means(results, "figure6", network, 0.5, 8)
    return all(a < b for a, b in pairwise(means.values())), listed(means)


def _conc_wider(results: Results) -> Checked:
    means = _means(results, "figure6", "fovconc", 0.5, 8)
    narrowest, narrow, *_, widest = means.values()
    return widest < min(narrowest, narrow), listed(means)


def _denser(results: Results, network: NetworkName) -> Checked:
    means = _means(results, "figure7", network, 0.5, 4)
    first = means["ratio 2^(1/2)"] - means["ratio 2"]
    second = means["ratio 2^(1/4)"] - means["ratio 2^(1/2)"]
    return first > 0.1 and second < first / 2, f"{listed(means)}: {first:+.2f}, then {second:+.2f}"


def _conc_denser(results: Results) -> Checked:
    means = _means(results, "figure7", "fovconc", 0.5, 4)
    return means["ratio 2^(1/4)"] < min(means["ratio 2²"], means["ratio 2"]), listed(means)


def _swmax_large(results: Results) -> Checked:
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


def _few_samples(results: Results) -> Checked:
    curves = {title: _few(results, title) for title in NETWORKS.values()}
    means = {title: fmean(curve.values()) for title, curve in curves.items()}
    order = sorted(means, key=lambda title: -means[title])
    fewest = min(curves["FovAvg"])
    at = ", ".join(f"{title} {curves[title][fewest]:.1f}" for title in order)
    leads = means["FovAvg"] > max(value for title, value in means.items() if title != "FovAvg")
    shown = listed({title: means[title] for title in order})
    return leads, f"mean over all sizes of the training set: {shown}; {fewest:g} samples: {at}"


def _few_conc(results: Results) -> Checked:
    conc, cnn = (fmean(_few(results, title).values()) for title in ("FovConc", "CNN"))
    return conc > cnn, f"{conc - cnn:+.2f} points over all sizes of the training set"


def _norm_impairs(results: Results) -> Checked:
    runs = dict(zip(("without", "joint", "each"), experiment("batch-norm").runs(), strict=True))
    means = {label: mean_inside(need(results, run).accuracies, 1, 4) for label, run in runs.items()}
    return max(means["joint"], means["each"]) < means["without"], f"[1,4]: {listed(means)}"


def _pretrained_worse(results: Results, network: NetworkName) -> Checked:
    scratch, pretrained = (
        mean_inside(need(results, run).accuracies, 0.5, 4)
        for run in (main(network, "tr2"), mnist(network, "tr2", pretrained=2.0))
    )
    return pretrained < scratch - 1, f"[1/2,4]: {pretrained:.2f} instead of {scratch:.2f}"


def _single_channel(results: Results) -> Checked:
    found = need(results, mnist("fovmax", "tr2", low=2.0, high=2.0)).accuracies
    at, whole = found[2.0], mean_inside(found, 0.5, 4)
    return at > 99 and whole < at - LARGE_DROP, f"{at:.2f} at the size of training, {whole:.2f} on [1/2,4]"


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "cnn-drops",
        "The CNN drops by a large amount (more than 10 points, and twice what it loses before) beyond a "
        "factor √2",
        "Section 6.3",
        _cnn_drops,
    ),
    *for_each(
        (*FOVEATED, "swmax"),
        "range",
        "{}: the wider the range of the channels, the better over all sizes",
        "Section 6.4",
        _wider,
    ),
    Claim(
        "range-fovconc",
        "FovConc gets worse with a wider range of the channels (the widest against the two narrowest)",
        "Section 6.4",
        _conc_wider,
    ),
    *for_each(
        FOVEATED,
        "density",
        "{} on [1/2,4]: the ratio √2 beats 2 clearly (by more than 0.1 points), and 2^(1/4) adds little "
        "(less than half of that)",
        "Section 6.5",
        _denser,
    ),
    Claim(
        "density-fovconc",
        "FovConc gets worse with denser channels (2^(1/4) against 2² and 2)",
        "Section 6.5",
        _conc_denser,
    ),
    Claim(
        "cnn-extrapolates-not",
        "Trained on [1,2] or [2,4], the CNN does not extrapolate: outside by √2 and more it gains less than "
        "5 points over the nearest single size",
        "Section 6.6",
        _cnn_extrapolates_not,
    ),
    Claim("swmax-large", "SWMax loses more on large than on small sizes", "Section 6.4", _swmax_large),
    Claim("few-fovavg", "FovAvg leads with few training samples", "Section 6.8", _few_samples),
    Claim("few-fovconc", "With few samples FovConc is above the CNN", "Section 6.8", _few_conc),
    Claim("batch-norm", "Both batch norms impair SWMax", "Section 6.2, footnote", _norm_impairs),
    *for_each(
        (*FOVEATED, "swmax"),
        "pretrained",
        "{} generalises worse (by more than a point) with a pretrained channel than trained from scratch",
        "Sections 5.2 and 6.2",
        _pretrained_worse,
    ),
    Claim(
        "single-channel",
        "A single channel learns its own size (above 99 %) and does not generalise",
        "Section 6.2",
        _single_channel,
    ),
)
