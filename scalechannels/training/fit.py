"""fit: train the runs of a list until each is done, resuming where an earlier process stopped.

On a GPU runs of one shape are trained together (see `stacked`); on a CPU one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from scalechannels.training.build import build_network, require_network
from scalechannels.training.config import ResolvedRun, RunConfig
from scalechannels.training.datasets import EvaluationSplit, Size
from scalechannels.training.distributed import Processes, joined
from scalechannels.training.group import Group, How
from scalechannels.training.inputs import trains_alone
from scalechannels.training.progress import tensorboard_writer
from scalechannels.training.runs import Run
from scalechannels.training.stacking import can_stack

if TYPE_CHECKING:
    from scalechannels.data.folder import ImageFolder


def fit(
    configs: Sequence[RunConfig],
    folder: Path | str = "runs",
    *,
    device: torch.device | str | None = None,
    root: Path | None = None,
    split: EvaluationSplit = "test",
    sizes: Sequence[Size] | None = None,
    together: bool | None = None,
    compiled: bool | None = None,
    stream: bool = False,
    log: bool = False,
    label: str | None = None,
    images: ImageFolder | None = None,
    quiet: bool = False,
) -> list[Run]:
    """Train, evaluate and save each run under `folder`; those that are done are left as they are.

    A run that is done but was not tested on this split and all of these sizes is only tested again.

    device     "cuda", "cpu", or None for the GPU where there is one
    root       where downloaded data is looked for
    split      what is evaluated at the end: choose on "validation", report on "test"
    sizes      the sizes to evaluate at, by default all that the data has; (low, high) is a test set with all
               sizes in between, log-uniform
    together   train runs of one shape as one; by default on a GPU
    compiled   torch.compile the step; by default on a GPU, for the backbones of this library
    stream     keep the images in main memory and bring them batch by batch with workers, which is also what
               happens where they do not fit on the device
    log        write TensorBoard events into the runs' folders
    label      what the progress bar calls these runs; by default the run's name
    images     own images that are in memory already, in place of those of the configurations' folder
    quiet      show no progress bar
    """
    device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    for config in configs:
        require_network(config.network)
    resolved = [config.resolve(device.type) for config in configs]
    if log:
        tensorboard_writer()  # where it is missing, fail before any work
    with joined(device) as processes:
        for config in resolved:
            processes.require_batch(config.training.batch)
        runs = [Run.open(folder, config) for config in resolved] if processes.writes else []
        processes.wait()
        runs = runs or [Run.open(folder, config) for config in resolved]
        wanted = device.type == "cuda" if together is None else together
        # Stacked networks know no batch norm over several processes, and streams feed one network.
        as_one = wanted and processes.count == 1 and not stream
        how = How(root, as_one, compiled, stream, log, split, sizes, label, images, quiet)
        last: list[Group] = []
        for group in _groups(runs, how.together):
            with ExitStack() as held:
                for run in group if processes.writes else ():
                    held.enter_context(run.exclusive())
                try:
                    _complete(group, device, processes, how, last)
                except torch.OutOfMemoryError as error:
                    raise MemoryError(
                        f"out of memory on {device}: give a smaller training.batch, train fewer runs at "
                        f"once, or free the device of other programs ({error})"
                    ) from error
                processes.wait()
    return runs


def _complete(
    group: Sequence[Run], device: torch.device, processes: Processes, how: How, last: list[Group]
) -> None:
    """Train the runs that are not done; of those that are, test again what was tested otherwise."""
    done = [run for run in group if run.done]
    parts = _in_step([run for run in group if run not in done])
    processes.wait()
    for pending in parts:
        train_and_test(pending, device, processes, how, last)
    if done and processes.writes:
        from scalechannels.training.retest import is_tested, retest

        for run in done:
            if not is_tested(run, how.split, how.sizes):
                retest(run, device, how.split, how.sizes, how.root, how.stream)


def train_and_test(
    runs: Sequence[Run], device: torch.device, processes: Processes, how: How, last: list[Group]
) -> Group:
    """Train and test runs that share a shape.

    last       holds the group before, afterwards the one of these runs, if it can be followed
    """
    group = last.pop() if last and last[0].can_follow(runs) else None
    last.clear()  # its memory is free before another one needs it
    if group is None:
        group = Group(runs, device, processes, how)
    else:
        group.follow(runs)
    group.train()
    group.evaluate()
    if group.trainer.captures:
        last.append(group)
    return group


def _groups(runs: Sequence[Run], together: bool) -> list[list[Run]]:
    """Runs that can be trained as one, see `RunConfig.shape`, or that train the same weights."""
    groups: dict[ResolvedRun, list[Run]] = {}
    for run in dict.fromkeys(runs):
        as_one = together and not trains_alone(run.config) and can_stack(build_network(run.config))
        groups.setdefault(run.config.shape if as_one else run.config.learnt, []).append(run)
    return list(groups.values())


def _in_step(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs that can resume from a common epoch, so that a new run does not set back older ones."""
    parts: list[tuple[set[int], list[Run]]] = []
    for run in runs:
        epochs = {state.epoch for state in run.checkpoints()} or {0}
        for common, part in parts:
            if common & epochs:
                common &= epochs
                part.append(run)
                break
        else:
            parts.append((epochs, [run]))
    return [part for _, part in parts]
