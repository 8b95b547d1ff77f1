"""Many runs: one after the other here, or each as a task on a Ray cluster.

A run that fails does not stop the others; failures are reported at the end. Started again, a sweep resumes
where it stopped: runs that are done are left as they are, and the others continue from their checkpoints.

On a cluster every machine must see the folder of the runs under the same path. A task whose process dies is
started again, there or elsewhere, and resumes from the last epoch's checkpoint.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from scalechannels.training.config import RunConfig
from scalechannels.training.fit import fit
from scalechannels.training.retest import is_tested
from scalechannels.training.runs import Run

RETRIES = 3
"""How often a task that died is started again."""


class RunsFailedError(RuntimeError):
    """Some runs of a sweep did not end well; the message has a line for each."""


def sweep(
    configs: Sequence[RunConfig],
    folder: Path | str = "runs",
    *,
    ray: bool = False,
    report: Callable[[str], None] | None = None,
    **options: Any,
) -> list[Run]:
    """Do all runs, as `fit(configs, folder, **options)`, in the order given.

    ray      one task for each run on the Ray cluster that is there (RAY_ADDRESS, `ray start`), or a local
             one; a task has a GPU where the cluster has any and options do not ask for a CPU
    report   gets a line for each finished run; by default they go to the standard error
    """
    if not configs:
        raise ValueError("a sweep needs at least one run")
    # Resolved first: what cannot be trained fails before any work, and the same run twice is one.
    keys = [(config.resolve("cpu"), config.resolve("cuda")) for config in configs]
    unique = [config for place, config in enumerate(configs) if keys.index(keys[place]) == place]
    say = report or partial(print, file=sys.stderr, flush=True)
    done: dict[RunConfig, Run] = {}
    failed: list[str] = []
    outcomes = (_on_ray if ray else _here)(unique, Path(folder), options)
    for count, (config, name, outcome) in enumerate(outcomes, 1):
        if isinstance(outcome, Run):
            done[config] = outcome
            say(f"{count}/{len(unique)} {name}: done")
        else:
            explained = isinstance(outcome, (ValueError, OSError))  # else the kind of error says more
            failed.append(f"{name}: {'' if explained else type(outcome).__name__ + ': '}{outcome}")
            say(f"{count}/{len(unique)} {name}: failed")
    if failed:
        raise RunsFailedError(
            f"{len(failed)} of {len(unique)} runs failed:\n" + "\n".join(failed) + "\nRemove the causes and "
            "start the sweep again: finished runs stay as they are, the others resume from their checkpoints"
        )
    return [done[configs[keys.index(key)]] for key in keys]


Outcome = tuple[RunConfig, str, "Run | Exception"]
"""The run as it was given, its name, and how it ended."""


def _here(configs: Sequence[RunConfig], folder: Path, options: dict[str, Any]) -> Iterator[Outcome]:
    import torch

    device = torch.device(options.get("device") or ("cuda" if torch.cuda.is_available() else "cpu"))
    together = options.get("together")
    as_one = device.type == "cuda" if together is None else together
    # Runs that are trained together come to `fit` as one list; others one by one, each with its own line.
    parts = [list(configs)] if as_one else [[config] for config in configs]
    for part in parts:
        try:
            for config, run in zip(part, fit(part, folder, **options), strict=True):
                yield config, run.config.name, run
        except Exception as error:
            for config in part:  # some may have been done before another failed
                run = Run.open(folder, config.resolve(device.type))
                yield config, run.config.name, run if run.done and _is_tested(run, options) else error


def _is_tested(run: Run, options: dict[str, Any]) -> bool:
    """Whether a done run is tested as asked; one whose result cannot be read is not."""
    try:
        return is_tested(run, options.get("split", "test"), options.get("sizes"))
    except ValueError:
        return False


def _on_ray(configs: Sequence[RunConfig], folder: Path, options: dict[str, Any]) -> Iterator[Outcome]:
    try:
        import ray
    except ImportError as error:
        raise ImportError('Ray is not installed: pip install "scalechannels[ray]"') from error
    started = not ray.is_initialized()
    if started:
        ray.init(include_dashboard=False, log_to_driver=False)
    try:
        on_cpu = str(options.get("device") or "").startswith("cpu")
        gpus = 0 if on_cpu or not ray.cluster_resources().get("GPU") else 1
        task = ray.remote(_task).options(
            num_gpus=gpus,
            max_retries=RETRIES,
            retry_exceptions=[OSError],  # the dead process's lock, a file system that hesitates
        )
        place = folder.expanduser().resolve()  # tasks have working folders of their own
        waiting = {task.remote(config, place, options): config for config in configs}
        while waiting:
            (finished,), _ = ray.wait(list(waiting), num_returns=1)
            config = waiting.pop(finished)
            name = config.resolve("cuda" if gpus else "cpu").name
            try:
                run = ray.get(finished)
                yield config, run.config.name, run
            except ray.exceptions.RayTaskError as error:
                yield config, name, error.cause if isinstance(error.cause, Exception) else error
            except ray.exceptions.RayError as error:
                yield config, name, error
    finally:
        if started:
            ray.shutdown()


def _task(config: RunConfig, folder: Path, options: dict[str, Any]) -> Run:
    return fit([config], folder, **options)[0]
