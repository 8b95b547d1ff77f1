"""Which of our networks is better than which other, by how much, and how sure that is.

Law: every comparison has a paired 95 % interval over seeds and test images, see `paired`. Limit: it is there
only where both networks have results that say which images were wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from scalechannels.paper.experiments import experiment
from scalechannels.paper.layout import NONE, TextForm, columns
from scalechannels.paper.paired import Paired, Size, compare
from scalechannels.paper.plan import SAMPLES, SINGLE, seeded
from scalechannels.paper.results import NotEnoughRunsError, Results
from scalechannels.training.config import RunConfig

OVER = ("[1,4]", "[1/2,4]", "[1/2,8]")
HEADS = ("network", "compared with", *OVER, "seeds")
NOTE = (
    "How many percentage points the network is above the other, with its paired 95 % interval over seeds and "
    "test images; * where the interval leaves out 0 and both have several seeds. Means over the training "
    "sizes 1, 2 and 4, but for the CNN that learnt all sizes; few samples were learnt and tested at all "
    "sizes in [1,4]."
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
        _compared(results, (network, other), (_runs(network), _runs(other)), {over: over for over in OVER})
        for network, other in pairs
    ]
    few = {curve.label: curve.configs for curve in experiment("beyond-few").panels[0].curves}
    for place, samples in enumerate(SAMPLES):
        names = tuple(f"{name}, {samples:,} samples" for name in ("FovLSE+", "FovAvg"))
        runs = few["FovLSE+"][place : place + 1], few["FovAvg"][place : place + 1]
        found.append(_compared(results, names, runs, {"[1,4]": (1.0, 4.0)}))
    return found


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
    runs: tuple[Sequence[RunConfig], Sequence[RunConfig]],
    over: dict[str, str | Size],
) -> Comparison:
    try:
        by = {name: compare(results, runs[0], runs[1], where) for name, where in over.items()}
    except NotEnoughRunsError as error:
        return Comparison(names[0], names[1], {}, str(error))
    return Comparison(names[0], names[1], by)


def comparison_rows(found: Sequence[Comparison]) -> list[list[str]]:
    rows = []
    for one in found:
        cells = [_cell(one.by[over]) if over in one.by else NONE for over in OVER]
        seeds = " and ".join(map(str, next(iter(one.by.values())).seeds)) if one.by else NONE
        rows.append([one.network, one.other, *cells, seeds])
    return rows


def _cell(paired: Paired) -> str:
    sure = paired.clear and min(paired.seeds) > 1  # one seed says nothing about others
    return f"{paired}{'*' if sure else ''}".replace("-", "−")


def comparison_text(found: Sequence[Comparison], form: TextForm = "text") -> str:
    text = f"{columns(HEADS, comparison_rows(found), form)}\n\n{NOTE}"
    lacking = sum(not one.by for one in found)
    return text + (f" {lacking} of {len(found)} wait for runs." if lacking else "")


def as_json(found: Sequence[Comparison]) -> list[dict[str, Any]]:
    return [
        {
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
        for one in found
    ]
