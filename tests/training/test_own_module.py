"""A user's own module as a network: the run's identity, training, resuming and testing again."""

import dataclasses
import sys
from dataclasses import replace

import pytest
import torch
from helpers.command_line import run
from helpers.tiny_runs import SIZES, assert_same, trained, weights

from scalechannels.saving.saved_network import load
from scalechannels.training import group
from scalechannels.training.config import DataConfig, NetworkConfig, ResolvedRun, RunConfig, TrainingConfig
from scalechannels.training.config.recommended import recommended
from scalechannels.training.fit import fit

SOURCE = """
import torch
from torch import nn
class Method(nn.Sequential):
    def __init__(self, channels, classes):
        super().__init__(
            nn.AvgPool2d(8), nn.Conv2d(channels, 4, 3), nn.ReLU(), nn.Dropout(0.7),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, classes),
        )
"""


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "method.py"
    path.write_text(SOURCE)
    return path


def config(name: object, **training) -> RunConfig:
    return RunConfig(
        DataConfig(samples=40),
        NetworkConfig(str(name)),
        dataclasses.replace(TrainingConfig(epochs=2, batch=20), **training),
    )


def test_a_run_is_known_by_what_its_module_is_and_not_by_where_it_lies(own, tmp_path) -> None:
    first = config(f"{own}:Method").resolve()
    assert first.name.startswith("Method-strokes-tr1-seed0-")
    elsewhere = tmp_path / "other" / "method.py"
    elsewhere.parent.mkdir()
    elsewhere.write_text(SOURCE)
    assert config(f"{elsewhere}:Method").resolve() == first
    assert config(f"{elsewhere}:Method").resolve().name == first.name
    elsewhere.write_text(SOURCE + "\n")
    assert config(f"{elsewhere}:Method").resolve().name != first.name


def test_it_is_trained_tested_and_tested_again(own, tmp_path, monkeypatch) -> None:
    finished = trained(config(f"{own}:Method"), tmp_path / "runs")
    result = finished.result()
    assert result["parameters"] == 4 * 9 + 4 + 4 * 10 + 10
    assert [entry["size"] for entry in result["evaluation"]["sizes"]] == list(SIZES)
    assert ResolvedRun.from_toml(finished.folder / "config.toml") == finished.config
    with pytest.raises(ValueError, match="only you can build"):
        load(finished.folder)
    monkeypatch.setattr(group.Group, "train", None)  # nothing may be trained again
    (again,) = fit([config(f"{own}:Method")], tmp_path / "runs", device="cpu", sizes=(0.5,))
    assert [entry["size"] for entry in again.result()["evaluation"]["sizes"]] == [0.5]


def test_only_training_runs_the_file(own, tmp_path, capsys) -> None:
    """A run's folder may come from elsewhere, and a file of Python with it."""
    trace = tmp_path / "ran"
    own.write_text(f"{SOURCE}\nimport pathlib\npathlib.Path({str(trace)!r}).touch()\n")
    folder = trained(config(f"{own}:Method"), tmp_path / "runs").folder
    assert trace.exists()
    trace.unlink()
    for name in [name for name in sys.modules if name.startswith("scalechannels_own_")]:
        del sys.modules[name]  # else it would not run again in any case
    for words in (
        ("evaluate", folder, "--sizes", 0.5),
        ("predict", folder, tmp_path),
        ("export", folder, "--onnx", tmp_path / "net.onnx"),
    ):
        assert run(*words) == 1
        assert "which only you can build" in capsys.readouterr().err
    assert not trace.exists()


def test_its_own_dropout_stays(own) -> None:
    from scalechannels.training.build import build_network

    (drop,) = [
        part for part in build_network(config(f"{own}:Method").resolve()).modules() if hasattr(part, "p")
    ]
    assert drop.p == 0.7


def test_a_killed_run_resumes_with_the_same_file_only(own, tmp_path, monkeypatch) -> None:
    whole = trained(config(f"{own}:Method"), tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(group.Group, "evaluate", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        patch.setattr(group.Trainer, "epoch", _interrupted(group.Trainer.epoch))
        with pytest.raises(KeyboardInterrupt):
            trained(config(f"{own}:Method"), tmp_path / "runs")
    (folder,) = (path for path in (tmp_path / "runs").iterdir() if path.is_dir())
    begun = RunConfig.from_toml(folder / "config.toml")
    assert_same(weights(whole), weights(trained(begun, tmp_path / "runs")))
    own.write_text(SOURCE.replace("0.7", "0.1"))
    with pytest.raises(ValueError, match="is not the file that this run began with"):
        trained(begun, tmp_path / "runs")


def _interrupted(epoch):
    done = []

    def once(self, *words, **options):
        if done:
            raise KeyboardInterrupt
        done.append(1)
        return epoch(self, *words, **options)

    return once


@pytest.mark.parametrize(
    "options", [{"width": 2}, {"antialias": True}, {"dropout": 0.5}, {"look": "everywhere"}]
)
@pytest.mark.parametrize("name", ["riesz", "method.py:Method"])
def test_options_of_our_networks_are_refused(name: str, options) -> None:
    with pytest.raises(
        ValueError, match=f"network.{next(iter(options))} is for the networks of this library"
    ):
        NetworkConfig(name, **options)


def test_own_images_and_jitter_are_refused(tmp_path) -> None:
    with pytest.raises(
        ValueError, match=r"your own images need a foveated network or cnn; got network.name riesz"
    ):
        RunConfig(DataConfig(name="folder", folder=str(tmp_path)), NetworkConfig("riesz")).resolve()
    with pytest.raises(ValueError, match=r"training.jitter works only with foveated networks"):
        config("riesz", jitter=1).resolve()


def test_a_rival_is_trained_as_our_networks_are(tmp_path) -> None:
    few = replace(config("stn", visible=0.5, epochs=1), data=DataConfig(samples=20))
    finished = trained(few, tmp_path, together=True)
    assert finished.config.name.startswith("stn-strokes-")
    assert load(finished.folder)(torch.randn(2, 1, 112, 112)).shape == (2, 10)


@pytest.mark.parametrize("data", ["strokes", "cifar10"])
def test_the_recommended_recipe_leaves_modules_as_they_are(data) -> None:
    run = RunConfig(DataConfig(name=data), NetworkConfig("riesz"))
    assert recommended(run) == run


def test_an_unknown_name_lists_the_known_ones(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"must be one of .*riesz.*, or path/to/file.py:Class; got 'ries'"):
        fit([config("ries")], tmp_path)
