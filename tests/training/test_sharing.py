"""Runs that differ only in how they are tested learn once."""

from dataclasses import replace

import pytest
import torch
from helpers.tiny_runs import SIZES, assert_same, tiny, trained, weights

import scalechannels
from scalechannels.training.datasets import open_data
from scalechannels.training.errors import pack_errors
from scalechannels.training.fit import fit
from scalechannels.training.group import Group
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


@pytest.mark.parametrize("together", [False, True])
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
