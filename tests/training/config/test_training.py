"""The learning rate of every epoch."""

import math

import pytest

from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig


def run(data: str = "mnist", network: str = "fovavg", **training) -> RunConfig:
    return RunConfig(DataConfig(data), NetworkConfig(network), TrainingConfig(**training))


def test_rates_of_the_steps() -> None:
    training = run().resolve().training
    rates = [training.rate_at(epoch) for epoch in range(20)]
    assert rates[:2] == [3e-3, 3e-3]
    assert rates[2:4] == [3e-3 * math.exp(-1)] * 2
    assert rates[8] == rates[9] == pytest.approx(3e-3 * math.exp(-4))
    assert rates[10:] == [5e-5] * 10  # 3e-3·e^-5 is below it


def test_rates_of_the_cosine() -> None:
    training = run("cifar10").resolve().training
    assert training.rate_at(0) == 1e-3
    assert training.rate_at(25) == pytest.approx(5e-5 + 0.75 * (1e-3 - 5e-5))  # cos 60° = 1/2
    assert training.rate_at(74) > 5e-5
    assert [training.rate_at(epoch) for epoch in (75, 80, 102)] == [5e-5] * 3


def test_a_cosine_on_objects_anywhere_ends_with_the_training() -> None:
    training = TrainingConfig(schedule="cosine", epochs=30)
    resolved = RunConfig(DataConfig("mnist", places="anywhere"), training=training).resolve("cpu")
    assert resolved.training.period == 30
    assert RunConfig(DataConfig("mnist"), training=training).resolve("cpu").training.period == 75
