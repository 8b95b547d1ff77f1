"""Runs what a comparison lacks and nothing twice; keeps each result as soon as it is there.

A run that fails, such as one whose data are not on this machine, is reported and does not stop the others.
What is interrupted resumes: finished runs are not trained again, the others continue from their last epoch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from scalechannels.compare.protocols import Method, Protocol, Tuning
from scalechannels.files import append_line, json_lines
from scalechannels.paper.results import RUNS, Results
from scalechannels.training.config import RunConfig

TRIES = "tuning.jsonl"
"""The file in results/ with what every try gave on the validation set."""
Say = Callable[[str], None]


def say_it(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Present:
    """How many runs a method has in a protocol."""

    protocol: Protocol
    method: Method
    found: int
    lacking: tuple[RunConfig, ...]


def present(
    protocols: Sequence[Protocol], results: Path, seeds: int | None = None, only: Sequence[str] = ()
) -> list[Present]:
    """For each protocol that can be run here and each of its methods: which runs have a result."""
    known, found = Results(results / RUNS), []
    for protocol in protocols:
        for method in () if protocol.fault else protocol.methods:
            if only and method.id not in only:
                continue
            runs = protocol.runs(method, seeds)
            lacking = tuple(run for run in runs if known.find(run) is None)
            found.append(Present(protocol, method, len(runs) - len(lacking), lacking))
    return found


def complete(
    protocols: Sequence[Protocol],
    runs: Path,
    results: Path,
    *,
    seeds: int | None = None,
    only: Sequence[str] = (),
    device: str = "cpu",
    say: Say = say_it,
    **options: Any,
) -> list[str]:
    """Train and measure what is missing; what failed, a line for each.

    options    of `training.fit`, such as root
    """
    from scalechannels.paper.reproduce import TOGETHER, groups
    from scalechannels.paper.reproduce import complete as train

    failed = [f"{one.id}: {one.fault}" for one in protocols if one.fault]
    for line in failed:
        say(f"left out: {line}")
    wanted = present(protocols, results, seeds, only)
    lacking = list(dict.fromkeys(run for one in wanted for run in one.lacking))
    parts = groups(lacking, TOGETHER if device == "cuda" else 1)
    for number, part in enumerate(parts, 1):
        names = ", ".join(dict.fromkeys(f"{run.network.label} on {run.data.name}" for run in part))
        say(f"{number}/{len(parts)}: {len(part)} {'run' if len(part) == 1 else 'runs'}, {names}")
        try:
            train(part, runs, results / RUNS, device, options, say)
        except (ValueError, OSError, MemoryError, FloatingPointError, RuntimeError) as error:
            failed.append(f"{names}: {error}")
            say(f"  failed: {error}")
    measure(wanted, results, device, say)
    return failed


def measure(wanted: Sequence[Present], results: Path, device: str, say: Say = say_it) -> None:
    """Measure what the methods with results cost on this device, where nobody has."""
    import torch

    from scalechannels.compare.cost import Costs, measured

    known, costs, place = Results(results / RUNS), Costs(results), torch.device(device)
    for one in wanted:
        run = one.protocol.run(one.method)
        result = next((found for found in map(known.find, one.protocol.runs(one.method)) if found), None)
        if result is None or place.type in costs.of(run).get("milliseconds", {}):
            continue
        colours = 3 if run.data.name == "cifar10" else 1
        say(f"measuring {one.method.title} on {one.protocol.id}")
        costs.add(run, measured(run.resolve(device), colours, len(result.values["classes"]), place))


def tries(protocol: Protocol, method: Method, tuning: Tuning) -> list[RunConfig]:
    """The runs of seed 0 that a method is tuned by; of data without validation images a part is held out."""
    run = protocol.run(method)
    data = replace(run.data, hold_out=run.data.hold_out or "hold_out" in run.data.about.takes)
    return [replace(run, data=data, training=replace(run.training, rate=rate)) for rate in tuning.rates]


def tune(
    protocols: Sequence[Protocol],
    tuning: Tuning,
    runs: Path,
    results: Path,
    *,
    only: Sequence[str] = (),
    device: str = "cpu",
    say: Say = say_it,
    **options: Any,
) -> list[dict[str, Any]]:
    """Every try of every method on the validation set: a line each in `TRIES`; those that are there stay.

    What is compared is the mean accuracy over all test sizes of the data.
    """
    from scalechannels.training.fit import fit

    path, found = results / TRIES, []
    kept = read_tries(results)
    for protocol in protocols:
        for method in () if protocol.fault else protocol.methods:
            for run in tries(protocol, method, tuning) if not only or method.id in only else ():
                name = run.resolve(device).name
                if name not in kept:
                    (done,) = fit([run], runs, device=device, split="validation", **options)
                    entries = done.result()["evaluation"]["sizes"]
                    by_size = {entry["size"]: entry["accuracy"] for entry in entries}
                    kept[name] = {
                        "protocol": protocol.id,
                        "method": method.id,
                        "rate": run.training.rate,
                        "run": name,
                        "mean": round(fmean(by_size.values()), 3),
                        "sizes": {f"{size:g}": round(value, 3) for size, value in by_size.items()},
                    }
                    append_line(path, kept[name])
                    say(f"{protocol.id}: {method.id} at rate {run.training.rate:g}: {kept[name]['mean']} %")
                found.append(kept[name])
    return found


def read_tries(results: Path) -> dict[str, dict[str, Any]]:
    """By the name of the run."""
    return {one["run"]: one for one in json_lines(results / TRIES)}
