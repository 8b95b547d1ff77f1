"""Runs of one shape in one group: what they share, and that a step can be captured in a CUDA graph.

As far as a machine without a GPU can tell: of the step the forward and backward pass, without the optimiser.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from helpers.tiny_runs import SIZES, assert_same, tiny, trained, weights
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import scalechannels
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig
from scalechannels.training.datasets import open_data
from scalechannels.training.distributed import joined
from scalechannels.training.errors import pack_errors
from scalechannels.training.fit import fit
from scalechannels.training.group import Group, How
from scalechannels.training.runs import Run
from scalechannels.training.trainer import Trainer

PAIRS = {
    "shifted": (tiny("fovlse", average=0.5), tiny("fovlse", average=0.5, network={"shifts": 1})),
    "averaged": (tiny("cnn"), tiny("cnn", network={"average_scales": True})),
}


@pytest.fixture
def learning(monkeypatch) -> list[int]:
    """How many runs learnt in each epoch."""
    counts: list[int] = []
    epoch = Trainer.epoch

    def counted(self, order, *others):
        counts.append(len(order))
        return epoch(self, order, *others)

    monkeypatch.setattr(Trainer, "epoch", counted)
    return counts


def accuracies(run: Run) -> list[float]:
    return [entry["accuracy"] for entry in run.result()["evaluation"]["sizes"]]


def learnt(run: Run) -> list[torch.Tensor]:
    """The weights, whatever the network that holds them calls them."""
    return list(weights(run).values())


@pytest.mark.parametrize("together", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_they_are_what_they_are_when_trained_apart(pair, together, learning, tmp_path) -> None:
    both = fit(pair, tmp_path / "both", device="cpu", sizes=SIZES, together=together)
    assert learning == [1, 1]  # two epochs
    for run, config in zip(both, pair, strict=True):
        apart = trained(config, tmp_path / "apart", together=together)
        assert_same(weights(run), weights(apart))
        assert accuracies(run) == accuracies(apart)
        assert run.result()["seconds"]["runs_together"] == 2
    assert all(torch.equal(one, two) for one, two in zip(*map(learnt, both), strict=True))


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_each_is_tested_in_its_own_way(pair, tmp_path) -> None:
    longer = [replace(config, training=replace(config.training, epochs=8)) for config in pair]
    both = fit(longer, tmp_path, device="cpu", sizes=SIZES)
    told = [[entry["errors"] for entry in run.result()["evaluation"]["sizes"]] for run in both]
    assert told[0] != told[1]
    for run, errors in zip(both, told, strict=True):
        network, data = scalechannels.load(run.folder).eval(), open_data(run.config.data)
        tests = [data.testing(size, "test") for size in SIZES]
        assert errors == [pack_errors(network(test.images).argmax(1) != test.labels) for test in tests]


def test_others_learn_beside_them(learning, double, tmp_path) -> None:
    network = {"dropout": 0.0}  # which a group draws for all of its runs
    configs = [tiny(**network), tiny(network={"shifts": 1}, **network), tiny("fovmax", seed=1, **network)]
    runs = fit(configs, tmp_path / "three", device="cpu", sizes=SIZES, together=True)
    assert learning == [2, 2]
    for run, config in zip(runs, configs, strict=True):
        alone = trained(config, tmp_path / "alone", together=True)
        torch.testing.assert_close(weights(run), weights(alone))
    assert not all(torch.equal(one, two) for one, two in zip(learnt(runs[0]), learnt(runs[2]), strict=True))


def killed_and_gone_on(configs, folder, together, monkeypatch, kind, name, killed, learning) -> list[Run]:
    """Runs that a kill in this method interrupted, done in a second call; `learning` is of that one alone."""
    method = getattr(kind, name)
    monkeypatch.setattr(kind, name, killed)
    with pytest.raises(KeyboardInterrupt):
        fit(configs, folder, device="cpu", sizes=SIZES, together=together)
    monkeypatch.setattr(kind, name, method)
    learning.clear()
    return fit(configs, folder, device="cpu", sizes=SIZES, together=together)


@pytest.mark.parametrize("together", [False, True])
def test_what_is_killed_before_the_second_test_goes_on(together, learning, tmp_path, monkeypatch) -> None:
    pair = PAIRS["shifted"]
    whole = fit(pair, tmp_path / "whole", device="cpu", sizes=SIZES, together=together)
    finish, done = Run.finish, []

    def killed(self, result):
        if done:
            raise KeyboardInterrupt
        done.append(finish(self, result))

    again = killed_and_gone_on(
        pair, tmp_path / "killed", together, monkeypatch, Run, "finish", killed, learning
    )
    assert learning == []
    for run, other in zip(again, whole, strict=True):
        assert_same(weights(run), weights(other))
        assert accuracies(run) == accuracies(other)


@pytest.mark.parametrize("together", [False, True])
def test_what_is_killed_while_learning_goes_on(together, learning, tmp_path, monkeypatch) -> None:
    configs = (*PAIRS["shifted"], tiny("fovlse", seed=1)) if together else PAIRS["shifted"]
    whole = fit(configs, tmp_path / "whole", device="cpu", sizes=SIZES, together=together)
    save = Group._save

    def killed(self, epoch):
        save(self, epoch)
        raise KeyboardInterrupt

    again = killed_and_gone_on(
        configs, tmp_path / "killed", together, monkeypatch, Group, "_save", killed, learning
    )
    assert learning == [len(configs) - 1]
    for run, other in zip(again, whole, strict=True):
        assert_same(weights(run), weights(other))


def test_a_run_knows_what_it_learns() -> None:
    plain, shifted = PAIRS["shifted"]
    assert shifted.learnt == plain == plain.learnt
    assert shifted.shape == plain.shape
    assert replace(plain, training=replace(plain.training, seed=1)).learnt != plain


@pytest.fixture
def followed(monkeypatch) -> list[str]:
    """Runs that followed others, as on a GPU; a CPU has no step that is worth keeping."""
    begin, follow, names = Trainer.__init__, Group.follow, []

    def captured(self, *args, **options) -> None:
        begin(self, *args, **options)
        self.captures = True

    def noted(self, runs) -> None:
        names.extend(run.config.name for run in runs)
        follow(self, runs)

    monkeypatch.setattr(Trainer, "__init__", captured)
    monkeypatch.setattr(Trainer, "_replayed", Trainer._taken)
    monkeypatch.setattr(Group, "follow", noted)
    return names


def placed(seed: int, *sizes: float, **training) -> RunConfig:
    config = tiny("fovlse", seed=seed, average=0.9, network={"look": "everywhere"}, **training)
    data = DataConfig(sizes=sizes, seed=seed, samples=40, places="anywhere", redraw=True)
    return replace(config, data=data)


@pytest.mark.parametrize("corrected", [False, True])
def test_runs_that_follow_others_are_what_they_are_alone(corrected, followed, tmp_path) -> None:
    same = {"average_corrected": corrected}
    other = placed(1, 0.5, 1.0, smoothing=0.2, **same)
    configs = [placed(0, 1.0, **same), placed(1, 0.5, 1.0, **same), other, placed(2, 1.0, **same)]
    others = fit(configs, tmp_path / "others", device="cpu", sizes=SIZES)
    assert followed == [others[1].config.name]  # the other one has another loss
    for config, run in zip(configs, others, strict=True):
        alone = trained(config, tmp_path / "alone")
        assert_same(weights(run), weights(alone))
        assert accuracies(run) == accuracies(alone)
        assert run.result()["history"][0]["loss"] == alone.result()["history"][0]["loss"]
    assert len(followed) == 1


def test_a_run_that_follows_goes_on_where_it_was(followed, tmp_path, monkeypatch) -> None:
    configs = [placed(0, 1.0), placed(1, 1.0)]
    alone = trained(configs[1], tmp_path / "alone")
    epoch = Trainer.epoch

    def killed(self, *args):
        monkeypatch.setattr(Trainer, "epoch", killed_later)
        return epoch(self, *args)

    def killed_later(self, *args):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "epoch", killed)
    with pytest.raises(KeyboardInterrupt):
        trained(configs[1], tmp_path / "both")
    monkeypatch.setattr(Trainer, "epoch", epoch)
    runs = fit(configs, tmp_path / "both", device="cpu", sizes=SIZES)
    assert followed == [runs[1].config.name]
    assert_same(weights(runs[1]), weights(alone))


def test_runs_of_other_samples_and_options_are_trained_as_one(tmp_path, double) -> None:
    configs = [
        tiny(samples=100, dropout=0, images=60),
        tiny("fovmax", samples=40, dropout=0, images=60, smoothing=0.1),
        tiny("fovlse", samples=100, dropout=0, images=60, average=0.5, network={"antialias": True}),
    ]
    together = fit(configs, tmp_path / "together", device="cpu", sizes=SIZES, together=True)
    for config, run in zip(configs, together, strict=True):
        assert run.result()["seconds"]["runs_together"] == 3
        alone = trained(config, tmp_path / "alone")
        for name, value in weights(alone).items():
            if not name.endswith("num_batches_tracked"):
                torch.testing.assert_close(weights(run)[name], value, rtol=1e-6, atol=1e-6)


# A step that can be captured


class NothingFromHost(TorchDispatchMode):
    """Refuses what brings values from main memory to the device, which a captured graph cannot do.

    One number may come along: it becomes an argument of the kernel.
    """

    def __torch_dispatch__(self, func: Callable, types, args=(), kwargs=None):
        given = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
        from_host = any(value.device.type == "cpu" and value.ndim for value in given)
        result = func(*args, **(kwargs or {}))
        made = [value for value in tree_leaves(result) if isinstance(value, Tensor)]
        on_device = any(value.device.type != "cpu" for value in (*given, *made))
        assert not (from_host and on_device), f"{func} takes values from the host"
        return result


@pytest.mark.parametrize(
    "copies",
    [
        lambda there, here: here.to("meta"),
        lambda there, here: there[here],
        lambda there, here: there.copy_(here),
        lambda there, here: torch.cat([there, here.to("meta")]),
        lambda there, here: torch.nn.functional.embedding(here, there[:, None]),
    ],
)
def test_copies_are_refused(copies) -> None:
    there, here = torch.zeros(2, device="meta"), torch.zeros(2, dtype=torch.long)
    with NothingFromHost(), pytest.raises((AssertionError, RuntimeError)):
        copies(there, here)


def test_what_stays_on_the_device_is_not_refused() -> None:
    there = torch.zeros(2, 3, device="meta")
    with NothingFromHost():
        assert (there[torch.arange(2, device="meta")] * 2 + torch.tensor(1.0)).shape == (2, 3)


def on_host(values, *, device=None, made=torch.tensor, **options) -> Tensor:
    """`torch.tensor`, whose copy to a device no one sees."""
    assert torch.device(device or "cpu").type == "cpu", "torch.tensor takes values from the host"
    return made(values, **options)


def without_device(trainer: Trainer, order: Tensor) -> Trainer:
    """All that a step touches as meta tensors, for those on a GPU: none of them can be read either."""
    for module in (trainer.model, trainer.called, *trainer.augmentations):
        module.to("meta")
    for name in ("inputs", "labels", "data_of", "place", "losses", "smoothing", "failed_at"):
        setattr(trainer, name, getattr(trainer, name).to("meta"))
    trainer.device, trainer.order = torch.device("meta"), order.to("meta")
    return trainer


def small(name: str, network: dict | None = None, **training) -> RunConfig:
    return RunConfig(
        DataConfig("cifar10"),
        NetworkConfig(name, ratio=2, **(network or {})),  # type: ignore[arg-type]
        TrainingConfig(epochs=1, batch=16, **training),
    )


ANTIALIAS = {"antialias": True}


AUGMENTED = {"flips": True, "crops": 4}


CONFIGS = {
    "fovavg": tiny(),
    "fovconc": tiny("fovconc"),
    "cnn": tiny("cnn"),
    "swmax": tiny("swmax"),
    "joint batch norm": tiny("swmax", network={"batch_norm": "joint"}),
    "batch norm each": tiny("swmax", network={"batch_norm": "each"}),
    "cropped, shifted and blurred": tiny("fovlse", network=ANTIALIAS, visible=0.5, jitter=1, detail=0.5),
    "cifar": small("fovmax"),
    "cifar, augmented": small("fovlse", visible=0.5, **AUGMENTED),
    "cifar, coarse": small("fovlse", ANTIALIAS, visible=0.5, detail=0.5, **AUGMENTED),
    "cifar, equal blur": small("fovlse", {"blur": 0.5}, **AUGMENTED),
    "residual": small("cnn", {"backbone": "residual"}, **AUGMENTED),
}


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_step_copies_nothing_from_the_host(config, together, cifar, tmp_path, monkeypatch) -> None:
    """Nor does it read a value back, which a meta tensor does not have."""
    cpu = torch.device("cpu")
    run = Run.open(tmp_path, config.resolve("cpu"))
    with joined(cpu) as processes:
        group = Group([run], cpu, processes, How(together=together, compiled=False))
    trainer = without_device(group.trainer, torch.zeros(1, 1, config.training.batch, dtype=torch.long))
    learnt: list[Tensor] = []

    def learn(inputs: Tensor, labels: Tensor) -> None:
        learnt.append(trainer.objective(inputs, labels))
        learnt[0].sum().backward()

    monkeypatch.setattr(trainer, "learn", learn)
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # there is none for meta tensors
    monkeypatch.setattr(torch, "tensor", on_host)
    with NothingFromHost():
        trainer._step()
    assert [losses.shape for losses in learnt] == [(1,)]
