"""Own images as a run: what is chosen from them, what is learnt and tested, and what is the identity."""

import dataclasses
import shutil
from pathlib import Path

import pytest
import torch
from PIL import Image

import scalechannels
from scalechannels import ScaleGrid
from scalechannels.backbones.sized import multiplications
from scalechannels.data.frames import framed, simulated
from scalechannels.training import own_images
from scalechannels.training.build import build_network
from scalechannels.training.config import DataConfig, NetworkConfig, ResolvedRun, RunConfig, TrainingConfig
from scalechannels.training.config import own_images as config_of_own_images
from scalechannels.training.datasets import open_data
from scalechannels.training.fit import fit
from scalechannels.training.trainer import Trainer


def write(root: Path, sizes: list[tuple[int, int]], mode: str = "L", classes: int = 2) -> Path:
    """One noise image of each (height, width) for each class."""
    generator = torch.Generator().manual_seed(0)
    for label in range(classes):
        for index, (height, width) in enumerate(sizes):
            path = root / f"class{label}" / f"{index}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = torch.rand(height, width, 3, generator=generator).mul(255).byte().numpy()
            Image.fromarray(pixels).convert(mode).save(path)
    return root


def chosen(root: Path, network: NetworkConfig | None = None, **data: object) -> RunConfig:
    own = DataConfig("folder", folder=str(root), **data)  # type: ignore[arg-type]
    return RunConfig(own, network or NetworkConfig()).resolve()


def test_small_grey_images_get_the_papers_network(tmp_path: Path) -> None:
    config = chosen(write(tmp_path, [(28, 20)] * 8))
    data, network, training = config.data, config.network, config.training
    assert (data.colour, data.object_size, data.reduce, data.validation) == ("grey", 28, 1, 0.25)
    assert network.window == 28
    grid = ScaleGrid(network.low, network.high, ratio=network.ratio)
    assert len(grid) == 21  # from 1/4 to 4, and two more on both sides
    assert min(abs(scale - 1) for scale in grid) < 1e-12
    assert (training.batch, training.schedule, training.period) == (12, "cosine", training.epochs)
    made = build_network(config, None, 10)
    assert sum(parameter.numel() for parameter in made.parameters()) == 68_870
    assert made.foveate.antialias
    assert config.resolve("cuda") == config  # nothing is open any more


def test_large_images_are_reduced_alike_and_seen_in_larger_windows(tmp_path: Path) -> None:
    config = chosen(write(tmp_path, [(300, 250), (240, 500), (100, 300)] * 2, "RGB"))
    assert (config.data.colour, config.data.object_size, config.data.reduce) == ("rgb", 300, 2)
    assert config.network.window == 56
    data = open_data(config.data)
    learnt = data.training()
    assert learnt.images.shape == (8, 3, 250, 250)  # the longest side of all, halved; nothing is resized
    kept = data.testing(1.0, "validation")
    assert len(kept) == 4
    assert data.testing(4.0, "test").images.shape[2:] == (600, 600)  # four times the object


def test_too_many_pixels_are_reduced_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, [(100, 100)] * 2)
    assert chosen(tmp_path).data.reduce == 1
    monkeypatch.setattr(config_of_own_images, "MEMORY", 4 * 4 * 50**2)
    assert chosen(tmp_path).data.reduce == 2


def test_options_win_over_what_would_be_chosen(tmp_path: Path) -> None:
    write(tmp_path, [(120, 120)] * 4)
    network = NetworkConfig("fovmax", low=1.0, high=4.0, ratio=2.0, window=32, dropout=0.0)
    config = chosen(tmp_path, network, colour="rgb", validation=0.5, object_size=64.0, reduce=1)
    assert dataclasses.asdict(config.network) == dataclasses.asdict(network)
    assert (config.data.colour, config.data.validation, config.data.object_size) == ("rgb", 0.5, 64)
    assert len(open_data(config.data).training()) == 4
    assert chosen(tmp_path).data.colour == "grey"


def test_known_pixel_sizes_set_the_channels(tmp_path: Path) -> None:
    write(tmp_path, [(28, 28)] * 4)
    config = chosen(tmp_path, pixel_size=0.5, deploy_pixel_sizes=(0.25, 2.0))
    # A pixel of 0.25 instead of 0.5 makes the object twice as large, one of 2 makes it a quarter.
    assert config_of_own_images.factors(config.data) == (0.25, 2.0)
    assert config.network.low == pytest.approx(0.25 * 2**-0.5)
    assert config.network.high == pytest.approx(2 * 2**0.5)
    same = chosen(tmp_path, pixel_size=0.5, deploy_pixel_sizes=(0.5,))
    assert same.network.high == pytest.approx(2**0.5)
    assert config.resolve() == config
    with pytest.raises(
        ValueError, match=r"pixel sizes set channels from 0\.17.* to 2\.8.*network\.high says 8"
    ):
        chosen(tmp_path, NetworkConfig(high=8.0), pixel_size=0.5, deploy_pixel_sizes=(0.25, 2.0))


def test_the_plain_cnn_costs_what_the_channels_cost(tmp_path: Path) -> None:
    for side, mode in ((28, "L"), (90, "RGB")):
        root = write(tmp_path / mode, [(side, side)] * 4, mode)
        channels, plain = (build_network(chosen(root, NetworkConfig(n)), None, 7) for n in ("fovlse", "cnn"))
        cost = len(channels.grid) * multiplications(channels.backbone)
        assert multiplications(plain.backbone) == pytest.approx(cost, rel=0.06)
        assert list(plain.grid) == pytest.approx([side / channels.foveate.window])
        assert plain.foveate.window == 4 * channels.foveate.window
        assert plain.foveate.antialias
        assert plain(torch.rand(2, 1 if mode == "L" else 3, 50, 70)).shape == (2, 7)


def test_training_and_testing_are_disjoint_and_keep_the_scale(tmp_path: Path) -> None:
    write(tmp_path, [(20, 20), (31, 30), (60, 44), (28, 28)] * 3)
    config = chosen(tmp_path, validation=0.5)
    data = open_data(config.data)
    learnt, kept = data.training(), data.testing(1.0, "validation")
    assert (len(learnt), len(kept)) == (12, 12)
    assert learnt.images.shape[-1] == 60
    for index, (image, _) in enumerate(data.learnt):
        assert torch.equal(learnt.images[index], framed(image, 60))
    half = data.testing(0.5, "validation")
    for index, (image, label) in enumerate(data.kept):
        assert torch.equal(half.images[index], simulated(image, 0.5, half.images.shape[-1]))
        assert (int(half.labels[index]), float(half.scales[index])) == (label, 0.5)
    with pytest.raises(ValueError, match="single sizes"):
        data.testing((0.5, 2.0), "test")


def test_very_many_test_images_are_thinned_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, [(8, 8)] * 110)
    config = chosen(tmp_path, validation=0.95)
    monkeypatch.setattr(own_images, "MEMORY", 2**20)
    kept = open_data(config.data).testing(4.0, "test")
    assert 0 < len(kept) < 209
    assert kept.labels.bincount().tolist() == [len(kept) // 2 + len(kept) % 2, len(kept) // 2]


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


def test_a_run_goes_on_and_comes_back_from_its_file(tmp_path: Path) -> None:
    root = write(tmp_path / "images", [(28, 28)] * 10)
    training = TrainingConfig(epochs=2, batch=5)
    network = NetworkConfig(low=0.5, high=2.0, ratio=2.0)
    config = RunConfig(DataConfig("folder", folder=str(root)), network, training)
    (run,) = fit([config], tmp_path / "runs", device="cpu", sizes=[1.0, 0.5])
    result = run.result()
    assert result["classes"] == ["class0", "class1"]
    assert [entry["images"] for entry in result["evaluation"]["sizes"]] == [4, 4]
    assert ResolvedRun.from_toml(run.folder / "config.toml") == run.config
    before = (run.folder / "result.json").stat().st_mtime_ns
    shutil.move(root, tmp_path / "moved")
    again = dataclasses.replace(config, data=dataclasses.replace(config.data, folder=str(tmp_path / "moved")))
    (same,) = fit([again], tmp_path / "runs", device="cpu", sizes=[1.0])
    assert same.folder == run.folder
    assert (run.folder / "result.json").stat().st_mtime_ns == before


def test_both_networks_train_in_the_form_of_a_gpu_and_go_on_from_a_checkpoint(tmp_path: Path) -> None:
    """Stacked, as runs are on a GPU: the same network as on a CPU, up to the order of summation."""
    root = write(tmp_path / "images", [(28, 28)] * 10, "RGB")
    training = TrainingConfig(epochs=2, batch=5)
    for name in ("fovlse", "cnn"):
        network = NetworkConfig(name, low=0.5, high=2.0, ratio=2.0, dropout=0.0, window=12)
        config = RunConfig(DataConfig("folder", folder=str(root)), network, training)
        images = torch.rand(2, 3, 40, 40, generator=torch.Generator().manual_seed(0))
        logits = []
        for together in (False, True):
            (run,) = fit(
                [config],
                tmp_path / str(together),
                device="cpu",
                sizes=[1.0],
                together=together,
                compiled=False,
            )
            with torch.inference_mode():
                logits.append(scalechannels.load(run.folder)(images))
        assert torch.allclose(*logits, atol=0.02)


def test_unreadable_files_are_refused_or_left_out_as_asked(tmp_path: Path) -> None:
    write(tmp_path, [(28, 28)] * 4)
    (tmp_path / "class0" / "text.png").write_text("no image")
    with pytest.raises(ValueError, match=r"text\.png: damaged or no image"):
        chosen(tmp_path)
    with pytest.warns(UserWarning, match=r"text\.png"):
        config = chosen(tmp_path, skip_corrupt=True)
    with pytest.warns(UserWarning, match=r"text\.png"):
        assert len(open_data(config.data).training()) == 6


@pytest.mark.parametrize(
    ("data", "network", "says"),
    [
        ({"name": "mnist", "reduce": 2}, {}, r"data\.reduce is for own images"),
        ({"name": "strokes", "folder": "x"}, {}, r"data\.folder is for own images.*data\.name is folder"),
        ({"name": "folder"}, {}, r"needs data\.folder"),
        ({"sizes": (2.0,)}, {}, "trained on at their own size"),
        ({"colour": "gray"}, {}, "grey, rgb, got 'gray'"),
        ({"validation": 1.0}, {}, r"data\.validation is a share between 0 and 1, got 1\.0"),
        ({"object_size": 0.0}, {}, r"data\.object_size is a positive"),
        ({"reduce": 0}, {}, r"data\.reduce is at least 1"),
        ({"pixel_size": 0.5}, {}, "give both"),
        ({"pixel_size": 0.5, "deploy_pixel_sizes": (-1.0,)}, {}, "are positive"),
        ({"object_size": 3.0}, {}, "objects of 3 pixels show nothing to learn"),
        ({}, {"name": "swmax"}, "no swmax"),
        ({}, {"antialias": True}, "always anti-aliased"),
        ({}, {"width": 2}, r"network\.width and network\.average_scales are .* not for own images"),
        ({}, {"name": "cnn", "average_scales": True}, r"network\.average_scales are .* not for own images"),
        ({}, {"window": 5}, r"network\.window is at least 11"),
        ({}, {"low": 3.0, "high": 4.0, "ratio": 2.0}, "do not meet"),
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
        ("cnn", {"jitter": 1}, r"training\.jitter is for foveated networks, not cnn"),
        ("fovlse", {"flips": True}, "for cifar10, not for folder"),
    ],
)
def test_training_that_does_not_fit_the_network_is_told(
    tmp_path: Path, name: str, training: dict, says: str
) -> None:
    write(tmp_path, [(28, 28)] * 4)
    data = DataConfig("folder", folder=str(tmp_path))
    with pytest.raises(ValueError, match=says):
        RunConfig(data, NetworkConfig(name), TrainingConfig(**training)).resolve()


@pytest.mark.parametrize("name", ["fovlse", "cnn"])
def test_images_are_cut_in_the_measure_of_their_object(tmp_path: Path, name: str, monkeypatch) -> None:
    write(tmp_path / "images", [(120, 120)] * 4)
    config = dataclasses.replace(
        chosen(tmp_path / "images", NetworkConfig(name), reduce=2),
        training=TrainingConfig(epochs=1, batch=4, visible=0.5),
    )
    assert config.network.window == 56
    frames, step = [], Trainer._step

    def spy(self: Trainer) -> None:
        frames.append(self.augmentations[0].frames)
        step(self)

    monkeypatch.setattr(Trainer, "_step", spy)
    fit([config], tmp_path / "runs", device="cpu", sizes=(1.0,))
    assert frames[0].unique().tolist() == [60]  # the object's pixels, not the window's


@pytest.mark.parametrize("reduce", [1, 2])
def test_the_card_says_that_images_were_made_smaller(tmp_path: Path, reduce: int) -> None:
    write(tmp_path / "images", [(64, 64)] * 4)
    config = chosen(tmp_path / "images", NetworkConfig("cnn"), reduce=reduce)
    config = dataclasses.replace(config, training=TrainingConfig(epochs=1, batch=4))
    (run,) = fit([config], tmp_path / "runs", device="cpu", sizes=(1.0,))
    card = (run.folder / "README.md").read_text()
    assert ("made 2 times smaller" in card) == (reduce == 2)
    assert "\n\nThe method" in card


def test_other_data_has_no_window_to_choose() -> None:
    with pytest.raises(ValueError, match=r"network\.window is for own images"):
        RunConfig(network=NetworkConfig(window=32)).resolve()


def test_a_class_with_one_image_and_images_without_content_are_told(tmp_path: Path) -> None:
    write(tmp_path / "one", [(28, 28)])
    with pytest.raises(ValueError, match="class 'class0' has 1 image"):
        chosen(tmp_path / "one")
    write(tmp_path / "dots", [(1, 1)] * 4)
    with pytest.raises(ValueError, match="objects of 1 pixels show nothing to learn: at least 8"):
        chosen(tmp_path / "dots")


def test_a_1x1_image_among_others_is_one_colour(tmp_path: Path) -> None:
    write(tmp_path, [(28, 28)] * 3 + [(1, 1)])
    data = open_data(chosen(tmp_path).data)
    images = torch.cat([data.training().images, data.testing(1.0, "test").images])
    assert sum(float(image.amax() - image.amin()) == 0 for image in images) == 2


def test_what_is_learnt_at_one_size_is_recognised_at_another(tmp_path: Path) -> None:
    """The way of values, labels and scales from files to logits is whole: bars that lie, bars that stand."""
    generator = torch.Generator().manual_seed(0)
    for index in range(40):
        image = torch.rand(28, 28, generator=generator) * 60
        place = 8 + int(torch.randint(12, (), generator=generator))
        image[place : place + 3, 4:24] = 220
        path = tmp_path / "images" / ("lies", "stands")[index % 2] / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image if index % 2 == 0 else image.mT).byte().numpy().copy()).save(path)
    config = RunConfig(
        DataConfig("folder", folder=str(tmp_path / "images")),
        NetworkConfig(low=0.5, high=4.0, ratio=2.0),
        TrainingConfig(epochs=20, batch=10),
    )
    (run,) = fit([config], tmp_path / "runs", device="cpu", sizes=[1.0, 2.0, 4.0])
    assert [entry["accuracy"] for entry in run.result()["evaluation"]["sizes"]] == [100.0] * 3
