"""The training of runs that share a shape: data on the device, the model, epochs, checkpoints, evaluation."""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from scalechannels.backbones.paper import ConvBackbone
from scalechannels.data.image_set import ImageSet
from scalechannels.training import stacking
from scalechannels.training.build import build_network, tested_network
from scalechannels.training.datasets import DataSets, EvaluationSplit, Size, open_data, require_labels
from scalechannels.training.distributed import Processes, with_global_batch_norm, without_global_batch_norm
from scalechannels.training.evaluate import evaluation
from scalechannels.training.inputs import Alone, Inputs, trains_alone
from scalechannels.training.progress import Progress, log_entry
from scalechannels.training.runs import Checkpoint, Run, environment
from scalechannels.training.trainer import Trainer, balancing, mix, shuffled

if TYPE_CHECKING:
    from scalechannels.data.folder import ImageFolder


TRIED, TIMED = 3, 5
"""Steps of two images, and whole ones, by which an epoch is timed."""


@dataclass(frozen=True)
class How:
    """How runs are trained and tested, see `fit`; none of it changes what they are."""

    root: Path | None = None
    together: bool = False
    compiled: bool | None = None
    stream: bool = False
    log: bool = False
    split: EvaluationSplit = "test"
    sizes: Sequence[Size] | None = None
    label: str | None = None
    images: ImageFolder | None = None
    quiet: bool = False


class Group:
    """The training of runs that share a shape.

    `learners` are the configurations that are trained, each once, and `learner_of` says for each run which of
    them it tests: runs that are only tested in other ways share one.
    """

    def __init__(self, runs: Sequence[Run], device: torch.device, processes: Processes, how: How) -> None:
        self.runs, self.device, self.processes, self.how = runs, device, processes, how
        self.learners = list(dict.fromkeys(run.config.learnt for run in runs))
        self.learner_of = [self.learners.index(run.config.learnt) for run in runs]
        self.training = self.learners[0].training
        self.seconds = {"data": 0.0, "training": 0.0, "evaluation": 0.0}
        self.history: list[list[dict[str, float]]] = [[] for _ in self.learners]
        self.data: list[DataSets] = []
        self.data_of: list[int] = []
        self.renew: Callable[[Sequence[ImageSet]], None]
        self.stack: Any = None
        started = time.perf_counter()
        streamed, sets = self._make_sets()
        self.image_size = (sets[0].images.shape[2], sets[0].images.shape[3])
        self.counts = [len(sets[data]) for data in self.data_of]
        for learner in range(len(self.learners)):
            self._order(learner, 0)  # a batch that is too large fails before any work
        channels, classes = sets[0].images.shape[1], len(self.data[0].classes)
        self.networks = [build_network(config, channels, classes).to(device) for config in self.learners]
        for network in self.networks if processes.count > 1 else ():
            with_global_batch_norm(network)
        self.trainer = self._streamed(sets) if streamed else self._resident(sets)
        self.stopping = self._stopping()
        self.seconds["data"] = time.perf_counter() - started

    def can_follow(self, runs: Sequence[Run]) -> bool:
        """Whether other runs can be trained by the step that was compiled and captured for these."""
        first = self.learners[0]
        same = not first.data.about.of_user and first.training.class_weights == "none"  # images and labels
        alone = self.stack is None and self.stopping is None and len(self.learners) == 1
        if not (same and alone and self.trainer.captures):
            return False
        return {run.config.learnt.step for run in runs} == {first.step}

    def follow(self, runs: Sequence[Run]) -> None:
        """Go on to other runs, if `can_follow` says so: to compile can take as long as to train."""
        self.runs, self.learners = runs, [runs[0].config.learnt]
        self.learner_of, self.history = [0] * len(runs), [[]]
        self.training = self.learners[0].training
        self.seconds = dict.fromkeys(self.seconds, 0.0)
        started = time.perf_counter()
        _, sets = self._make_sets()
        self.renew(sets)
        (network,) = self.networks
        channels, classes = sets[0].images.shape[1], len(self.data[0].classes)
        network.load_state_dict(build_network(self.learners[0], channels, classes).state_dict())
        self.trainer.restart()
        self.seconds["data"] = time.perf_counter() - started

    def _make_sets(self) -> tuple[bool, list[ImageSet]]:
        """The training sets, each once, and whether they stay in main memory."""
        wanted = list(dict.fromkeys(config.data for config in self.learners))
        self.data_of = [wanted.index(config.data) for config in self.learners]
        streamed = self.how.stream
        try:
            place = "cpu" if streamed else self.device
            self.data = [open_data(data, place, self.how.root, self.how.images) for data in wanted]
            sets = [data.training() for data in self.data]
        except torch.OutOfMemoryError:
            if len(self.learners) > 1:
                raise
            streamed = True
            self.data = [open_data(wanted[0], "cpu", self.how.root, self.how.images)]
            sets = [self.data[0].training()]
        if not all(made.in_memory for made in sets):
            streamed = True
            if len(self.learners) > 1:
                raise MemoryError("these images do not fit into memory: train one run at a time")
        for data, made in zip(self.data, sets, strict=True):
            require_labels(made.labels, len(data.classes))
        return streamed, sets

    def _resident(self, sets: Sequence[ImageSet]) -> Trainer:
        network = self.networks[0]
        together = self.how.together and not trains_alone(self.learners[0])
        stacked = together and stacking.can_stack(network)
        inputs = Inputs(self.learners, self.networks, self.data_of, sets, stacked=stacked)
        self.renew = inputs.renew
        if inputs.stacked:
            self.stack = stacking.stack(self.networks, *self.image_size).to(self.device)
        compiled = self.how.compiled
        if compiled is None:
            made_for_it = inputs.stacked or network.look == "everywhere"
            small = isinstance(network.backbone, ConvBackbone)
            compiled = self.device.type == "cuda" and (made_for_it or not small)
            compiled = compiled and not self.learners[0].network.is_module  # nobody has tried it
        return Trainer(
            self.stack or Alone(network, inputs.windows, inputs.detail, inputs.decoys),
            inputs.resident,
            inputs.labels,
            inputs.of_run,
            compiled=compiled,
            augmentations=inputs.augmentations,
            **self._options(sets),
        )

    def _streamed(self, sets: Sequence[ImageSet]) -> Trainer:
        from scalechannels.training.streaming import StreamTrainer

        inputs = Inputs(self.learners, self.networks, self.data_of, sets, stacked=False, streamed=self.device)
        trainer = StreamTrainer(
            Alone(self.networks[0], inputs.windows, inputs.detail, inputs.decoys),
            sets[0].dataset(),
            device=self.device,
            compiled=bool(self.how.compiled),
            augmentations=inputs.augmentations,
            **self._options(sets),
        )

        def renew(again: Sequence[ImageSet]) -> None:
            trainer.dataset = again[0].dataset()
            inputs.renew(again)

        self.renew = renew
        return trainer

    def _options(self, sets: Sequence[ImageSet]) -> dict[str, Any]:
        pretrained = getattr(self.networks[0].backbone, "pretrained", list)
        return {
            "slow": pretrained(),
            "share": self.training.pretrained_share,
            "precision": self.training.precision,
            "processes": self.processes,
            "smoothing": [config.training.smoothing for config in self.learners],
            "average": [config.training.average for config in self.learners],
            "corrected": [config.training.average_corrected for config in self.learners],
            "class_weights": self._class_weights(sets),
        }

    def _stopping(self) -> Any:
        """What ends the training early, where the run asks for it."""
        if self.training.patience is None:
            return None
        from scalechannels.training.stopping import Stopping

        (data,), (network,) = self.data, self.networks  # such runs train alone
        images = data.testing(1.0, "validation").to(self.device)
        return Stopping(self.training.patience, self.trainer, network, images, len(data.classes))

    def _class_weights(self, sets: Sequence[ImageSet]) -> Tensor | None:
        """What each class weighs in the loss of each learner (R, K); None where all weigh the same."""
        if all(config.training.class_weights == "none" for config in self.learners):
            return None
        classes, rows = len(self.data[0].classes), []
        for config, data in zip(self.learners, self.data_of, strict=True):
            balanced = config.training.class_weights == "balanced"
            rows.append(balancing(sets[data].labels.cpu(), classes) if balanced else torch.ones(classes))
        return torch.stack(rows)

    def train(self) -> None:
        first = self._resume()
        steps = len(self._order(0, 0))
        label = self.runs[0].config.name if len(self.runs) == 1 else f"{len(self.runs)} runs together"
        label = self.how.label or label
        speaks = self.processes.writes and not self.how.quiet
        if speaks and first < self.training.epochs:
            for line in filter(None, (getattr(data, "where", None) for data in self.data)):
                print(f"{label}: {line}", file=sys.stderr, flush=True)
        with Progress(label, speaks) as progress:
            for epoch in range(first, self.training.epochs):
                if self.stopping is not None and self.stopping.is_over(self.history[0]):
                    break
                rate = self.training.rate_at(epoch)
                progress.epoch(epoch, self.training.epochs, steps, self.training.batch, rate)
                order = self._begin(epoch)
                started = time.perf_counter()
                losses = self.processes.mean(self.trainer.epoch(order, rate, progress.step))
                seconds = time.perf_counter() - started
                progress.finished(losses)
                self.seconds["training"] += seconds
                entry = {"epoch": epoch + 1, "rate": rate, "seconds": seconds, "runs": len(self.runs)}
                if self.stopping is not None:
                    entry |= self.stopping.judge(order, self.history[0], self.processes.mean)
                for history, loss in zip(self.history, losses, strict=True):
                    history.append({**entry, "loss": loss})
                self._save(epoch + 1)
        if self.stopping is not None:
            self.stopping.put_back()
        else:
            self.trainer.take_average()
            if self.trainer.corrects:
                self.trainer.recompute_statistics(self._begin(self.training.epochs))
        if self.stack is not None:
            self.stack.unstack(self.networks)
        for network in self.networks:
            without_global_batch_norm(network)

    def seconds_an_epoch(self, enough: float = math.inf) -> float:
        """How long an epoch takes here, by the median of some steps; the group is then spent.

        Where other programs keep the cores busy, single steps take many times longer than others.

        enough     of an epoch that takes longer than so many seconds, a rough number is enough: two images
                   are timed, since whole steps could take minutes, and more memory than there is
        """
        in_memory = self.trainer.inputs.numel() > 0
        steps = 1 if in_memory else 12  # workers that bring images have to start first
        started = time.perf_counter()
        order = self._begin(1)  # where sizes are drawn again, that takes its time as well
        begun, rate = time.perf_counter() - started, self.training.rate_at(0)

        def timed(some: Tensor) -> float:
            started = time.perf_counter()
            self.trainer.epoch(some, rate)
            return begun + order[0].numel() / some[0].numel() * (time.perf_counter() - started)

        if enough < math.inf and in_memory and not self.trainer.captures:
            few = order[:, :1, :2]
            timed(few)  # the first step is slower than all others
            found = min(timed(few) for _ in range(TRIED))
            if found > 2 * enough:  # steps of few images are slower, too
                return found
        parts = [order[:, place : place + steps] for place in range(0, order.shape[1], steps)]
        timed(parts[0])
        return statistics.median(
            timed(parts[number % len(parts)]) for number in range(TIMED if in_memory else 1)
        )

    def _begin(self, epoch: int) -> Tensor:
        """This process's images of an epoch (R, steps, B), drawn again where the data asks for it."""
        order = torch.stack([self._order(learner, epoch) for learner in range(len(self.learners))])
        if epoch and self.learners[0].data.redraw:
            self.renew([data.training(draw=epoch) for data in self.data])
        # Dropout depends on the epoch and on the seed of the first run of the group, for all of them: a run
        # that resumes, with the same ones beside it, draws what it would have drawn.
        torch.manual_seed(mix(self.training.seed, epoch) + self.processes.rank)
        return self.processes.share(order)

    def _order(self, learner: int, epoch: int) -> Tensor:
        """The images of a learner's epoch: (steps, B)."""
        training = self.learners[learner].training
        return shuffled(self.counts[learner], training.batch, training.seed, epoch, training.images)

    def _resume(self) -> int:
        """Resume from the last epoch that all runs have completed."""
        found = [{state.epoch: state for state in run.checkpoints()} for run in self.runs]
        common = set.intersection(*(set(states) for states in found))
        if not common:
            return 0
        of_runs = [epochs[max(common)] for epochs in found]
        own = {
            name: value.shape[1:] if self._of_runs(name) else value.shape
            for name, value in self.trainer.tensors().items()
        }
        kept = {} if self.stopping is None else self.stopping.tensors()
        own |= {name: value.shape for name, value in kept.items()}
        for run, state in zip(self.runs, of_runs, strict=True):
            averages = run.config.training.average > 0
            state.require_shapes({name: own[name] for name in own if averages or not _is_average(name)})
        states = [of_runs[self.learner_of.index(learner)] for learner in range(len(self.learners))]
        self.history = [state.history for state in states]
        self.seconds["training"] = sum(entry["seconds"] for entry in self.history[-1])
        if self.stopping is not None:
            self.stopping.load_tensors({name: states[0].tensors[name] for name in kept})
        names = dict.fromkeys(name for state in states for name in state.tensors if name not in kept)
        joined = {}
        for name in names:
            values = [_found(state.tensors, name) for state in states]
            joined[name] = torch.stack(values) if self._of_runs(name) else values[0]
        self.trainer.load_tensors(joined)
        return states[0].epoch

    def _save(self, epoch: int) -> None:
        if not self.processes.writes:
            return
        tensors = self.trainer.tensors()
        for run, learner in zip(self.runs, self.learner_of, strict=True):
            mine = {
                name: value[learner] if self._of_runs(name) else value
                for name, value in tensors.items()
                if run.config.training.average or not _is_average(name)
            }
            mine |= {} if self.stopping is None else self.stopping.tensors()
            run.save(Checkpoint(epoch, mine, self.history[learner]))
            if self.how.log:
                log_entry(run.folder, self.history[learner][-1])

    def _of_runs(self, name: str) -> bool:
        """Whether a tensor of the trainer has the leading axis of runs."""
        return self.stack is not None and not name.startswith("adam.step.")

    def evaluate(self) -> None:
        if not self.processes.writes:
            return
        for run, learner in zip(self.runs, self.learner_of, strict=True):
            started = time.perf_counter()
            data = self.data[self.data_of[learner]]
            network = tested_network(run.config, self.networks[learner]).eval()
            form = stacking.searched(network, *self.image_size)
            found = evaluation(run.config.name, form, data, self.device, self.how.split, self.how.sizes)
            reduce = run.config.data.reduce or 1
            network.usage = {
                "classes": list(data.classes),
                "background": None,
                "values": run.config.data.about.values,
                "reduce": reduce,
            }
            network.save_pretrained(run.folder, model_card_kwargs={"reduce": reduce} if reduce > 1 else {})
            seconds = {
                **self.seconds,
                "evaluation": time.perf_counter() - started,
                # Not those that are left: after an interruption, some of them may be done.
                "runs_together": int(self.history[learner][-1].get("runs", len(self.runs))),
            }
            result = {
                "name": run.config.name,
                "config": run.config.as_dict(),
                "classes": list(data.classes),
                "parameters": sum(parameter.numel() for parameter in self.networks[learner].parameters()),
                "environment": {**environment(self.device), "processes": self.processes.count},
                "seconds": seconds,
                "history": self.history[learner],
                "evaluation": found,
            }
            if hasattr(data, "learnt_from"):  # so that nobody takes them for new ones later
                result["learnt_from"] = data.learnt_from
            if self.stopping is not None:
                result["kept_epoch"] = self.stopping.best_epoch(self.history[learner])
            run.finish(result)


def _is_average(name: str) -> bool:
    return name.startswith("average.")


def _found(tensors: dict[str, Tensor], name: str) -> Tensor:
    """A checkpoint's tensor; the average of weights that are not averaged is the weights themselves."""
    return tensors[name] if name in tensors else tensors[name.replace("average.", "model.", 1)]
