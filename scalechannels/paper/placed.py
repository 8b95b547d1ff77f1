"""Objects anywhere: accuracy at sizes that were trained on and at others, and how well the object was found.

Law: "inside" is the mean over the test sizes within those of training, "outside" over all others; a row is a
mean over the runs of a kind of training set, then over the seeds that all of them have; nothing is shown for
runs that are not there. Limit: place and scale errors are means of medians, one for each test size, over all
images, those with a wrong answer too; a network that does not say where it looked has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from statistics import fmean
from typing import Any

import numpy as np

from scalechannels.data.sizes import inside
from scalechannels.paper.experiments import Curve, Experiment
from scalechannels.paper.results import Result, Results
from scalechannels.paper.tables import Mean, mean_of
from scalechannels.training.config import RunConfig

KINDS = ("one size", "thirds", "all sizes")
RING = 3
"""Pixels: so wide are the rings about the centre over which accuracies are averaged."""
RINGS_AT = 1.0
"""The size of the test digits that rings are about: one that has far to go."""


@dataclass(frozen=True)
class PlacedRow:
    """A network trained on one kind of training set."""

    network: str
    trained: str
    seeds: int
    missing: int
    """How many of its runs have no result."""
    inside: Mean | None
    outside: Mean | None
    place: Mean | None
    """How far the deciding window is off the object, in pixels."""
    evidence: Mean | None
    """How far the centre of the evidence is off it, in pixels."""
    scale: Mean | None
    """How far the deciding scale is off its median at that size, in octaves."""
    drift: Mean | None
    """By how many octaves that median, over the object's size, differs between test sizes at most."""


def kind_of(config: RunConfig) -> str:
    """Which kind of training set a run has."""
    sizes, tested = config.data.sizes, config.data.about.test_sizes
    if len(sizes) == 1:
        return "one size"
    return "all sizes" if len(inside(tested, sizes[0], sizes[-1])) == len(tested) else "thirds"


def placed_rows(results: Results, one: Experiment) -> list[PlacedRow]:
    """A row for each network and kind of training set, network by network."""
    panels = [panel for panel in one.panels if panel.across == "size"]
    labels = dict.fromkeys(curve.label for panel in panels for curve in panel.curves)
    rows = []
    for label in labels:
        runs = [curve.configs[0] for panel in panels for curve in panel.curves if curve.label == label]
        for kind in KINDS:
            of_kind = [run for run in runs if kind_of(run) == kind]
            seeds = results.by_seed(of_kind) if of_kind else []
            missing = sum(max(0, one.seeds - len(results.of(run))) for run in of_kind)
            rows.append(_row(label, kind, seeds, missing))
    return rows


def _row(label: str, kind: str, seeds: Sequence[Sequence[Result]], missing: int) -> PlacedRow:
    def over_seeds(value: Callable[[Result], float | None]) -> Mean | None:
        each = [[value(run) for run in runs] for runs in seeds]
        known = [[number for number in numbers if number is not None] for numbers in each]
        return mean_of([fmean(numbers) for numbers in known]) if known and all(known) else None

    return PlacedRow(
        label,
        kind,
        len(seeds),
        missing,
        over_seeds(lambda run: _accuracy(run, trained=True)),
        over_seeds(lambda run: _accuracy(run, trained=False)),
        over_seeds(lambda run: _mean_of(run, "place_error")),
        over_seeds(lambda run: _mean_of(run, "evidence_error")),
        over_seeds(lambda run: _mean_of(run, "scale_error")),
        over_seeds(_drift),
    )


def _accuracy(run: Result, *, trained: bool) -> float | None:
    found = run.accuracies
    within = inside(found, run.config.data.sizes[0], run.config.data.sizes[-1])
    chosen = [found[size] for size in found if (size in within) == trained]
    return fmean(chosen) if chosen else None


def _each(run: Result, name: str) -> list[float]:
    return [entry[name] for entry in run.values["evaluation"]["sizes"] if entry.get(name) is not None]


def _mean_of(run: Result, name: str) -> float | None:
    found = _each(run, name)
    return fmean(found) if found else None


def _drift(run: Result) -> float | None:
    found = _each(run, "scale_offset")
    return max(found) - min(found) if found else None


def placed_json(results: Results, one: Experiment) -> dict[str, Any]:
    return {"title": one.title, "rows": [asdict(row) for row in placed_rows(results, one)]}


def ring_means(results: Results, curve: Curve) -> dict[float, Mean]:
    """Pixels off the centre, to the accuracy of the test digits that are so far off it along either axis.

    At the middle of each ring of `RING` pixels; the places are drawn again as the test set drew them.
    """
    by_seed = []
    for result in results.of(curve.configs[0]):
        wrong = result.errors.get(RINGS_AT)
        if wrong is None:
            continue
        data = result.config.data
        ring = _offsets(len(wrong), data.about.image, data.seed) // RING
        by_seed.append({int(one): 100 * float(1 - wrong[ring == one].mean()) for one in np.unique(ring)})
    rings = set.intersection(*map(set, by_seed)) if by_seed else set()
    return {RING * (one + 0.5): mean_of([seed[one] for seed in by_seed]) for one in sorted(rings)}


@cache
def _offsets(count: int, side: int, seed: int) -> np.ndarray:
    """How far each test digit of the size `RINGS_AT` is off the centre, the larger of rows and columns."""
    import torch

    from scalechannels.data.anywhere import drawn

    _, offsets = drawn(count, RINGS_AT, side, torch.Generator().manual_seed(seed))
    return offsets.abs().amax(1).numpy()
