"""What a claim of the paper is: a check on results that can fail.

Law: a claim holds, does not hold, or there are not enough runs to decide; it says what was measured. Limit:
thresholds are ours where the paper has only words; each is in its statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from scalechannels.paper.experiments import experiment
from scalechannels.paper.recipes import NETWORKS
from scalechannels.paper.results import NotEnoughRunsError, Result, Results
from scalechannels.paper.tables import curve_means
from scalechannels.training.config import NetworkName, RunConfig

State = Literal["holds", "does not hold", "not enough runs"]
Checked = tuple[bool, str]
"""Whether a claim holds, and what was measured."""
FOVEATED: tuple[NetworkName, ...] = ("fovavg", "fovmax")


@dataclass(frozen=True)
class Verdict:
    """How a claim does on results."""

    state: State
    measured: str


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, where it stands, and its check."""

    id: str
    statement: str
    place: str
    check: Callable[[Results], Checked]

    def verdict(self, results: Results) -> Verdict:
        try:
            holds, measured = self.check(results)
        except NotEnoughRunsError as error:
            return Verdict("not enough runs", str(error))
        return Verdict("holds" if holds else "does not hold", measured)


def for_each(
    networks: Iterable[NetworkName], id: str, statement: str, place: str, check: Callable[..., Checked]
) -> tuple[Claim, ...]:
    """The same claim about several networks: {} in the statement is the network's name."""
    return tuple(
        Claim(f"{id}-{name}", statement.format(NETWORKS[name]), place, partial(check, network=name))
        for name in networks
    )


def listed(values: Mapping[str, float]) -> str:
    """Names with their values, as a claim says what was measured."""
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())


def need(results: Results, config: RunConfig) -> Result:
    """The result of seed 0."""
    found = results.find(config)
    if found is None:
        raise NotEnoughRunsError(f"no result of {config.resolve('cuda').name}")
    return found


def need_curve(results: Results, id: str, panel: str, label: str) -> dict[float, float]:
    """A curve of an experiment's panel: place on the axis → mean accuracy over the seeds that are there."""
    one = experiment(id)
    (curve,) = (c for shown in one.panels if shown.title == panel for c in shown.curves if c.label == label)
    means = curve_means(results, one, curve)
    if len(means) < len(curve.configs):
        raise NotEnoughRunsError(f"{one.place}, {panel}: no results of {label}")
    return {place: found.mean for place, found in means.items()}
