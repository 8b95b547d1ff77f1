"""What checks of claims have in common: what they say, and the results that they need."""

from __future__ import annotations

from collections.abc import Mapping

from scalechannels.paper.experiments import experiment
from scalechannels.paper.results import NotEnoughRunsError, Result, Results
from scalechannels.paper.tables import curve_means
from scalechannels.training.config import RunConfig

Checked = tuple[bool, str]
"""Whether a claim holds, and what was measured."""


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
