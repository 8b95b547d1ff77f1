"""Trains the missing runs of experiments on a machine that has little beyond PyTorch and NumPy.

    python -m benchmarks.experiment_runs anywhere --root DATA --output runs.jsonl [--minutes 9] [--seeds 1]
    python -m benchmarks.experiment_runs --collect runs.jsonl      puts them into results/runs
    python -m benchmarks.experiment_runs anywhere --trial          every network for a few steps, kept nowhere
    python -m benchmarks.experiment_runs evidence-cifar --rows "FovLSE, whole" --again --outside outside.jsonl

It is `scalechannels reproduce` where packages such as safetensors are missing: no weights and no checkpoints
are kept, each finished run adds a line with its result, and a run that the file or results/ has already is
left out. Runs of a lower seed come first, and no run is begun after so many minutes, so that the same command
goes on where the last one stopped. Runs of one shape are trained together on a GPU, as `reproduce` does it.

With --outside FILE every network that was trained is also tested outside the range of the recipes, see
`benchmarks.outside`, since its weights are not kept. Runs that have a result are trained --again for that:
their results stay those of before.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.bare_machine import stand_in
from scalechannels.files import append_line, json_lines

RESULTS = Path(__file__).parent.parent / "results"


@dataclass(frozen=True)
class Line:
    """A run that is kept as one line of a file: what `Group` asks of a `Run`."""

    config: Any
    folder: Path
    output: Path | None

    def checkpoints(self) -> list[Any]:
        return []

    def save(self, checkpoint: Any) -> None:
        """Runs are short: one that is stopped begins again."""

    def finish(self, result: dict[str, Any]) -> None:
        accuracies = [entry["accuracy"] for entry in result["evaluation"]["sizes"]]
        print(f"  {result['name']}: {sum(accuracies) / len(accuracies):.2f} % over all sizes", flush=True)
        if self.output is not None:
            append_line(self.output, result)


def written(output: Path | None) -> dict[str, dict[str, Any]]:
    """The results of a file by name."""
    return {result["name"]: result for result in (json_lines(output) if output else ())}


def train(chosen: argparse.Namespace) -> None:
    import torch

    from scalechannels.paper.reproduce import TOGETHER, groups, missing, tested

    device = torch.device(chosen.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    known = Path("no results") if chosen.again else RESULTS
    runs = missing(chosen.ids, known, seeds=chosen.seeds, only=chosen.only)
    runs = of_rows(runs, chosen.ids, chosen.rows) if chosen.rows else runs
    done = written(chosen.outside if chosen.again else chosen.output)
    runs = [run for run in runs if run.resolve(device.type).name not in done]
    parts = groups(sorted(runs, key=lambda run: run.training.seed), TOGETHER if device.type == "cuda" else 1)
    parts.sort(key=lambda part: min(run.training.seed for run in part))
    if chosen.trial:
        parts = [[run] for run in trials(runs)]
    until = time.perf_counter() + 60 * chosen.minutes
    for number, part in enumerate(parts, 1):
        if time.perf_counter() > until:
            print(f"stopped after {chosen.minutes:g} minutes; {len(parts) - number + 1} groups are left")
            return
        names = dict.fromkeys(f"{run.network.name} {run.data.sizes} seed {run.training.seed}" for run in part)
        print(f"{number}/{len(parts)}: {len(part)} runs, {', '.join(names)}", flush=True)
        sizes = None if chosen.trial else (*part[0].data.about.test_sizes, *tested(part[0]))
        output = None if chosen.trial else chosen.output
        left = complete(part, device, chosen.root, output, sizes, chosen.outside, until)
        if left:
            print(f"stopped after {chosen.minutes:g} minutes; of this group, {left} are left")
            return
    print("all of these runs are done")


def of_rows(runs: Sequence[Any], ids: Sequence[str], rows: Sequence[str]) -> list[Any]:
    """The runs of these rows of the experiments' tables, which are their panels or their curves."""
    from scalechannels.paper.experiments import chosen
    from scalechannels.paper.recipes import seeded

    panels = [panel for one in chosen(ids) for panel in one.panels]
    named = [({panel.title, curve.label}, curve) for panel in panels for curve in panel.curves]
    if unknown := set(rows).difference(*(names for names, _ in named)):
        raise ValueError(f"{', '.join(sorted(unknown))}: no such row in {', '.join(ids)}")
    curves = [curve for names, curve in named if names & set(rows)]
    wanted = {seeded(config, 0) for curve in curves for config in curve.configs}
    return [run for run in runs if seeded(run, 0) in wanted]


def complete(
    part: Sequence[Any],
    device: Any,
    root: Path | None,
    output: Path | None,
    sizes: Sequence[Any] | None,
    outside: Path | None = None,
    until: float = math.inf,
) -> int:
    """Train and test runs that share a shape: together where their networks can be stacked on a GPU, else one
    after the other, and after this time of `time.perf_counter` no more. Given back is how many are left."""
    from scalechannels.training.distributed import joined
    from scalechannels.training.fit import _groups, train_and_test
    from scalechannels.training.group import Group, How

    together = device.type == "cuda"
    with tempfile.TemporaryDirectory() as folder, joined(device) as processes:
        lines: list[Any] = [Line(run.resolve(device.type), Path(folder), output) for run in part]
        last: list[Group] = []
        kinds = _groups(lines, together)
        for number, of_one_kind in enumerate(kinds):
            if time.perf_counter() > until:
                return len(kinds) - number
            group = train_and_test(of_one_kind, device, processes, How(root, together, sizes=sizes), last)
            if outside is not None:
                test_outside(group, device, root, outside)
    return 0


def test_outside(group: Any, device: Any, root: Path | None, outside: Path) -> None:
    """Test the networks of a group on what their recipes were not made for."""
    from benchmarks.outside import IMAGES, keep, measure
    from scalechannels.training.build import tested_network

    known = written(outside)
    pending = [
        (run.config, tested_network(run.config, group.networks[learner]))
        for run, learner in zip(group.runs, group.learner_of, strict=True)
        if run.config.name not in known
    ]
    if pending:
        configs, networks = zip(*pending, strict=True)
        keep(list(measure(configs, networks, IMAGES, device, root)), outside)  # all tests of a run, or none


def trials(runs: Sequence[Any]) -> list[Any]:
    """Each network once, on a few built-in digits: whether it can be trained and tested at all."""
    from scalechannels.training import datasets

    datasets.STROKES_TEST = 20
    made = {}
    for run in runs:
        data = replace(run.data, name="strokes", samples=20, distinct=run.data.distinct and 10)
        made[run.network] = replace(
            run, data=data, training=replace(run.training, epochs=1, batch=10, seed=0)
        )
    return list(made.values())


def collect(path: Path) -> None:
    """The lines of a file as committed results, each checked to be whole and of its configuration."""
    from scalechannels.paper.results import RUNS, read_result, store_result
    from scalechannels.training.config import ResolvedRun

    for name, result in written(path).items():
        target = RESULTS / RUNS / f"{name}.json"
        store_result(target, result)
        read_result(target, ResolvedRun.from_dict(result["config"]))
        print(target)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("ids", nargs="*", help="experiments, as for scalechannels reproduce")
    parser.add_argument("--output", type=Path, help="the file of JSON lines")
    parser.add_argument("--root", type=Path, help="where the data lie")
    parser.add_argument("--device")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--seeds", type=int, help="by default each experiment's own number")
    parser.add_argument("--only", nargs="*", default=(), help="networks, such as fovlse")
    parser.add_argument("--rows", nargs="*", default=(), help="rows of their tables, such as 'FovLSE, whole'")
    parser.add_argument("--outside", type=Path, metavar="FILE", help="also test outside the recipes' range")
    parser.add_argument("--again", action="store_true", help="train what has a result, for --outside alone")
    parser.add_argument("--trial", action="store_true")
    parser.add_argument("--collect", type=Path, metavar="FILE")
    chosen = parser.parse_args(words)
    kept = chosen.outside if chosen.again else chosen.output
    if chosen.collect is None and not (chosen.ids and (kept or chosen.trial)):
        parser.error(
            "give experiments and --output FILE (--outside FILE with --again) or --trial, or --collect FILE"
        )
    stand_in()
    if chosen.collect is not None:
        collect(chosen.collect)
    else:
        train(chosen)


if __name__ == "__main__":
    main()
