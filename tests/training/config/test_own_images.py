"""What is chosen from own images, what is refused, and what is the identity of a run."""

import dataclasses
import shutil
from pathlib import Path

import pytest
import torch
from helpers.own_folder import chosen, write

from scalechannels import ScaleGrid
from scalechannels.training import inputs
from scalechannels.training.build import build_network
from scalechannels.training.config import (
    DataConfig,
    NetworkConfig,
    RunConfig,
    TrainingConfig,
    own_images,
)
from scalechannels.training.datasets import open_data


def test_small_grey_images_get_the_papers_network(tmp_path: Path) -> None:
    config = chosen(write(tmp_path, [(28, 20)] * 8))
    data, network, training = config.data, config.network, config.training
    assert (data.colour, data.object_size, data.reduce) == ("grey", 28, 1)
    assert (data.images, data.validation, data.test) == ("crops", 0.2, 0.2)
    assert network.window == 28
    grid = ScaleGrid(network.low, network.high, ratio=network.ratio)
    assert len(grid) == 21  # from 1/4 to 4, and two more on both sides
    assert min(abs(scale - 1) for scale in grid) < 1e-12
    assert (training.batch, training.schedule, training.period) == (8, "cosine", training.epochs)
    made = build_network(config, None, 10)
    assert sum(parameter.numel() for parameter in made.parameters()) == 68_870
    assert made.foveate.antialias is network.antialias is True  # the file says what the network has
    assert config.resolve("cuda") == config  # nothing is open any more


def test_images_are_not_reduced_for_want_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, [(100, 100)] * 3)
    monkeypatch.setattr(inputs, "free_memory", lambda device: 0)
    assert chosen(tmp_path).data.reduce == 1


def test_options_win_over_what_would_be_chosen(tmp_path: Path) -> None:
    write(tmp_path, [(120, 120)] * 4)
    network = NetworkConfig("fovmax", low=1.0, high=4.0, ratio=2.0, window=32, dropout=0.0)
    config = chosen(tmp_path, network, colour="rgb", validation=0.5, object_size=64.0, reduce=1)
    given = {name: value for name, value in dataclasses.asdict(network).items() if value is not None}
    assert dataclasses.asdict(config.network).items() >= given.items()
    assert (config.data.colour, config.data.validation, config.data.object_size) == ("rgb", 0.5, 64)
    assert len(open_data(config.data).training()) == 2
    assert chosen(tmp_path).data.colour == "grey"


def test_known_pixel_sizes_set_the_channels(tmp_path: Path) -> None:
    write(tmp_path, [(28, 28)] * 4)
    config = chosen(tmp_path, pixel_size=0.5, deploy_pixel_sizes=(0.25, 2.0))
    # A pixel of 0.25 instead of 0.5 makes the object twice as large, one of 2 makes it a quarter.
    assert own_images.factors(config.data) == (0.25, 2.0)
    assert config.network.low == pytest.approx(0.25 * 2**-0.5)
    assert config.network.high == pytest.approx(2 * 2**0.5)
    same = chosen(tmp_path, pixel_size=0.5, deploy_pixel_sizes=(0.5,))
    assert same.network.high == pytest.approx(2**0.5)
    assert config.resolve() == config
    with pytest.raises(
        ValueError, match=r"pixel-sizes already set the channels, 0\.177 to 2\.83; got network\.high 8"
    ):
        chosen(tmp_path, NetworkConfig(high=8.0), pixel_size=0.5, deploy_pixel_sizes=(0.25, 2.0))


def test_the_content_is_the_identity_and_the_place_is_not(tmp_path: Path) -> None:
    first = write(tmp_path / "first", [(28, 28)] * 6)
    shutil.copytree(first, tmp_path / "second")
    one, other = chosen(first), chosen(tmp_path / "second")
    assert one == other
    assert one.name == other.name
    assert one.data.folder != other.data.folder
    shutil.copy(first / "class0" / "0.png", first / "class0" / "more.png")
    grown = chosen(first)
    assert grown.name != one.name
    with pytest.raises(ValueError, match=r"first does not hold the images that this run began with"):
        open_data(one.data)
    with pytest.raises(ValueError, match="does not hold the images"):
        dataclasses.replace(one, training=TrainingConfig()).resolve()


def test_fovconc_on_own_images_keeps_the_name_and_the_weights_of_the_first_edition(tmp_path: Path) -> None:
    """There it began with PyTorch's first weights; the paper's Glorot is for the paper's data."""
    data = DataConfig(
        *("folder", (1.0,)), folder="photos", checksum="f991d106acce04ce", colour="grey", validation=0.25,
        object_size=28.0, reduce=1,
    )  # fmt: skip
    network = NetworkConfig("fovconc", low=0.17677669529663695, high=5.656854249492378, window=28)
    first = RunConfig(data, network, TrainingConfig(epochs=100, batch=6)).resolve()
    assert first.name == "fovconc-folder-tr1-seed0-6fd1d37e"
    config = chosen(write(tmp_path, [(28, 28)] * 4), NetworkConfig("fovconc"))
    by_torch = dataclasses.replace(
        config, network=dataclasses.replace(config.network, initialisation="torch")
    )
    weights, expected = (build_network(one, None, 2).state_dict() for one in (config, by_torch))
    assert all(torch.equal(weights[name], expected[name]) for name in expected)


@pytest.mark.parametrize(
    ("data", "network", "says"),
    [
        ({"name": "mnist", "reduce": 2}, {}, r"data\.reduce is only for your own images"),
        (
            {"name": "strokes", "folder": "x"},
            {},
            "--data FOLDER cannot be combined with --data.name strokes; remove one",
        ),
        ({"name": "folder"}, {}, r"need --data FOLDER, with a subfolder for each class"),
        ({"samples": 100}, {}, r"data\.samples does not apply to your own images"),
        ({"colour": "gray"}, {}, "grey, rgb; got 'gray'"),
        ({"validation": 1.0}, {}, r"data\.validation must be a share between 0 and 1; got 1\.0"),
        ({"object_size": 0.0}, {}, r"data\.object_size must be a positive"),
        ({"reduce": 0}, {}, r"data\.reduce must be at least 1"),
        ({"pixel_size": 0.5}, {}, "--deploy-pixel-sizes must be given together; got only --pixel-size"),
        ({"deploy_pixel_sizes": (0.5,)}, {}, "must be given together; got only --deploy-pixel-sizes"),
        ({"pixel_size": 0.5, "deploy_pixel_sizes": ()}, {}, "^--deploy-pixel-sizes must be one size or more"),
        ({"pixel_size": -0.5}, {}, "^--pixel-size must be a positive number; got -0.5"),
        ({"max_pixels": 0}, {}, "^--max-pixels must be at least 1; got 0"),
        (
            {"name": "mnist", "pixel_size": 0.5},
            {},
            "^--pixel-size is only for your own .*: add --data FOLDER",
        ),
        ({"name": "mnist", "skip_corrupt": True}, {}, "^--skip-corrupt is only for your own images"),
        ({"samples": 3}, {}, r"^data\.samples does not apply to your own images"),
        (
            {"hold_out": True},
            {},
            r"^data\.hold_out works only with cifar10 and emoji; data\.validation splits",
        ),
        ({"redraw": True}, {}, r"^data\.redraw needs two or more data\.sizes; got 1$"),
        ({}, {"pretrained": 1.0}, r"network\.pretrained does not apply to your own images"),
        (
            {},
            {"backbone": "residual", "look": "everywhere"},
            "needs a backbone without padding, not residual",
        ),
        (
            {},
            {"backbone": "efficientnet-lite0", "window": 28},
            r"network\.window must be from 32 to 256 pixels; got 28",
        ),
        (
            {"resize": 28},
            {"name": "cnn", "backbone": "efficientnet-lite0"},
            r"data\.resize must be from 32 to 256 pixels; got 28",
        ),
        (
            {"reduce": 4},
            {},
            "objects of 28 pixels .* shrunk by 4, leave 7 pixels of an object; at least 8 are needed",
        ),
        (
            {"object_size": 2800.0},
            {},
            "objects of 2800 pixels in images of 28, shrunk by 25, leave 1.12 ",
        ),
        ({"pixel_size": 0.5, "deploy_pixel_sizes": (-1.0,)}, {}, "must be a positive number"),
        ({"object_size": 3.0}, {}, "objects of 3 pixels in images of 28 leave 3 pixels"),
        ({}, {"name": "swmax"}, r"a foveated network or cnn; got network\.name swmax"),
        ({"test": 0.5, "validation": 0.5}, {}, r"leave nothing to train on; got 1 together"),
        ({"range": (2.0, 1.0)}, {}, r"--range must be two sizes from low to high, 0\.001 to 1000; got 2 1"),
        ({"range": (1.0,)}, {}, "--range must be two sizes"),
        (
            {"range": (0.5, 2.0), "pixel_size": 1.0, "deploy_pixel_sizes": (1.0,)},
            {},
            "--range and --deploy-pixel-sizes both say",
        ),
        ({"range": (0.5, 2.0)}, {"low": 0.1}, "--range already set the channels"),
        ({"resize": 28}, {}, r"data\.resize needs network\.name cnn; got fovlse"),
        ({"resize": 28, "images": "frames"}, {"name": "cnn"}, r"data\.resize is for crops"),
        ({"resize": 5}, {"name": "cnn"}, r"data\.resize must be from 11 to 256 pixels; got 5"),
        ({"resize": 257}, {"name": "cnn"}, r"data\.resize must be from 11 to 256 pixels; got 257"),
        ({}, {"width": 2}, r"network\.width does not apply to your own images; remove it"),
        (
            {},
            {"name": "cnn", "average_scales": True},
            r"network\.average_scales does not apply to your own images; remove it",
        ),
        ({}, {"window": 5}, r"network\.window must be from 11 to 256 pixels; got 5"),
        ({}, {"window": 10**9}, r"network\.window must be from 11 to 256 pixels; got 1000000000"),
        (
            {},
            {"low": 3.0, "high": 4.0, "ratio": 2.0},
            "the largest scale, 4, is not the smallest, 3, times a whole power of the ratio 2; take",
        ),
    ],
)
def test_what_means_nothing_is_told(tmp_path: Path, data: dict, network: dict, says: str) -> None:
    write(tmp_path, [(28, 28)] * 4)
    given = {"name": "folder", "folder": str(tmp_path)} if "name" not in data else {}
    with pytest.raises(ValueError, match=says):
        RunConfig(DataConfig(**{**given, **data}), NetworkConfig(**network)).resolve()


@pytest.mark.parametrize(
    ("name", "training", "says"),
    [
        ("cnn", {"jitter": 1}, r"training\.jitter works only with foveated networks"),
        ("fovlse", {"jitter": 1, "flips": True}, r"training\.jitter .* not together with training\.flips"),
    ],
)
def test_training_that_does_not_fit_the_network_is_told(
    tmp_path: Path, name: str, training: dict, says: str
) -> None:
    write(tmp_path, [(28, 28)] * 4)
    data = DataConfig("folder", folder=str(tmp_path))
    with pytest.raises(ValueError, match=says):
        RunConfig(data, NetworkConfig(name), TrainingConfig(**training)).resolve()


def test_other_data_has_no_window_to_choose() -> None:
    with pytest.raises(ValueError, match=r"network\.window is only for your own images"):
        RunConfig(network=NetworkConfig(window=32)).resolve()


def test_a_class_with_one_image_and_images_without_content_are_told(tmp_path: Path) -> None:
    write(tmp_path / "one", [(28, 28)])
    with pytest.raises(ValueError, match="class 'class0' has 1 image"):
        chosen(tmp_path / "one")
    write(tmp_path / "dots", [(1, 1)] * 4)
    with pytest.raises(
        ValueError, match=r"objects of 1 pixels in images of 1 leave 1 pixels of an object; at least 8"
    ):
        chosen(tmp_path / "dots")
