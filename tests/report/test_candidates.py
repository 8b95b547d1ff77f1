"""Which candidates a folder has, what each is trained with, and how a budget is shared."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from helpers.own_folder import chosen, write

from scalechannels.report.candidates import (
    AUGMENTED,
    CENTRE,
    EVERYWHERE,
    RESIZED,
    budget_seconds,
    candidates,
    named,
    planned,
    seconds_an_epoch,
    shared,
    with_epochs,
)
from scalechannels.training.build import build_network
from scalechannels.training.config import TrainingConfig
from scalechannels.training.trainer import Trainer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "images", [(28, 28)] * 10)


def test_crops_have_four_candidates_with_one_recipe(folder: Path) -> None:
    found, left_out = candidates(chosen(folder), TrainingConfig())
    assert (list(found), left_out) == ([RESIZED, AUGMENTED, CENTRE, EVERYWHERE], {})
    for name, config in found.items():
        assert named(config) == name
        assert config.resolve() == config  # each is a run that can be trained
        assert config.training.smoothing == 0.1
        assert config.training.crops == 2  # no candidate takes objects to be exactly at the centre
        assert config.training.visible == (0.5 if "scale" in name else 1)
        assert build_network(config, None, 2).eval()(torch.rand(2, 1, 40, 50)).shape == (2, 2)
    assert found[RESIZED].data.resize == 28
    for config in found.values():
        assert (config.data.sizes, config.data.redraw) == ((0.25, 4.0), True)
    grid = build_network(found[EVERYWHERE], None, 2).grid
    assert (len(grid), grid.minimum, grid.maximum) == (9, pytest.approx(0.25), pytest.approx(4))


def test_frames_are_shifted_further_than_crops_whose_objects_would_be_cut_off(folder: Path) -> None:
    found, _ = candidates(chosen(folder, images="frames", object_size=20.0), TrainingConfig())
    assert {config.training.crops for config in found.values()} == {4}


def test_frames_are_not_resized_and_options_win(folder: Path) -> None:
    base = chosen(folder, images="frames", range=(0.5, 2.0))
    given = replace(base.training, jitter=2, smoothing=0.3, visible=0.7)
    found, left_out = candidates(
        replace(base, training=given), TrainingConfig(jitter=2, smoothing=0.3, visible=0.7)
    )
    assert list(found) == [AUGMENTED, CENTRE, EVERYWHERE]
    assert "images are frames" in left_out[RESIZED]
    assert found[AUGMENTED].data.sizes == (0.5, 2.0)
    assert [(one.training.jitter, one.training.crops) for one in found.values()] == [(0, 2), (2, 0), (0, 2)]
    assert {one.training.smoothing for one in found.values()} == {0.3}
    assert found[CENTRE].training.visible == 0.7


@pytest.mark.parametrize("crops", [0, 3])
def test_moves_that_were_asked_for_are_kept_and_none_is_a_number_as_well(folder: Path, crops: int) -> None:
    base = chosen(folder)
    base = replace(base, training=replace(base.training, crops=crops))
    found, _ = candidates(base, TrainingConfig(crops=crops))
    assert {config.training.crops for config in found.values()} == {crops}


def test_the_average_is_as_long_as_the_steps_allow(folder: Path) -> None:
    config = candidates(chosen(folder), TrainingConfig())[0][CENTRE]
    short, long = (with_epochs(config, epochs, 160, TrainingConfig()).training for epochs in (10, 10_000))
    assert (short.epochs, short.period, short.average_corrected) == (10, 10, True)
    steps = 10 * (160 // config.training.batch)
    assert short.average == pytest.approx(1 - 10 / steps, abs=1e-3)
    assert long.average == 0.999
    given = replace(config, training=replace(config.training, average=0.5, average_corrected=True))
    assert with_epochs(given, 10, 160, TrainingConfig(average=0.5)).training.average == 0.5


def test_a_budget_is_shared_and_what_is_not_needed_goes_on() -> None:
    assert shared(100, [(1.0, 1, 10), (1.0, 1, 1000), (10.0, 1, 1000)]) == [10, 45, 4]
    assert shared(100, [(1.0, 1, 1000), (10.0, 8, 1000)]) == [20, 8]  # the slow one has its least
    # One of them comes again, and the last one's share is the largest.
    assert shared(100, [(1.0, 1, 10), (1.0, 1, 1000), (10.0, 1, 1000)], again=True) == [10, 30, 3]
    assert shared(100, [(1.0, 1, 1000), (10.0, 8, 1000)], again=True) == [20, 8]
    assert shared(100, [(10.0, 1, 1000)], again=True) == [5]
    assert [budget_seconds(said) for said in ("90s", "1.5m", "2 h")] == [90, 90, 7200]
    for said in ("", "10", "m", "0s", "-1m", "1d"):
        with pytest.raises(ValueError, match="--budget must be a time such as 90s, 10m or 1h"):
            budget_seconds(said)


def test_the_fastest_candidate_is_never_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that others kept busy, eleven minutes of timing ended with nothing."""
    found, _ = candidates(chosen(folder), TrainingConfig())
    slow = {name: 100.0 * (number + 1) for number, name in enumerate(found)}
    names = {config: name for name, config in found.items()}
    monkeypatch.setattr("scalechannels.report.candidates.seconds_an_epoch", lambda one, *_: slow[names[one]])
    plans, left_out = planned(found, 160, 60.0, "cpu", TrainingConfig())
    assert [plan.name for plan in plans] == [RESIZED]
    assert plans[0].config.training.epochs == 300 // (160 // found[RESIZED].training.batch) + 1
    assert list(left_out) == [EVERYWHERE, CENTRE, AUGMENTED]
    timed = {name: float(number + 1) for number, name in enumerate(found)}
    monkeypatch.setattr("scalechannels.report.candidates.seconds_an_epoch", lambda one, *_: timed[names[one]])
    least = plans[0].config.training.epochs
    for budget, most in ((11 * least, 1.4), (30 * least, 1.0)):  # ten are needed at least
        plans, left_out = planned(found, 160, budget, "cpu", TrainingConfig(), again=True)
        assert not left_out
        spent = [plan.seconds or 0 for plan in plans]
        assert sum(spent) <= budget
        assert sum(spent) + max(spent) <= most * budget


def test_timing_leaves_nothing_behind(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    config = candidates(chosen(folder), TrainingConfig())[0][RESIZED]
    assert seconds_an_epoch(config, torch.device("cpu")) > 0
    assert list((tmp_path / "here").iterdir()) == []


def test_what_is_far_too_slow_is_timed_by_two_images(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking everywhere in photographs, one step of 16 images took minutes and 7 GB."""
    config = candidates(chosen(folder), TrainingConfig())[0][RESIZED]
    timed: list[int] = []
    epoch = Trainer.epoch

    def counted(self: Trainer, order: torch.Tensor, rate: float) -> list[float]:
        timed.append(order.numel())
        return epoch(self, order, rate)

    monkeypatch.setattr(Trainer, "epoch", counted)
    assert seconds_an_epoch(config, torch.device("cpu"), enough=1e-9) > 1e-9
    assert timed == [2] * 4
    assert seconds_an_epoch(config, torch.device("cpu"), enough=1e9) > 0
    assert timed[4:8] == [2] * 4
    assert len(timed) == 8 + 6
    assert min(timed[8:]) > 2


def test_a_step_that_other_programs_delay_leaves_no_candidate_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fastest candidate was left out as the slowest, after one slow step of two images."""
    config = candidates(chosen(folder), TrainingConfig())[0][RESIZED]
    calls: list[int] = []
    epoch = Trainer.epoch

    def delayed(self: Trainer, order: torch.Tensor, rate: float) -> list[float]:
        calls.append(order.numel())
        if len(calls) in (2, 3, 6, 9):  # two of the three steps of two images, and two of the five others
            time.sleep(0.5)
        return epoch(self, order, rate)

    monkeypatch.setattr(Trainer, "epoch", delayed)
    assert seconds_an_epoch(config, torch.device("cpu"), enough=0.5) < 0.45
    assert len(calls) == 4 + 6
