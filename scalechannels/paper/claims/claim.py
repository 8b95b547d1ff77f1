"""What a claim of the paper is: a check on results that can fail.

Law: a claim holds, does not hold, or there are not enough runs to tell; its figures are said in every case
that can be measured. Limit: thresholds are ours where the paper has only words; each is in its statement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from scalechannels.paper.recipes import Experiment
from scalechannels.paper.results import NotEnoughRunsError, Result, Results
from scalechannels.paper.tables import curve_figures
from scalechannels.training.config import RunConfig

State = Literal["holds", "does not hold", "not enough runs"]


@dataclass(frozen=True)
class Verdict:
    """How a claim does on results."""

    state: State
    measured: str


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, where it stands, and its check: whether it holds, and the figures."""

    id: str
    statement: str
    place: str
    check: Callable[[Results], tuple[bool, str]]

    def verdict(self, results: Results) -> Verdict:
        try:
            holds, measured = self.check(results)
        except NotEnoughRunsError as error:
            return Verdict("not enough runs", str(error))
        return Verdict("holds" if holds else "does not hold", measured)


def need(results: Results, config: RunConfig) -> Result:
    """The result of seed 0."""
    found = results.find(config)
    if found is None:
        raise NotEnoughRunsError(f"no result of {config.resolve('cuda').name}")
    return found


def need_curve(results: Results, one: Experiment, panel: int, label: str) -> dict[float, float]:
    """Place on the axis → mean accuracy over the seeds that are there."""
    (curve,) = (curve for curve in one.panels[panel].curves if curve.label == label)
    figures = curve_figures(results, one, curve)
    wanted = len(curve.configs) if one.renderer == "samples" else 1
    if len(figures) < wanted:
        raise NotEnoughRunsError(f"{one.place}, {one.panels[panel].title}: no results of {label}")
    return {place: figure.mean for place, figure in figures.items()}
