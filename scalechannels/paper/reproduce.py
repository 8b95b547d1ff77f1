"""Runs what experiments lack and nothing twice, and keeps the results.

    reproduce(["table1", "figure5"], runs="runs", results="results")

Runs of one shape are trained together on a GPU. Each group's results are stored as soon as it is done, so
what is interrupted resumes: finished runs are not trained again, the others continue from their last epoch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scalechannels.paper.experiments import EXPERIMENTS, chosen
from scalechannels.paper.results import PICTURES, RUNS, Results, read_result, store_result
from scalechannels.training.config import NetworkName, ResolvedRun, RunConfig

TOGETHER = 12
"""At most so many runs are trained as one."""


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def missing(
    ids: Sequence[str],
    results: Path | str,
    *,
    seeds: int | None = None,
    only: Sequence[NetworkName] = (),
    say: Callable[[str], None] = _say,
) -> list[RunConfig]:
    """The runs of these experiments that have no result to use, each once; what cannot be used is named.

    seeds   how many, by default each experiment's own number
    only    runs of these networks
    """
    wanted = dict.fromkeys(run for one in chosen(ids) for run in one.runs(seeds))
    known = Results(Path(results) / RUNS)
    lacking = [
        run
        for run in wanted
        if (not only or run.network.name in only) and known.find(run, tested(run)) is None
    ]
    for fault in known.faults.values():
        say(f"{fault}; it counts as missing")
    return lacking


def tested(run: RunConfig) -> tuple[tuple[float, float], ...]:
    """The test sets of many sizes that a run's experiments ask for."""
    same = replace(run, training=replace(run.training, seed=0))
    asking = (one for one in EXPERIMENTS if one.tested and same in one.runs(1))
    return tuple(dict.fromkeys(size for one in asking for size in one.tested))


def groups(runs: Sequence[RunConfig], together: int = TOGETHER) -> list[list[RunConfig]]:
    """Runs that can be trained as one and are tested at the same sizes, at most so many at once.

    Runs that learn the same weights are trained once, and count as one.
    """
    shapes: dict[Any, dict[RunConfig, list[RunConfig]]] = {}
    for run in runs:
        shapes.setdefault((run.shape, tested(run)), {}).setdefault(run.learnt, []).append(run)
    return [
        [run for same in learners[start : start + together] for run in same]
        for learners in (list(by_learnt.values()) for by_learnt in shapes.values())
        for start in range(0, len(learners), together)
    ]


def reproduce(
    ids: Sequence[str],
    runs: Path | str = "runs",
    results: Path | str = "results",
    *,
    seeds: int | None = None,
    only: Sequence[NetworkName] = (),
    device: str | None = None,
    say: Callable[[str], None] = _say,
    **options: Any,
) -> list[RunConfig]:
    """Train what is missing, keep the results, and return what is still missing.

    runs         the folder of the runs, with weights and checkpoints
    results      the folder that gets one JSON for each run
    seeds, only  as for `missing`
    options      of `training.fit`, such as root
    """
    import torch

    from scalechannels.paper.figures.images import make_pictures

    place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu")).type
    lacking = missing(ids, results, seeds=seeds, only=only, say=say)
    parts = groups(lacking, TOGETHER if place == "cuda" else 1)
    for number, part in enumerate(parts, 1):
        names = ", ".join(dict.fromkeys(f"{run.network.name} tr{_sizes(run)}" for run in part))
        say(f"{number}/{len(parts)}: {len(part)} {'run' if len(part) == 1 else 'runs'}, {names}")
        complete(part, Path(runs), Path(results) / RUNS, place, options, say)
    make_pictures(chosen(ids), Path(runs), Path(results) / PICTURES, place, options, say)
    return missing(ids, results, seeds=seeds, only=only, say=say)


def complete(
    part: Sequence[RunConfig],
    folder: Path,
    results: Path,
    device: str,
    options: dict[str, Any],
    say: Callable[[str], None],
) -> None:
    from scalechannels.training.fit import fit

    wanted = tested(part[0])
    for run in part:
        _set_aside(folder, run.resolve(device), wanted, say)
    single = part[0].data.about.test_sizes
    for done in fit(part, folder, device=device, sizes=(*single, *wanted), **options):
        values = read_result(done.folder / "result.json", done.config, wanted)
        store_result(results / f"{done.config.name}.json", values)
        accuracies = [entry["accuracy"] for entry in values["evaluation"]["sizes"][: len(single)]]
        say(f"  {done.config.name}: {sum(accuracies) / len(single):.2f} % over all sizes")


def _set_aside(
    folder: Path, config: RunConfig, wanted: Sequence[tuple[float, float]], say: Callable[[str], None]
) -> None:
    """Move a run's files away where they are damaged or belong to another run, so that it starts again."""
    fault = _fault(folder / config.name, config, wanted)
    if fault:
        names = (f"{config.name}.set-aside-{number}" for number in range(1, 1000))
        name = next(name for name in names if not (folder / name).exists())
        (folder / config.name).rename(folder / name)
        say(f"{fault}; moved to {name} and run again")


def _fault(run: Path, config: RunConfig, wanted: Sequence[tuple[float, float]]) -> str:
    """What is wrong with a run's own files; empty where they are right or not there yet."""
    described, result = run / "config.toml", run / "result.json"
    try:
        if described.exists() and ResolvedRun.from_toml(described) != config:
            return f"{described} describes another run"
        if result.exists():
            entries = read_result(result, config, wanted)["evaluation"]["sizes"]
            if not any(entry.get("errors") for entry in entries):
                return f"{result} does not say which images were wrong"
    except (ValueError, OSError) as error:
        return str(error)
    return ""


def _sizes(run: RunConfig) -> str:
    samples = "" if run.data.samples is None else f", {run.data.samples} samples"
    return "-".join(f"{size:g}" for size in run.data.sizes) + samples
