"""One epoch after another over data that lies on the device: eager on a CPU, a captured graph on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from scalechannels.training.config import Precision
from scalechannels.training.distributed import Processes

UNROLL = 25
"""Steps in one captured graph, where it divides an epoch: fewer gaps between graphs."""
STATISTICS_BATCHES = 200
"""Batches at most that batch norm's statistics are recomputed over, at the end of training."""


class Trainer:
    """Trains a model that holds R runs, on resident inputs.

    model      maps (R, B, …) to logits (R, B, K), or to these and what else may mislead, see `misled`
    inputs     (D, N, …): D data sets that runs can share
    labels     (D, N)
    data_of    for each run, which of the D data sets it is trained on
    smoothing  the share of the target that is spread over all classes, of all runs or one for each
    average    the decay, per step, of a moving average of all that the model holds, likewise; 0 for none
    corrected  the average leaves out the first weights, as Adam does with its moments, likewise
    class_weights   (R, K): how much the images of each class count in each run's loss; None: all the same
    slow, share     weights that learn at this share of the rate, such as pretrained ones
    augmentations   what is done to a batch before, one after the other, see `augment`

    Runs do not see each other: the loss is a sum over runs, and Adam works element by element.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Tensor,
        labels: Tensor,
        data_of: list[int],
        *,
        precision: Precision,
        compiled: bool = False,
        processes: Processes | None = None,
        smoothing: float | Sequence[float] = 0.0,
        average: float | Sequence[float] = 0.0,
        corrected: bool | Sequence[bool] = False,
        class_weights: Tensor | None = None,
        augmentations: Sequence[nn.Module] = (),
        slow: Sequence[nn.Parameter] = (),
        share: float = 1.0,
    ) -> None:
        if compiled:
            torch.compiler.reset()  # it gives up, with a mere warning, on the ninth shape of one function
        self.model, self.inputs, self.labels = model.train(), inputs, labels
        self.device, self.precision = inputs.device, precision
        self.augmentations = augmentations
        for augmentation in augmentations if compiled else ():
            augmentation.compile()
        self.smoothing, self.decay, self.corrected = (
            torch.tensor(value, device=self.device).expand(len(data_of))
            for value in (smoothing, average, corrected)
        )  # (R,)
        self.class_weights = None if class_weights is None else class_weights.to(self.device)  # (R, K)
        self.corrects = bool((self.corrected & (self.decay > 0)).any())  # asked once: a graph cannot ask
        self.averaged = {
            name: value.clone()
            for name, value in (model.state_dict() if self.decay.any() else {}).items()
            if value.is_floating_point()
        }
        self.on_gpu = self.device.type == "cuda"
        alone = processes is None or processes.count == 1
        self.called = model if alone else nn.parallel.DistributedDataParallel(model)
        self.captures = self.on_gpu and alone
        self.data_of = torch.tensor(data_of, device=self.device)[:, None]  # (R, 1)
        self.rates = {one: torch.zeros((), device=self.device) for one in {1.0, share if slow else 1.0}}
        self.parameters = {
            name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad
        }
        # Compiled, Adam is one kernel over all weights; the fused one is made for larger tensors than these.
        one_kernel = compiled and self.on_gpu
        known = {id(parameter) for parameter in slow}
        groups: dict[float, list[nn.Parameter]] = {one: [] for one in self.rates}
        for parameter in self.parameters.values():
            groups[share if id(parameter) in known else 1.0].append(parameter)
        self.optimiser = torch.optim.Adam(
            [{"params": group, "lr": self.rates[one]} for one, group in groups.items()],
            fused=not one_kernel,
            foreach=one_kernel,
            capturable=self.on_gpu,
        )
        for parameter in self.parameters.values():  # as Adam itself begins
            self.optimiser.state[parameter] = {
                "step": torch.zeros((), device=self.device),
                "exp_avg": torch.zeros_like(parameter, memory_format=torch.preserve_format),
                "exp_avg_sq": torch.zeros_like(parameter, memory_format=torch.preserve_format),
            }
        self.update = torch.compile(self.optimiser.step) if one_kernel else self.optimiser.step
        self.losses = torch.zeros(len(data_of), device=self.device)  # sums over an epoch
        self.place = torch.zeros(1, dtype=torch.long, device=self.device)  # the step within the epoch
        self.failed_at = torch.full((1,), -1, dtype=torch.long, device=self.device)
        self.order: Tensor  # of the epoch, where steps are captured
        self.graph: torch.cuda.CUDAGraph | None = None
        self.objective = torch.compile(self._objective, dynamic=False) if compiled else self._objective

    def epoch(self, order: Tensor, rate: float, report: Callable[[int], None] | None = None) -> list[float]:
        """One pass in the given order (R, steps, B): the mean loss of each run. A NaN in the loss ends it."""
        steps = order.shape[1]
        for share, own in self.rates.items():
            own.fill_(share * rate)
        self.place.zero_()
        self.losses.zero_()
        for done in self._replayed(order) if self.captures else self._taken(order):
            if report is not None:
                report(done)
        failed = int(self.failed_at)
        if failed >= 0:
            raise FloatingPointError(
                f"the loss was not a number at step {failed + 1} of {steps}, at a learning rate of {rate:g}; "
                "try a smaller training.rate, precision float32, or look for NaN in the images"
            )
        return (self.losses / steps).tolist()

    def _taken(self, order: Tensor) -> Iterator[int]:
        """Take the steps of an order (R, steps, B); how many are done, after each."""
        for done, (inputs, labels) in enumerate(self._batches(order), start=1):
            self.learn(inputs, labels)
            yield done

    def _replayed(self, order: Tensor) -> Iterator[int]:
        """The same by replaying a captured graph of several steps."""
        if self.graph is None:
            self.order = order.to(self.device)
            self.graph = self._captured()
        self.order.copy_(order)
        for before in range(0, order.shape[1], self.unroll):
            self.graph.replay()
            yield before + self.unroll

    def _batches(self, order: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """The inputs (R, B, …) and the labels (R, B) of each step of an order (R, steps, B)."""
        return map(self._batch, order.to(self.device).unbind(1))

    def _batch(self, chosen: Tensor) -> tuple[Tensor, ...]:
        inputs = self.inputs[self.data_of, chosen]
        for augmentation in self.augmentations:
            inputs = augmentation(inputs, self.data_of, chosen)
        return inputs, self.labels[self.data_of, chosen]

    def _step(self) -> None:
        chosen = self.order.index_select(1, self.place)[:, 0]  # (R, B)
        self.learn(*self._batch(chosen))

    def learn(self, inputs: Tensor, labels: Tensor) -> None:
        """One step on a batch (R, B, …) with its labels (R, B)."""
        losses = self.objective(inputs, labels)  # (R,)
        self.optimiser.zero_grad(set_to_none=True)
        losses.sum().backward()
        self.update()
        with torch.no_grad():
            self.losses += losses.detach()
            lost = ~losses.detach().isfinite().all() & (self.failed_at < 0)
            self.failed_at.copy_(torch.where(lost, self.place, self.failed_at))
            self.place += 1
            if self.averaged:
                self._follow()

    def _follow(self) -> None:
        """Move the averages towards what the model holds now."""
        share = 1 - self.decay  # (R,)
        if self.corrects:
            taken = self.optimiser.state[next(iter(self.parameters.values()))]["step"]
            share = torch.where(self.corrected, share / (1 - self.decay**taken), share)
        now = self.model.state_dict()
        for name, averaged in self.averaged.items():
            averaged.lerp_(now[name], share.view(-1, *[1] * (averaged.ndim - 1)))

    def _objective(self, inputs: Tensor, labels: Tensor) -> Tensor:
        logits = self._said(inputs)  # (R, B, K)
        if not isinstance(logits, Tensor):
            logits = misled(*logits, labels)
        surprises = -logits.float().log_softmax(2)  # (R, B, K)
        right = surprises.gather(2, labels[..., None])[..., 0]  # (R, B)
        losses = right.lerp(surprises.mean(2), self.smoothing[:, None])  # (R, B)
        if self.class_weights is not None:
            losses = losses * self.class_weights.gather(1, labels)
        return losses.mean(1)  # (R,)

    def _said(self, inputs: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bfloat16"):
            return self.called(inputs)

    def _captured(self) -> torch.cuda.CUDAGraph:
        """Record the step once; warming up must leave no trace in the weights or in what dropout draws.

        A resumed run records in another epoch than an uninterrupted one, and must draw the same numbers.
        """
        random = torch.cuda.get_rng_state(self.device)
        self.unroll = max(u for u in range(1, UNROLL + 1) if self.order.shape[1] % u == 0)
        before = {name: value.clone() for name, value in self.tensors().items()}
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.place.zero_()  # an epoch may have fewer steps
                self._step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(self.unroll):
                self._step()
        self.load_tensors(before)
        torch.cuda.set_rng_state(random, self.device)
        self.place.zero_()
        self.losses.zero_()
        self.failed_at.fill_(-1)
        return graph

    def tensors(self) -> dict[str, Tensor]:
        """All that training changes: weights, running statistics, the optimiser's moments and step."""
        state = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        for name, parameter in self.parameters.items():
            for key, value in self.optimiser.state[parameter].items():
                state[f"adam.{key}.{name}"] = value
        state.update({f"average.{name}": value for name, value in self.averaged.items()})
        return state

    @torch.no_grad()
    def restart(self) -> None:
        """Begin again with the weights that the model has now: a captured graph holds on to all addresses."""
        self.model.train()
        for moments in self.optimiser.state.values():
            for value in moments.values():
                value.zero_()
        now = self.model.state_dict()
        for name, averaged in self.averaged.items():
            averaged.copy_(now[name])
        self.failed_at.fill_(-1)

    @torch.no_grad()
    def take_average(self) -> None:
        """Put the moving average into the model, at the end of training."""
        for name, value in self.model.state_dict().items():
            if name in self.averaged:
                value.copy_(self.averaged[name])

    @torch.no_grad()
    def recompute_statistics(self, order: Tensor) -> None:
        """Batch norm's statistics of the weights as they are, over the first steps of an order (R, steps, B).

        The moving averages of training belong to the weights as they were then. Only runs whose average is
        corrected change; dropout is off, and the statistics are means over the batches.
        """
        norms: list[Any] = []
        for module in self.model.modules():
            if isinstance(module, nn.Dropout):
                module.eval()
            if getattr(module, "running_mean", None) is not None:
                norms.append(module)
        before = [(norm.momentum, norm.running_mean.clone(), norm.running_var.clone()) for norm in norms]
        for count, (inputs, _) in enumerate(self._batches(order[:, :STATISTICS_BATCHES]), start=1):
            for norm in norms:
                norm.momentum = 1 / count
            self._said(inputs)
        for norm, (momentum, mean, variance) in zip(norms, before, strict=True):
            norm.momentum = momentum
            for now, kept in ((norm.running_mean, mean), (norm.running_var, variance)):
                # A stack has an axis of runs, a network that is trained alone has none.
                chosen = self.corrected[:, None] if now.ndim == 2 else self.corrected
                now.copy_(torch.where(chosen, now, kept))
        self.model.train()

    @torch.no_grad()
    def load_tensors(self, saved: dict[str, Tensor]) -> None:
        """Put back what `tensors` gave, in place: a captured graph holds on to the addresses."""
        own = self.tensors()
        shapes, found = ({name: value.shape for name, value in state.items()} for state in (own, saved))
        if shapes != found:
            differing = sorted({name for name, _ in shapes.items() ^ found.items()})
            raise ValueError(
                f"the checkpoint belongs to another network, or to runs that were trained together with "
                f"others: {', '.join(differing)} differ"
            )
        for name, value in own.items():
            value.copy_(saved[name])


def shuffled(count: int, batch: int, seed: int, epoch: int, images: int | None = None) -> Tensor:
    """The order of an epoch (steps, B), from seed and epoch alone; a rest smaller than B is left out.

    An epoch has as many `images` as there are, or so many: of fewer the first of the order, and for more
    they come again and again, each time in another order.
    """
    wanted = images or count
    if batch > min(count, wanted):
        raise ValueError(
            f"training.batch must be at most {min(count, wanted)}, the number of training images; got {batch}"
        )
    generator = torch.Generator().manual_seed(mix(seed, epoch))
    rounds = [torch.randperm(count, generator=generator) for _ in range(-(-wanted // count))]
    steps = wanted // batch
    return torch.cat(rounds)[: steps * batch].view(steps, batch)


def balancing(labels: Tensor, classes: int) -> Tensor:
    """What each class weighs (K,) for all to count the same, 1 on average over the images of these labels."""
    counts = labels.bincount(minlength=classes)
    present = counts > 0
    return torch.where(present, len(labels) / (present.sum() * counts.clamp_min(1)), 0.0).float()


def mix(seed: int, epoch: int) -> int:
    """One number for each seed and epoch; neighbours get unrelated ones."""
    value = (seed * 1_000_003 + epoch + 1) * 0x9E3779B97F4A7C15 % 2**64
    return (value ^ (value >> 29)) % 2**63


def misled(logits: Tensor, decoys: Tensor, labels: Tensor) -> Tensor:
    """The logits (…, K) as views beyond the channels may change them, for the worse alone; `labels` (…)."""
    logits, decoys = logits.float(), decoys.float()
    right = labels[..., None] == torch.arange(logits.shape[-1], device=labels.device)
    return torch.where(right, logits, torch.logaddexp(logits, decoys))
