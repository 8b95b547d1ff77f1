"""fit: train the runs of a list until each is done, going on where an earlier process stopped.

On a GPU runs of one shape are trained together (see `stacked`); on a CPU one after the other.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from scalechannels.data.image_set import ImageSet
from scalechannels.network import ScaleChannelNetwork
from scalechannels.pretrained import Network
from scalechannels.sliding import SlidingWindowNetwork
from scalechannels.training.build import build_network
from scalechannels.training.config import RunConfig
from scalechannels.training.datasets import DataSets, EvaluationSplit, open_data, require_labels
from scalechannels.training.distributed import (
    Processes,
    joined,
    with_global_batch_norm,
    without_global_batch_norm,
)
from scalechannels.training.evaluate import as_json, evaluate
from scalechannels.training.progress import Progress
from scalechannels.training.runs import Checkpoint, Run, environment
from scalechannels.training.stacked import StackedNetwork, can_stack, stack_networks
from scalechannels.training.trainer import Trainer, mix, shuffled

MEMORY_SHARE = 0.5
"""Cached windows may fill this share of the free memory; beyond it, images are foveated in every step."""


class Alone(nn.Module):
    """One network in the form of a stack of one: inputs (1, B, …) to logits (1, B, K)."""

    def __init__(self, network: Network, cached: bool) -> None:
        super().__init__()
        self.network, self.cached = network, cached

    def forward(self, inputs: Tensor) -> Tensor:
        if self.cached:
            assert isinstance(self.network, ScaleChannelNetwork)
            return self.network.from_stack(inputs[0])[None]
        return self.network(inputs[0])[None]


def fit(
    configs: Sequence[RunConfig],
    folder: Path | str = "runs",
    *,
    device: torch.device | str | None = None,
    root: Path | None = None,
    split: EvaluationSplit = "test",
    sizes: Sequence[float] | None = None,
    together: bool | None = None,
    compiled: bool | None = None,
    log: bool = False,
) -> list[Run]:
    """Train, evaluate and save each run under `folder`; those that are done are left as they are.

    device     "cuda", "cpu", or None for the GPU where there is one
    root       where downloaded data is looked for
    split      what is evaluated at the end: choose on "validation", report on "test"
    sizes      the sizes to evaluate at, by default all that the data has
    together   train runs of one shape as one; by default on a GPU
    compiled   torch.compile the step; by default for runs together on a GPU
    log        write TensorBoard events into the runs' folders
    """
    device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    resolved = [config.resolve(device.type) for config in configs]
    on_gpu = device.type == "cuda"
    together = on_gpu if together is None else together
    if log:
        _writer()  # a missing TensorBoard is told before any work
    with joined(device) as processes:
        for config in resolved:
            processes.require_batch(config.training.batch or 1)
        runs = [Run.open(folder, config) for config in resolved] if processes.writes else []
        processes.wait()
        runs = runs or [Run.open(folder, config) for config in resolved]
        # Stacked networks know no batch norm over several processes.
        together = together and processes.count == 1
        for group in _groups(runs, together):
            with ExitStack() as held:
                if processes.writes:
                    for run in group:
                        held.enter_context(run.exclusive())
                parts = _in_step([run for run in group if not run.done])
                processes.wait()
                for pending in parts:
                    try:
                        session = _Session(pending, device, root, processes, together, compiled, log)
                        session.train()
                        session.evaluate(split, sizes)
                    except torch.OutOfMemoryError as error:
                        raise MemoryError(
                            f"out of memory on {device}: give a smaller training.batch, train fewer runs at "
                            f"once, or have other programs leave the device. It said: {error}"
                        ) from error
                processes.wait()
    return runs


class _Session:
    """The training of runs that share a shape."""

    def __init__(
        self,
        runs: Sequence[Run],
        device: torch.device,
        root: Path | None,
        processes: Processes,
        together: bool,
        compiled: bool | None,
        log: bool,
    ) -> None:
        self.runs, self.device, self.processes, self.log = runs, device, processes, log
        self.training = runs[0].config.training
        started = time.perf_counter()
        self.data: list[DataSets] = []
        self.data_of: list[int] = []
        for run in runs:
            known = [r.config.data for r in runs[: len(self.data_of)]]
            if run.config.data in known:
                self.data_of.append(self.data_of[known.index(run.config.data)])
            else:
                self.data_of.append(len(self.data))
                self.data.append(open_data(run.config.data, device, root))
        sets = [data.training() for data in self.data]
        for data, made in zip(self.data, sets, strict=True):
            require_labels(made.labels, len(data.classes))
        self.count = len(sets[0])
        assert self.training.batch is not None
        shuffled(self.count, self.training.batch, 0, 0)  # a batch that is too large is told before any work
        channels = sets[0].images.shape[1]
        self.networks = [
            build_network(run.config, channels, len(self.data[0].classes)).to(device) for run in runs
        ]
        assert self.training.precision is not None
        stacked = together and can_stack(self.networks[0])
        if len(runs) == 1 and not _fits(
            _window_bytes(self.networks[0], sets, self.training.precision), device
        ):
            stacked = False  # foveated in every step instead
        inputs, cached = _inputs(self.networks[0], sets, self.training.precision, channels_last=stacked)
        self.model: nn.Module = (
            stack_networks(self.networks, *sets[0].images.shape[2:]).to(device)
            if stacked
            else Alone(self.networks[0], cached)
        )
        if processes.count > 1:
            with_global_batch_norm(self.model)
        self.trainer = Trainer(
            self.model,
            inputs,
            torch.stack([made.labels for made in sets]),
            self.data_of,
            precision=self.training.precision,
            compiled=(stacked and device.type == "cuda") if compiled is None else compiled,
            processes=processes,
        )
        self.seconds = {"data": time.perf_counter() - started, "training": 0.0, "evaluation": 0.0}
        self.history: list[list[dict[str, float]]] = [[] for _ in runs]

    def train(self) -> None:
        assert self.training.epochs is not None
        assert self.training.batch is not None
        first = self._resume()
        steps = self.count // self.training.batch
        label = self.runs[0].config.name if len(self.runs) == 1 else f"{len(self.runs)} runs together"
        with Progress(label, self.processes.writes) as progress:
            for epoch in range(first, self.training.epochs):
                rate = self.training.rate_at(epoch)
                progress.epoch(epoch, self.training.epochs, steps, self.training.batch, rate)
                losses, seconds = self._epoch(epoch, rate, progress)
                progress.finished(losses)
                self.seconds["training"] += seconds
                for run, loss in enumerate(losses):
                    self.history[run].append(
                        {"epoch": epoch + 1, "rate": rate, "loss": loss, "seconds": seconds}
                    )
                self._save(epoch + 1)
        if isinstance(self.model, StackedNetwork):
            self.model.unstack(self.networks)
        without_global_batch_norm(self.model)

    def _epoch(self, epoch: int, rate: float, progress: Progress) -> tuple[list[float], float]:
        assert self.training.batch is not None
        order = torch.stack(
            [shuffled(self.count, self.training.batch, run.config.training.seed, epoch) for run in self.runs]
        )  # (R, steps, B)
        # Dropout depends on the seed and the epoch alone, so a resumed run draws what it would have drawn.
        torch.manual_seed(mix(self.training.seed, epoch) + self.processes.rank)
        started = time.perf_counter()
        losses = self.trainer.epoch(self.processes.share(order), rate, progress.step)
        return self.processes.mean(losses), time.perf_counter() - started

    def _resume(self) -> int:
        """Go on from the last epoch that all runs have completed."""
        found = [{state.epoch: state for state in run.checkpoints()} for run in self.runs]
        common = set.intersection(*(set(states) for states in found))
        if not common:
            return 0
        states = [epochs[max(common)] for epochs in found]
        for run, state in enumerate(states):
            self.history[run] = state.history
            self.seconds["training"] = sum(entry["seconds"] for entry in state.history)
        self.trainer.load_tensors(
            {
                name: _joined([state.tensors[name] for state in states], self._of_runs(name))
                for name in states[0].tensors
            }
        )
        return states[0].epoch

    def _save(self, epoch: int) -> None:
        if not self.processes.writes:
            return
        tensors = self.trainer.tensors()
        for index, run in enumerate(self.runs):
            mine = {name: value[index] if self._of_runs(name) else value for name, value in tensors.items()}
            run.save(Checkpoint(epoch, mine, self.history[index]))
            if self.log:
                _log(run.folder, self.history[index][-1])

    def _of_runs(self, name: str) -> bool:
        """Whether a tensor of the trainer has the leading axis of runs."""
        return isinstance(self.model, StackedNetwork) and not name.startswith("adam.step.")

    def evaluate(self, split: EvaluationSplit, sizes: Sequence[float] | None) -> None:
        if not self.processes.writes:
            return
        for index, run in enumerate(self.runs):
            started = time.perf_counter()
            data, network = self.data[self.data_of[index]], self.networks[index].eval()
            tested = data.test_sizes if sizes is None else tuple(sizes)
            with Progress(f"evaluating {run.config.name}", True) as progress:
                results = evaluate(
                    network,
                    partial(data.testing, split=split),
                    tested,
                    len(data.classes),
                    partial(progress.tested, count=len(tested)),
                )
            network.save_pretrained(run.folder)
            seconds = {
                **self.seconds,
                "evaluation": time.perf_counter() - started,
                "runs_together": len(self.runs),
            }
            run.finish(self._result(run, index, as_json(results, split), seconds))

    def _result(
        self, run: Run, index: int, evaluation: dict[str, Any], seconds: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "name": run.config.name,
            "config": run.config.as_dict(),
            "classes": list(self.data[self.data_of[index]].classes),
            "parameters": sum(parameter.numel() for parameter in self.networks[index].parameters()),
            "environment": {**environment(self.device), "processes": self.processes.count},
            "seconds": seconds,
            "history": self.history[index],
            "evaluation": evaluation,
        }


def _groups(runs: Sequence[Run], together: bool) -> list[list[Run]]:
    """Runs that can be trained as one: all but the training sizes and the seeds agree."""
    groups: dict[Any, list[Run]] = {}
    for run in dict.fromkeys(runs):
        config = run.config
        shape = (
            config.data.name,
            config.data.samples,
            config.network,
            {**config.training.__dict__, "seed": 0},
        )
        as_one = together and can_stack(build_network(config))
        groups.setdefault(str(shape) if as_one else run.config.name, []).append(run)
    return list(groups.values())


def _in_step(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs that have an epoch in common to go on from, so that a new run does not set back older ones."""
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


@torch.no_grad()
def _inputs(
    network: Network, sets: Sequence[ImageSet], precision: str, *, channels_last: bool
) -> tuple[Tensor, bool]:
    """The resident inputs (D, N, …), and whether they are foveated windows already."""
    images = torch.stack([made.images for made in sets])  # (D, N, C, H, W)
    kind = torch.bfloat16 if precision == "bfloat16" else torch.float32
    if isinstance(network, SlidingWindowNetwork):
        return (images.to(kind) if channels_last else images), False
    if not isinstance(network, ScaleChannelNetwork):
        return (images[:, :, None].movedim(3, -1).to(kind) if channels_last else images), False
    D, N, C = images.shape[:3]
    side, S = network.foveate.window, len(network.grid)
    needed = _window_bytes(network, sets, precision)
    if not _fits(needed, images.device):
        if channels_last:
            raise MemoryError(
                f"the windows of these runs need {needed / 2**30:.1f} GiB; train fewer runs together"
            )
        return images, False
    windows = torch.empty(D, N, S, C, side, side, dtype=kind, device=images.device)
    for made, out in zip(images, windows, strict=True):
        for part, target in zip(made.split(256), out.split(256), strict=True):
            target.copy_(network.foveate(part))
    return (windows.movedim(3, -1).contiguous() if channels_last else windows), True


def _window_bytes(network: Network, sets: Sequence[ImageSet], precision: str) -> int:
    """What the cached windows of these sets take; nothing where a network has none."""
    if not isinstance(network, ScaleChannelNetwork):
        return 0
    pixels = len(network.grid) * sets[0].images.shape[1] * network.foveate.window**2
    return sum(len(made) for made in sets) * pixels * (2 if precision == "bfloat16" else 4)


def _fits(needed: int, device: torch.device) -> bool:
    return needed <= MEMORY_SHARE * _free_memory(device)


def _free_memory(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if "SC_AVPHYS_PAGES" not in os.sysconf_names:  # not every system tells; half of all is a fair guess
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _joined(values: Sequence[Tensor], of_runs: bool) -> Tensor:
    return torch.stack(list(values)) if of_runs else values[0]


def _log(folder: Path, entry: dict[str, float]) -> None:
    with _writer()(str(folder / "tensorboard")) as writer:
        for name in ("loss", "rate"):
            writer.add_scalar(name, entry[name], int(entry["epoch"]))


def _writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ImportError("TensorBoard is not installed: pip install 'scalechannels[log]'") from error
    return SummaryWriter
