"""Which of our networks is better than which other, by how much, and how sure that is.

Law: every comparison has a paired 95 % interval over seeds and test images, see `paired`. Limit: it is there
only where both networks have results that say which images were wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from scalechannels.paper.experiments import experiment
from scalechannels.paper.layout import NONE, TextForm, columns
from scalechannels.paper.paired import Paired, Size, compare
from scalechannels.paper.recipes import ROOT2, SAMPLES, SINGLE, better_cifar, cifar, residual_cifar, seeded
from scalechannels.paper.results import NotEnoughRunsError, Results
from scalechannels.training.config import RunConfig

OVER: dict[str, str | Size] = {over: over for over in ("[1,4]", "[1/2,4]", "[1/2,8]")}
CIFAR_OVER: dict[str, str | Size] = {"size 1/2": 0.5, "size 1": 1.0, "size 2": 2.0}
CIFAR_TITLE = (
    "Rescaled CIFAR-10, 5 channels unless another number is given, trained on the original images; with the "
    "residual backbone they were mirrored and shifted:"
)
NOTE = (
    "How many percentage points the network is above the other, with its paired 95 % interval over seeds and "
    "test images; * where the interval leaves out 0 and both have several seeds. Digits: means over the "
    "training sizes 1, 2 and 4, but for the CNN that learnt all sizes; few samples were learnt and tested at "
    "all sizes in [1,4]."
)


@dataclass(frozen=True)
class Comparison:
    """One network against another."""

    network: str
    other: str
    by: dict[str, Paired]
    """For each range of test sizes; empty where runs are missing."""
    lacking: str = ""
    """What is missing."""


BASELINES = ("FovAvg", "FovMax", "CNN, all sizes", "CNN, averaged")


@lru_cache(maxsize=4)
def comparisons(results: Results) -> list[Comparison]:
    """All of them, those that wait for runs as well."""
    pairs = [("FovLSE", other) for other in BASELINES]
    pairs += [("FovLSE+", other) for other in ("FovLSE", *BASELINES)]
    pairs += [("FovLSE+, shifts", other) for other in ("FovLSE+", "FovAvg", "FovMax")]
    pairs += [("FovLSE+, wide, shifts", other) for other in ("FovLSE+, shifts", *BASELINES)]
    found = [
        _compared(results, (network, other), (_runs(network), _runs(other)), OVER) for network, other in pairs
    ]
    few = {curve.label: curve.configs for curve in experiment("beyond-few").panels[0].curves}
    for place, samples in enumerate(SAMPLES):
        names = tuple(f"{name}, {samples:,} samples" for name in ("FovLSE+", "FovAvg"))
        runs = few["FovLSE+"][place : place + 1], few["FovAvg"][place : place + 1]
        found.append(_compared(results, names, runs, {"[1,4]": (1.0, 4.0)}))
    return found


@lru_cache(maxsize=4)
def cifar_comparisons(results: Results) -> list[Comparison]:
    """The same on rescaled CIFAR-10."""
    networks = {
        "FovLSE+": better_cifar(),
        "FovAvg": cifar("fovavg", ROOT2),
        "FovAvg, 9 channels": cifar("fovavg"),
        "FovMax": cifar("fovmax", ROOT2),
        "FovLSE+, residual": residual_cifar("fovlse"),
        "FovAvg, residual": residual_cifar("fovavg"),
        "CNN, residual": residual_cifar("cnn"),
    }
    pairs = [("FovLSE+", other) for other in ("FovAvg", "FovAvg, 9 channels", "FovMax")]
    pairs += [("FovLSE+, residual", other) for other in ("FovAvg, residual", "CNN, residual", "FovLSE+")]
    return [_compared(results, pair, [(networks[name],) for name in pair], CIFAR_OVER) for pair in pairs]


def without_errors(results: Results, seeds: int) -> list[RunConfig]:
    """Runs to compare with whose result does not say which images were wrong: older ones, to be done anew."""
    runs = [seeded(run, seed) for title in BASELINES for run in _runs(title) for seed in range(seeds)]
    found = ((run, results.find(run)) for run in runs)
    return [run for run, result in found if result is not None and not result.errors]


def _runs(title: str) -> tuple[RunConfig, ...]:
    """A network's runs of table 1: those on one training size, where it has them."""
    panels = (*experiment("table1").panels, *experiment("beyond").panels)
    (curves,) = (panel.curves for panel in panels if panel.title == title)
    single = tuple(curve.configs[0] for curve in curves if curve.label in SINGLE)
    return single or tuple(curve.configs[0] for curve in curves)


def _compared(
    results: Results,
    names: Sequence[str],
    runs: Sequence[Sequence[RunConfig]],
    over: Mapping[str, str | Size],
) -> Comparison:
    try:
        by = {name: compare(results, runs[0], runs[1], where) for name, where in over.items()}
    except NotEnoughRunsError as error:
        return Comparison(names[0], names[1], {}, str(error))
    return Comparison(names[0], names[1], by)


def heads(over: Iterable[str] = OVER) -> list[str]:
    return ["network", "compared with", *over, "seeds"]


def comparison_rows(
    found: Sequence[Comparison], over: Iterable[str] = OVER, between: str = ", "
) -> list[list[str]]:
    """Cells as text; `between` stands between the seeds of the two networks."""
    rows = []
    for one in found:
        cells = [_cell(one.by[where]) if where in one.by else NONE for where in over]
        seeds = between.join(map(str, next(iter(one.by.values())).seeds)) if one.by else NONE
        rows.append([one.network, one.other, *cells, seeds])
    return rows


def _cell(paired: Paired) -> str:
    sure = paired.clear and min(paired.seeds) > 1  # one seed says nothing about others
    return f"{paired}{'*' if sure else ''}".replace("-", "−")


def comparison_text(results: Results, form: TextForm = "text") -> str:
    """Those of MNIST Large Scale and, below, those of CIFAR-10."""
    mnist, cifar10 = comparisons(results), cifar_comparisons(results)
    lacking = [not one.by for one in (*mnist, *cifar10)]
    waiting = f" {sum(lacking)} of {len(lacking)} wait for runs." if any(lacking) else ""
    parts = [
        columns(heads(), comparison_rows(mnist), form),
        CIFAR_TITLE,
        columns(heads(CIFAR_OVER), comparison_rows(cifar10, CIFAR_OVER), form),
        NOTE + waiting,
    ]
    return "\n\n".join(parts)


def as_json(results: Results) -> list[dict[str, Any]]:
    tables = {"mnist": comparisons(results), "cifar10": cifar_comparisons(results)}
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
        for data, found in tables.items()
        for one in found
    ]
