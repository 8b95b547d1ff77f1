"""training.patience: ends when validation images gain nothing, keeps the best epoch, and resumes the same."""

import dataclasses
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from helpers.tiny_runs import assert_same, weights
from PIL import Image

import scalechannels
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig
from scalechannels.training.datasets import open_data
from scalechannels.training.fit import fit
from scalechannels.training.group import Group
from scalechannels.training.own_images import FolderData
from scalechannels.training.runs import Run
from scalechannels.training.stopping import MEASURE, Stopping
from scalechannels.training.trainer import balancing


class Killed(BaseException):
    """Stands for Ctrl-C, which would end the tests too."""


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Two classes of noise: all that can be learnt of the training images is wrong for others."""
    noise = torch.Generator().manual_seed(0)
    for index in range(24):
        path = tmp_path / "images" / f"class{index % 2}" / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = torch.randint(256, (28, 28), generator=noise, dtype=torch.uint8)
        Image.fromarray(pixels.numpy()).save(path)
    return tmp_path / "images"


def config(images: Path, **training) -> RunConfig:
    given = {"epochs": 12, "batch": 7, "patience": 2, "average": 0.5, "crops": 2, **training}
    network = NetworkConfig("cnn")
    return RunConfig(DataConfig("folder", folder=str(images), resize=12), network, TrainingConfig(**given))


def trained(run: RunConfig, folder: Path) -> Run:
    return fit([run], folder, device="cpu", sizes=[1.0])[0]


def test_it_ends_after_the_patience_and_keeps_what_was_judged_best(images: Path, tmp_path: Path) -> None:
    run = trained(config(images), tmp_path / "runs")
    result = run.result()
    losses = [entry[MEASURE] for entry in result["history"]]
    best = losses.index(min(losses)) + 1
    assert result["kept_epoch"] == best
    assert len(losses) == best + 2 < 12
    held = open_data(run.config.data)
    assert isinstance(held, FolderData)
    checked = held.testing(1.0, "validation")
    with torch.inference_mode():
        logits = scalechannels.load(run.folder).eval()(checked.images)
    found = F.cross_entropy(logits, checked.labels, balancing(checked.labels, 2))
    assert float(found) == pytest.approx(min(losses), rel=1e-5)
    assert not set(held.checked.paths) & set(held.kept.paths)  # the report's images decide nothing

    # Until it ends, training is what it is without patience.
    plain = trained(config(images, patience=None), tmp_path / "plain").result()["history"]
    assert [entry["loss"] for entry in result["history"]] == [entry["loss"] for entry in plain[: len(losses)]]


def test_the_last_epoch_is_kept_as_without_patience_where_it_is_best(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    falling = iter(range(100, 0, -1))
    monkeypatch.setattr(Stopping, "_surprise", lambda self: float(next(falling)))
    short = {"epochs": 3, "average": 0.0}  # an average has its statistics recomputed in another order
    run = trained(config(images, **short), tmp_path / "runs")
    assert run.result()["kept_epoch"] == 3
    assert_same(weights(run), weights(trained(config(images, patience=None, **short), tmp_path / "plain")))


@pytest.mark.parametrize("after", ["best", "last"])
def test_killed_and_resumed_it_stops_at_the_same_epoch(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    whole = trained(config(images), tmp_path / "whole")
    history, kept = whole.result()["history"], whole.result()["kept_epoch"]
    last = {"best": kept, "last": len(history)}[after]
    save = Group._save

    def killed(self: Group, epoch: int) -> None:
        save(self, epoch)
        if epoch == last:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Group, "_save", killed)
        with pytest.raises(Killed):
            trained(config(images), tmp_path / "parts")
    resumed = trained(config(images), tmp_path / "parts")
    assert resumed.result()["kept_epoch"] == kept
    keys = ("epoch", "loss", MEASURE)
    assert [[e[k] for k in keys] for e in resumed.result()["history"]] == [
        [e[k] for k in keys] for e in history
    ]
    assert_same(weights(whole), weights(resumed))


def test_where_nothing_could_decide_it_is_refused(images: Path) -> None:
    with pytest.raises(ValueError, match=r"training\.patience works only with your own images.*; got mnist"):
        RunConfig(DataConfig("mnist"), training=TrainingConfig(patience=3)).resolve()
    run = config(images).resolve()
    assert run.name != config(images, patience=None).resolve().name
    earlier = dataclasses.replace(run, data=dataclasses.replace(run.data, test=None))
    with pytest.raises(ValueError, match=r"training\.patience needs validation images beside those of the t"):
        earlier.resolve()
    with pytest.raises(ValueError, match=r"training\.patience must be at least 1; got 0"):
        TrainingConfig(patience=0)
