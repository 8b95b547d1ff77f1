"""A data set is a loader, a description and a name: nothing else has to be told of it."""

import inspect
from pathlib import Path
from typing import Literal, get_args

import pytest
import torch
from helpers.tiny_runs import trained

from scalechannels.commands.evaluate import evaluate
from scalechannels.data.image_set import ImageSet
from scalechannels.saving.saved_network import SavedNetwork
from scalechannels.training import datasets
from scalechannels.training.augment import flips_and_crops
from scalechannels.training.config import DataConfig, DataName, NetworkConfig, RunConfig, TrainingConfig
from scalechannels.training.config import data as described
from scalechannels.training.config.data_sets import DATA_SETS, DataSet
from scalechannels.training.config.options import _hints, _limits

SIDE, IMAGE = 20, 80


class Colours:
    """Squares of two colours, of 20 pixels at size 1, in images of 80."""

    classes = ("red", "blue")

    def __init__(self, config: DataConfig, device: torch.device, root: Path | None) -> None:
        self.config = config

    def training(self, draw: int = 0) -> ImageSet:
        return self._made(self.config.sizes[0])

    def testing(self, size: float, split: str) -> ImageSet:
        return self._made(size)

    def _made(self, size: float) -> ImageSet:
        images, labels = torch.rand(20, 3, IMAGE, IMAGE) / 4, torch.arange(20) % 2
        half = round(SIDE * size / 2)
        middle = slice(IMAGE // 2 - half, IMAGE // 2 + half)
        for image, label in zip(images, labels, strict=True):
            image[2 * int(label), middle, middle] = 1
        return ImageSet(images, labels, torch.full((20,), size, dtype=torch.float64))


@pytest.fixture
def _added(monkeypatch: pytest.MonkeyPatch) -> None:
    about = DataSet(
        title="Squares",
        test_sizes=(0.5, 1.0),
        side=SIDE,
        image=IMAGE,
        values="unit",
        outside="reflect",
        epochs=1,
        high=1.0,
    )
    monkeypatch.setattr(described, "DataName", Literal[(*get_args(DataName), "colours")])
    monkeypatch.setitem(DATA_SETS, "colours", about)
    monkeypatch.setitem(datasets.OPENED, "colours", Colours)
    for found in (_hints, _limits):
        found.cache_clear()
    yield
    for found in (_hints, _limits):
        found.cache_clear()


def test_every_data_set_has_a_name_a_description_and_a_loader() -> None:
    assert set(get_args(DataName)) == set(DATA_SETS) == set(datasets.OPENED)
    offered = inspect.signature(evaluate).parameters["data"].annotation
    assert all((repr(name) in offered) == (name != "folder") for name in DATA_SETS)
    explained = inspect.getsource(DataConfig).split("sizes:")[0]
    assert all(f"{name}: " in explained for name in DATA_SETS)


@pytest.mark.usefixtures("_added")
@pytest.mark.parametrize("name", ["fovlse", "cnn"])
def test_it_is_trained_saved_and_loaded(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, original = [], flips_and_crops.FlipsAndCrops

    def recorded(foveate, **options):
        given.append(options)
        return original(foveate, **options)

    monkeypatch.setattr(flips_and_crops, "FlipsAndCrops", recorded)
    config = RunConfig(
        DataConfig("colours", sizes=(0.5,)),
        NetworkConfig(name, ratio=2),
        TrainingConfig(batch=10, flips=True, visible=0.5),
    )
    run = trained(config, tmp_path)
    assert len(run.result()["history"]) == 1
    (options,) = given
    assert options["outside"] == "reflect"
    assert options["frames"].unique().tolist() == [SIDE / 2]
    saved = SavedNetwork.open(run.folder)
    assert (saved.values, saved.classes, saved.grey) == ("unit", ["red", "blue"], False)
    assert saved.network.backbone.window == (IMAGE if name == "cnn" else SIDE)
    if name == "fovlse":
        assert (saved.network.foveate.outside, list(saved.network.grid)) == ("reflect", [0.5, 1.0])


@pytest.mark.usefixtures("_added")
def test_its_recipe_and_its_own_sizes_are_used(tmp_path: Path) -> None:
    config = RunConfig(DataConfig("colours"), NetworkConfig("fovavg", ratio=2), TrainingConfig(batch=10))
    run = datasets.open_data(config.data)
    assert run.config.about.test_sizes == (0.5, 1.0)
    resolved = config.resolve()
    assert (resolved.training.epochs, resolved.network.high, resolved.data.samples) == (1, 1.0, None)


@pytest.mark.usefixtures("_added")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"samples": 10}, "Squares takes all of its images"),
        ({"hold_out": True}, r"data\.hold_out works only with cifar10 and emoji; colours has validation"),
        ({"reduce": 2}, r"data\.reduce is only for your own images, not for colours"),
    ],
)
def test_what_it_does_not_take_is_refused(options, says) -> None:
    with pytest.raises(ValueError, match=says):
        DataConfig("colours", **options)
