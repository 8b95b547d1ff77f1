"""Claims about curves: accuracy against the size of the test, and against the number of training samples."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from scalechannels.data.ranges import mean_inside
from scalechannels.paper.claims.claim import Claim, need, need_curve
from scalechannels.paper.experiments import experiment
from scalechannels.paper.recipes import NETWORKS, ROOT2, main, mnist, normed
from scalechannels.paper.results import Results
from scalechannels.training.config import NetworkName

LARGE_DROP = 10.0
"""Points."""


def _cnn_drops(results: Results) -> tuple[bool, str]:
    """Beyond √2, at the tested factors 2^(3/4) and 2 in both directions, far more is lost than up to √2."""
    shown, holds = [], True
    for train, size in {"tr1": 1.0, "tr2": 2.0, "tr4": 4.0}.items():
        curve = need_curve(results, experiment("figure5"), 0, train)
        at = {round(tested / size, 4): accuracy for tested, accuracy in curve.items()}
        near = [at[1.0] - at[round(f, 4)] for f in (1 / ROOT2, 2**-0.25, 2**0.25, ROOT2)]
        far = [at[1.0] - at[round(f, 4)] for f in (0.5, 2**-0.75, 2**0.75, 2.0)]
        inner, outer = sum(near) / 4, sum(far) / 4
        holds &= outer > LARGE_DROP and outer > 2 * inner
        shown.append(f"{train}: −{inner:.1f} up to √2, −{outer:.1f} from there to 2")
    return holds, "; ".join(shown)


def _cnn_extrapolates_not(results: Results) -> tuple[bool, str]:
    """Outside the trained range by √2 and more, against the network of the nearest single size."""
    one, shown, holds = experiment("figure9"), [], True
    for low, high in ((1.0, 2.0), (2.0, 4.0)):
        ranged = need_curve(results, one, 0, f"trained on [{low:g}, {high:g}]")
        inside = mean_inside(ranged, low, high)
        for end, sizes in ((low, (0.5, low / ROOT2)), (high, (high * ROOT2, 8.0))):
            single = need_curve(results, one, 0, f"tr{end:g}")
            outside, reference = (mean_inside(curve, *sizes) for curve in (ranged, single))
            gain = outside - reference
            holds &= gain < 5 and outside < inside - LARGE_DROP
            side = "below" if end == low else "above"
            shown.append(f"[{low:g},{high:g}] {side}: {outside:.1f} (tr{end:g}: {reference:.1f})")
    return holds, "; ".join(shown)


def _range(results: Results, network: NetworkName) -> tuple[bool, str]:
    panel = [p.title for p in experiment("figure6").panels].index(f"The {NETWORKS[network]} network")
    means = {
        curve.label: mean_inside(need_curve(results, experiment("figure6"), panel, curve.label), 0.5, 8)
        for curve in experiment("figure6").panels[panel].curves
    }
    values = list(means.values())
    shown = ", ".join(f"{label} {value:.2f}" for label, value in means.items())
    if network == "fovconc":
        return values[-1] < values[0] and values[-1] < values[1], shown
    return all(a < b for a, b in pairwise(values)), shown


def _density(results: Results, network: NetworkName) -> dict[str, float]:
    panel = [p.title for p in experiment("figure7").panels].index(f"The {NETWORKS[network]} network")
    curves = experiment("figure7").panels[panel].curves
    return {
        curve.label: mean_inside(need_curve(results, experiment("figure7"), panel, curve.label), 0.5, 4)
        for curve in curves
    }


def _denser(results: Results, network: NetworkName) -> tuple[bool, str]:
    means = _density(results, network)
    first = means["ratio 2^(1/2)"] - means["ratio 2"]
    second = means["ratio 2^(1/4)"] - means["ratio 2^(1/2)"]
    shown = ", ".join(f"{label} {value:.2f}" for label, value in means.items())
    return first > 0.1 and second < first / 2, f"{shown}: {first:+.2f}, then {second:+.2f}"


def _conc_denser(results: Results) -> tuple[bool, str]:
    means = _density(results, "fovconc")
    shown = ", ".join(f"{label} {value:.2f}" for label, value in means.items())
    return means["ratio 2^(1/4)"] < means["ratio 2²"] and means["ratio 2^(1/4)"] < means["ratio 2"], shown


def _swmax_large(results: Results) -> tuple[bool, str]:
    """Trained on size 2, as far up as down: the loss against FovMax, which sees as much of the digit."""
    swmax = need_curve(results, experiment("figure5"), 3, "tr2")
    fovmax = need_curve(results, experiment("figure5"), 2, "FovMax tr2")
    small, large = (
        mean_inside(fovmax, *sizes) - mean_inside(swmax, *sizes)
        for sizes in ((0.5, 2 / 2**0.25), (2 * 2**0.25, 8))
    )
    return (
        large > small,
        f"below FovMax by {small:.2f} points on smaller sizes, by {large:.2f} on larger ones",
    )


def _few_samples(results: Results) -> tuple[bool, str]:
    one = experiment("figure11")
    curves = {title: need_curve(results, one, 0, title) for title in NETWORKS.values()}
    means = {title: sum(curve.values()) / len(curve) for title, curve in curves.items()}
    order = sorted(means, key=lambda title: -means[title])
    fewest = min(curves["FovAvg"])
    at = ", ".join(f"{title} {curves[title][fewest]:.1f}" for title in order)
    shown = ", ".join(f"{title} {means[title]:.2f}" for title in order)
    leads = means["FovAvg"] > max(value for title, value in means.items() if title != "FovAvg")
    return leads, f"mean over all sizes of the training set: {shown}; {fewest:g} samples: {at}"


def _few_conc(results: Results) -> tuple[bool, str]:
    one = experiment("figure11")
    conc, cnn = (need_curve(results, one, 0, title) for title in ("FovConc", "CNN"))
    gain = sum(conc.values()) / len(conc) - sum(cnn.values()) / len(cnn)
    return gain > 0, f"{gain:+.2f} points over all sizes of the training set"


def _norm_impairs(results: Results) -> tuple[bool, str]:
    means = {
        label: mean_inside(need(results, config).accuracies, 1, 4)
        for label, config in {
            "without": mnist("swmax", "tr2", low=1.0, high=4.0, ratio=ROOT2),
            "joint": normed("joint"),
            "each": normed("each"),
        }.items()
    }
    shown = ", ".join(f"{label} {value:.2f}" for label, value in means.items())
    return max(means["joint"], means["each"]) < means["without"], f"[1,4]: {shown}"


def _pretrained_worse(results: Results, network: NetworkName) -> tuple[bool, str]:
    scratch, pretrained = (
        mean_inside(need(results, config).accuracies, 0.5, 4)
        for config in (main(network, "tr2"), mnist(network, "tr2", pretrained=2.0))
    )
    return pretrained < scratch - 1, f"[1/2,4]: {pretrained:.2f} instead of {scratch:.2f}"


def _single_channel(results: Results) -> tuple[bool, str]:
    found = need(results, mnist("fovmax", "tr2", low=2.0, high=2.0)).accuracies
    at, whole = found[2.0], mean_inside(found, 0.5, 4)
    return at > 99 and whole < at - LARGE_DROP, f"{at:.2f} at the size of training, {whole:.2f} on [1/2,4]"


FOVEATED: tuple[NetworkName, ...] = ("fovavg", "fovmax")
CLAIMS: tuple[Claim, ...] = (
    Claim(
        "cnn-drops",
        "The CNN drops by a large amount (more than 10 points, and twice what it loses before) beyond a "
        "factor √2",
        "Section 6.3",
        _cnn_drops,
    ),
    *(
        Claim(
            f"range-{name}",
            f"{NETWORKS[name]}: the wider the range of the channels, the better over all sizes",
            "Section 6.4",
            partial(_range, network=name),
        )
        for name in (*FOVEATED, "swmax")
    ),
    Claim(
        "range-fovconc",
        "FovConc gets worse with a wider range of the channels (the widest against the two narrowest)",
        "Section 6.4",
        partial(_range, network="fovconc"),
    ),
    *(
        Claim(
            f"density-{name}",
            f"{NETWORKS[name]} on [1/2,4]: the ratio √2 beats 2 clearly (by more than 0.1 points), and "
            "2^(1/4) adds little (less than half of that)",
            "Section 6.5",
            partial(_denser, network=name),
        )
        for name in FOVEATED
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
    Claim(
        "swmax-large",
        "SWMax loses more on large than on small sizes",
        "Section 6.4",
        _swmax_large,
    ),
    Claim("few-fovavg", "FovAvg leads with few training samples", "Section 6.8", _few_samples),
    Claim("few-fovconc", "With few samples FovConc is above the CNN", "Section 6.8", _few_conc),
    Claim("batch-norm", "Both batch norms impair SWMax", "Section 6.2, footnote", _norm_impairs),
    *(
        Claim(
            f"pretrained-{name}",
            f"{NETWORKS[name]} generalises worse (by more than a point) with a pretrained channel than "
            "trained from scratch",
            "Sections 5.2 and 6.2",
            partial(_pretrained_worse, network=name),
        )
        for name in (*FOVEATED, "swmax")
    ),
    Claim(
        "single-channel",
        "A single channel learns its own size (above 99 %) and does not generalise",
        "Section 6.2",
        _single_channel,
    ),
)
