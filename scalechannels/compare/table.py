"""The table of a protocol: accuracy inside and outside the training sizes, and what each method costs.

Law: a number is a mean over the seeds that have results, and says how many they are; nothing is shown for
runs that are not there. "Better by" is the difference to the protocol's reference over all test sizes with a
95 % interval over seeds and images, see `paper.paired`. Limit: times are those of the device that is named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from scalechannels.compare.cost import Costs
from scalechannels.compare.protocols import Method, Protocol
from scalechannels.paper.paired import Paired, paired_difference
from scalechannels.paper.results import RUNS, Result, Results
from scalechannels.paper.tables import Mean, mean_of


@dataclass(frozen=True)
class Row:
    """A method of a protocol."""

    method: Method
    seeds: int
    wanted: int
    inside: Mean | None
    outside: Mean | None
    """None where there are no results, or no such sizes."""
    better: Paired | None
    """Than the reference."""
    cost: dict[str, Any]
    training: float | None
    """Seconds of a run."""
    trained_on: str | None
    """The device of its training."""
    frontier: bool = False
    """Whether no other method on the same sizes is at least as accurate with fewer multiplications."""

    @property
    def accuracy(self) -> float | None:
        """What the frontier is about: outside the training sizes, where there are such."""
        found = self.outside or self.inside
        return None if found is None else found.mean


def rows(protocol: Protocol, results: Path, seeds: int | None = None) -> list[Row]:
    """All methods, in the order of the protocol; the reference has no difference."""
    known, costs = Results(results / RUNS), Costs(results)
    found = {
        method: [result for run in protocol.runs(method, seeds) if (result := known.find(run))]
        for method in protocol.methods
    }
    reference = found.get(protocol.reference, [])
    made = []
    for method, runs in found.items():
        at = [run.accuracies for run in runs]
        inside = _mean(at, protocol.inside)
        outside = _mean(at, lambda size: not protocol.inside(size))
        compared = method != protocol.reference and runs and reference
        times = [run.values["seconds"] for run in runs]
        trained = [one["training"] / one.get("runs_together", 1) for one in times]
        device = runs[0].values["environment"]["device"] if runs else None
        made.append(
            Row(
                method,
                len(runs),
                len(protocol.runs(method, seeds)),
                inside,
                outside,
                _difference(runs, reference) if compared else None,
                costs.of(protocol.run(method)),
                fmean(trained) if trained else None,
                device,
            )
        )
    points = [
        (row.cost.get("multiplications") if protocol.same_sizes(row.method) else None, row.accuracy)
        for row in made
    ]
    best = frontier(points)
    return [Row(**{**vars(row), "frontier": place in best}) for place, row in enumerate(made)]


def frontier(points: Sequence[tuple[float | None, float | None]]) -> list[int]:
    """The places of those (cost, accuracy) that beat all that cost as much or less, cheapest first."""
    whole = [
        (cost, accuracy, place)
        for place, (cost, accuracy) in enumerate(points)
        if cost is not None and accuracy is not None
    ]
    found, best = [], -1.0
    for _, accuracy, place in sorted(whole, key=lambda one: (one[0], -one[1])):
        if accuracy > best:
            best = accuracy
            found.append(place)
    return found


def _mean(accuracies: Sequence[dict[float, float]], counts: Callable[[float], bool]) -> Mean | None:
    values = [[one for size, one in run.items() if counts(size)] for run in accuracies]
    return mean_of([fmean(one) for one in values]) if values and all(values) else None


def _difference(runs: Sequence[Result], reference: Sequence[Result]) -> Paired | None:
    """Over the sizes that all were tested at; None where a result does not say which images were wrong."""
    errors = [[result.errors for result in network] for network in (runs, reference)]
    every = [set(one) for network in errors for one in network]
    sizes = sorted(size for size in set.intersection(*every) if not isinstance(size, tuple))
    if not sizes:
        return None
    right = [np.array([[~one[size] for size in sizes] for one in network]) for network in errors]
    return paired_difference(*right)


HEADS = ("method", "seeds", "inside", "outside", "better by", "parameters", "million products")
COSTS = ("training", "ms an image", "MB to learn")


def cells(row: Row) -> list[str]:
    """A row as text; a dash for what is missing."""
    cost = row.cost
    times = cost.get("milliseconds", {})
    shown = " / ".join(f"{one['value']:.3g} {device}" for device, one in sorted(times.items()))
    return [
        ("* " if row.frontier else "") + row.method.title,
        f"{row.seeds}/{row.wanted}",
        _with_spread(row.inside),
        _with_spread(row.outside),
        "–" if row.better is None else str(row.better),
        f"{cost['parameters']:,}" if cost else "–",
        f"{cost['multiplications'] / 1e6:,.1f}" if cost else "–",
        "–" if row.training is None else f"{row.training:,.0f} s",
        shown or "–",
        f"{cost['megabytes']:.1f}" if cost else "–",
    ]


def _with_spread(value: Mean | None) -> str:
    if value is None:
        return "–"
    return f"{value.mean:.2f}" if value.std is None else f"{value.mean:.2f} ± {value.std:.2f}"


def table_text(protocol: Protocol, found: Sequence[Row], markdown: bool = False) -> str:
    """The whole table, with what is published below it."""
    heads = [*HEADS, *COSTS]
    lines = [cells(row) for row in found]
    notes = [
        f"* on the frontier: no other method is as accurate with fewer products. {_trained(found)}".strip()
    ]
    notes += [
        f"Published, {one.method}: "
        + ", ".join(f"{value:.2f} % at {size:g}" for size, value in one.sizes.items())
        + f" ({one.note})"
        for one in protocol.published
    ]
    if markdown:
        rule = ["---"] * len(heads)
        body = "\n".join(f"| {' | '.join(line)} |" for line in (heads, rule, *lines))
        return "\n".join([f"### {protocol.title}", "", body, "", *notes])
    widths = [max(len(line[place]) for line in (heads, *lines)) for place in range(len(heads))]
    body = "\n".join(
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (heads, *lines)
    )
    return "\n".join([protocol.title, body, *notes])


def _trained(found: Sequence[Row]) -> str:
    devices = dict.fromkeys(row.trained_on for row in found if row.trained_on)
    return f"Trained on {', '.join(devices)}." if devices else ""


def table_json(protocol: Protocol, found: Sequence[Row]) -> dict[str, Any]:
    """The same as data."""
    return {
        "protocol": protocol.id,
        "title": protocol.title,
        "reference": protocol.reference.id,
        "methods": [
            {
                "method": row.method.id,
                "ours": row.method.ours,
                "seeds": row.seeds,
                "inside": None if row.inside is None else vars(row.inside),
                "outside": None if row.outside is None else vars(row.outside),
                "better": None
                if row.better is None
                else [row.better.difference, row.better.low, row.better.high],
                "training_seconds": row.training,
                "trained_on": row.trained_on,
                "frontier": row.frontier,
                **{key: row.cost.get(key) for key in ("parameters", "multiplications", "megabytes")},
                "milliseconds": {key: one["value"] for key, one in row.cost.get("milliseconds", {}).items()},
            }
            for row in found
        ],
        "published": [
            {"method": one.method, "sizes": dict(one.sizes), "note": one.note} for one in protocol.published
        ],
    }
