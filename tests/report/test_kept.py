"""The network that is kept: what it learns from, for how long, and when there is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.own_folder import chosen, write

from scalechannels.report import kept as kept_network
from scalechannels.report.kept import KEPT, can_learn_more, trained_on_both
from scalechannels.training.config import ResolvedRun
from scalechannels.training.config.own_images import in_parts, open_folder
from scalechannels.training.datasets import open_data
from scalechannels.training.runs import Run


class Finished(Run):
    """A run that ended early, if its folder says so, or did not."""

    def result(self) -> dict[str, Any]:
        return {"kept_epoch": int(self.folder.name)} if self.folder.name.isdigit() else {}


@pytest.fixture
def config(tmp_path: Path) -> ResolvedRun:
    return chosen(write(tmp_path / "photos", [(30, 30)] * 10))


def test_it_learns_from_all_images_but_those_of_the_test(config: ResolvedRun, tmp_path: Path) -> None:
    images = open_folder(config.data)
    learnt, checked, kept = in_parts(images, config.data)
    both = trained_on_both(Finished(config, tmp_path / "run"), images)
    more, _, same = in_parts(images, both.data)
    assert same.paths == kept.paths
    assert set(more.paths) == {*learnt.paths, *checked.paths}
    assert len(more) == len(learnt) + len(checked) == 16
    data = open_data(both.data)
    assert len(data.training()) == 16
    assert len(data.testing(1.0, "test")) == 4
    with pytest.raises(ValueError, match="has learnt from the validation images"):
        data.testing(1.0, "validation")


def test_it_takes_about_as_many_steps_as_the_winner(config: ResolvedRun, tmp_path: Path) -> None:
    images = open_folder(config.data)
    training = replace(config.training, epochs=40, period=40, schedule="cosine", patience=3)
    config = replace(config, training=training)
    again = trained_on_both(Finished(config, tmp_path / "run"), images).training
    assert (again.epochs, again.period, again.patience) == (30, 30, None)  # 12 images before, 16 now
    assert trained_on_both(Finished(config, tmp_path / "20"), images).training.epochs == 15
    assert trained_on_both(Finished(config, tmp_path / "1"), images).training.epochs == 1


def test_a_validation_part_of_your_own_is_not_learnt_from(config: ResolvedRun, tmp_path: Path) -> None:
    assert can_learn_more(open_folder(config.data), config)
    for part in ("train", "val"):
        write(tmp_path / "given" / part, [(30, 30)] * 6)
    given = chosen(tmp_path / "given")
    assert not can_learn_more(open_folder(given.data), given)
    earlier = replace(config, data=replace(config.data, test=None))  # whose two parts are its own
    assert not can_learn_more(open_folder(config.data), earlier)


def test_the_report_is_about_the_network_that_is_kept() -> None:
    result: dict[str, Any] = {"candidates": {"a": {"test": [1]}, "b": {"test": [2]}}}
    result["verdict"] = {"winner": "b"}
    assert kept_network.tests(result) == {"a": [1], "b": [2]}
    assert kept_network.test_of_kept(result) == [2]
    result["again"] = {"test": [3]}
    assert kept_network.tests(result) == {"a": [1], "b": [2], KEPT: [3]}
    assert kept_network.test_of_kept(result) == [3]
