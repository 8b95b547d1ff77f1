from pathlib import Path

import numpy as np
import pytest
import torch

from scalechannels.data import emoji
from scalechannels.data.emoji_drawings import open_drawings
from scalechannels.data.sizes import CIFAR_SIZES, MNIST_SIZES
from scalechannels.training import datasets
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig
from scalechannels.training.config.recommended import recommended
from scalechannels.training.datasets import open_data, require_labels
from scalechannels.training.fit import fit


@pytest.fixture(autouse=True)
def _few(monkeypatch) -> None:
    monkeypatch.setattr(datasets, "STROKES_TEST", 30)


def test_digits_have_the_size_that_was_asked_for() -> None:
    data = open_data(DataConfig(sizes=(2.0,), samples=40))
    training = data.training()
    assert training.images.shape == (40, 1, 112, 112)
    assert torch.equal(training.scales, torch.full((40,), 2.0, dtype=torch.float64))
    assert torch.bincount(training.labels).tolist() == [4] * 10
    assert len(data.classes) == 10
    assert data.config.about.test_sizes == MNIST_SIZES


def test_a_range_is_log_uniform_and_stays_inside() -> None:
    scales = open_data(DataConfig(sizes=(0.25, 1.0), samples=100)).training().scales
    assert 0.25 <= float(scales.min()) < 0.28
    assert 0.93 < float(scales.max()) <= 1
    assert 35 < int((scales < 0.5).sum()) < 65  # half of the octaves, not a third of the interval


def test_of_several_sizes_each_image_has_one_and_another_draw_has_others() -> None:
    data = open_data(DataConfig(sizes=(1.0, 2.0, 4.0), samples=60, redraw=True))
    scales = data.training().scales
    assert sorted(set(scales.tolist())) == [1.0, 2.0, 4.0]
    assert min(int((scales == size).sum()) for size in (1.0, 2.0, 4.0)) > 10
    assert not torch.equal(scales, data.training(draw=1).scales)


def test_training_validation_and_test_are_different_digits_and_stay_the_same() -> None:
    data = open_data(DataConfig(samples=30))
    sets = [data.training(), data.testing(1.0, "validation"), data.testing(1.0, "test")]
    for index, made in enumerate(sets):
        for other in sets[index + 1 :]:
            assert not torch.equal(made.images, other.images)
    assert torch.equal(sets[2].images, data.testing(1.0, "test").images)
    assert torch.equal(sets[0].images, open_data(DataConfig(samples=30)).training().images)
    assert not torch.equal(sets[0].images, open_data(DataConfig(samples=30, seed=1)).training().images)


def test_the_same_digits_are_tested_at_every_size() -> None:
    data = open_data(DataConfig(samples=30))
    assert torch.equal(data.testing(1.0, "test").labels, data.testing(4.0, "test").labels)


def test_mnist_is_made_by_its_recipe(monkeypatch) -> None:
    from scalechannels.data import mnist_large_scale as large
    from scalechannels.data.sources import TrainAndTest

    draw = np.random.default_rng(0)
    pictures = torch.from_numpy(draw.integers(0, 256, (120, 28, 28), dtype=np.uint8))
    labels = torch.arange(120) % 10
    monkeypatch.setattr(large, "load_mnist", lambda root: TrainAndTest(pictures, labels, pictures, labels))
    config = DataConfig("mnist", sizes=(2.0,), samples=20, seed=1)
    data = open_data(config)
    expected = large.MnistLargeScale(mnist=TrainAndTest(pictures, labels, pictures, labels))
    made = expected.make("train", 2.0, 1, 20)
    assert torch.equal(data.training().images, made.images)
    made = expected.make("validation", 4.0, 1)
    assert torch.equal(data.testing(4.0, "validation").images, made.images)
    assert data.config.about.test_sizes == MNIST_SIZES


def test_cifar_is_tested_at_its_own_sizes(monkeypatch) -> None:
    from scalechannels.data import rescaled_cifar10 as rescaled

    draw = torch.Generator().manual_seed(0)
    pictures = torch.randint(0, 256, (20, 3, 32, 32), generator=draw, dtype=torch.uint8)
    labels = torch.arange(20) % 10
    monkeypatch.setattr(
        rescaled, "load_cifar10", lambda root: rescaled.TrainAndTest(pictures, labels, pictures, labels)
    )
    data = open_data(DataConfig("cifar10"))
    assert data.training().images.shape == (20, 3, 32, 32)
    assert data.testing(2.0, "test").scales.tolist() == [2.0] * 20
    assert (data.config.about.test_sizes, len(data.classes)) == (CIFAR_SIZES, 10)
    with pytest.raises(ValueError, match="single sizes"):
        data.testing((1.0, 2.0), "test")
    rescaled_sets = open_data(DataConfig("cifar10", (0.5, 2.0), redraw=True))
    first, again = rescaled_sets.training(), rescaled_sets.training(draw=1)
    assert not torch.equal(first.images, again.images)
    for image, picture, scale in zip(first.images, pictures, first.scales.tolist(), strict=True):
        as_tested = rescaled.rescale_cifar10(picture[None], scale)[0]
        torch.testing.assert_close(image, as_tested, atol=1e-6, rtol=0)
    assert 0.5 <= float(first.scales.min()) < 1 < float(first.scales.max()) <= 2
    with pytest.raises(ValueError, match="hold_out"):
        data.testing(1.0, "validation")


@pytest.mark.parametrize(
    ("labels", "classes", "says"),
    [
        ([0, 10], 10, "labels lie in 0 to 9, .*got 0 to 10"),
        ([-1, 3], 10, "got -1 to 3"),
        ([0, 0], 0, "at least two classes"),
        ([0, 0], 1, "at least two classes"),
        ([], 10, "at least one image"),
    ],
)
def test_labels_that_cannot_be_learnt(labels, classes, says) -> None:
    with pytest.raises(ValueError, match=says):
        require_labels(torch.tensor(labels), classes)


def test_digits_anywhere_are_trained_and_tested_on_at_other_sizes_and_places(one_thread: None) -> None:
    config = DataConfig("strokes", (0.5, 0.8), samples=60, places="anywhere", distinct=20, background="noisy")
    data = open_data(config)
    made, again, redrawn = data.training(), data.training(), data.training(draw=1)
    assert made.images.shape == (60, 1, 64, 64)
    assert torch.equal(made.images, again.images)
    assert made.places is not None
    assert redrawn.places is not None
    assert not torch.equal(made.places, redrawn.places)
    assert torch.equal(made.labels[:20], made.labels[20:40])  # the same digits, elsewhere
    assert made.scales.max() < 0.8
    tested = data.testing(2.0, "test")
    assert (tested.scales == 2).all()
    assert config.about.test_sizes == CIFAR_SIZES
    assert (
        open_data(DataConfig("strokes", places="anywhere", side=80)).testing(1.0, "test").images.shape[2]
        == 80
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": "mnist-scale", "places": "anywhere"}, "are for digits, .*, not for mnist-scale"),
        ({"name": "mnist-scale", "side": 64}, "are for digits, .*, not for mnist-scale"),
        ({"name": "cifar10", "places": "anywhere", "background": "noisy"}, "clothes, not for cifar10"),
        ({"name": "cifar10", "places": "anywhere", "find": 3}, "clothes, not for cifar10"),
        ({"find": 3}, "add --data.places anywhere"),
        ({"side": 64, "find": 3}, "add --data.places anywhere"),
        ({"places": "anywhere", "find": 10}, "from 0 to 9; got 10"),
        ({"places": "anywhere", "objects": 2}, "data.objects needs data.find"),
        ({"background": "noisy"}, "add --data.places anywhere"),
        ({"distinct": 5}, "add --data.places anywhere"),
        ({"places": "anywhere", "side": 100_000}, "from 16 to 1024"),
    ],
)
def test_options_of_digits_anywhere_are_for_them_alone(options, says) -> None:
    with pytest.raises(ValueError, match=says):
        DataConfig(**options)


def small_mnist(
    monkeypatch: pytest.MonkeyPatch, count: int = 120, *, shuffled: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """MNIST and Fashion-MNIST of so many training images and as many for testing, of other grey values."""
    from scalechannels.data import mnist_large_scale, mnist_scale, sources

    draw = torch.Generator().manual_seed(1)
    pictures = torch.zeros(2 * count, 28, 28, dtype=torch.uint8)
    pictures[:, 8:20, 8:20] = torch.randint(1, 256, (2 * count, 12, 12), generator=draw, dtype=torch.uint8)
    labels = torch.arange(2 * count) % 10
    if shuffled:
        labels = labels[torch.randperm(2 * count, generator=draw)]
    made = sources.TrainAndTest(pictures[:count], labels[:count], pictures[count:], labels[count:])
    for module, name in (
        (mnist_large_scale, "load_mnist"),
        (mnist_scale, "load_mnist"),
        (sources, "load_fashion"),
    ):
        monkeypatch.setattr(module, name, lambda root: made)
    return pictures, labels


def test_clothes_are_the_original_pixels_at_the_centre_and_elsewhere(monkeypatch) -> None:
    pictures, labels = small_mnist(monkeypatch)
    data = open_data(DataConfig("fashion"))
    assert data.config.about.test_sizes == CIFAR_SIZES
    made = data.training()
    assert made.images.shape == (100, 1, 72, 72)  # 5/6 of 120
    assert torch.allclose(made.images[:, 0, 22:50, 22:50], pictures[:100] / 255, atol=1e-6)
    assert made.labels.tolist() == labels[:100].tolist()
    held = data.testing(1.0, "validation")
    assert torch.allclose(held.images[:, 0, 22:50, 22:50], pictures[100:120] / 255, atol=1e-6)
    moved = open_data(DataConfig("fashion", places="anywhere")).testing(1.0, "test")
    for image, place, picture in zip(moved.images, moved.places, pictures[120:], strict=True):  # type: ignore[arg-type]
        row, column = (place - 13.5).long().tolist()
        assert torch.allclose(image[0, row : row + 28, column : column + 28], picture / 255, atol=1e-6)
        assert image.sum() == pytest.approx(float(picture.sum() / 255), rel=1e-4)
    assert len(moved.places.unique(dim=0)) > 100  # type: ignore[union-attr]


def test_clothes_are_trained_on_at_sizes_that_are_drawn_again(monkeypatch) -> None:
    small_mnist(monkeypatch, shuffled=True)
    data = open_data(DataConfig("fashion", (0.5, 2.0), samples=20, redraw=True))
    first = data.training()
    monkeypatch.setattr("scalechannels.data.sources.load_fashion", lambda root: pytest.fail("read twice"))
    again = data.training(draw=1)
    assert torch.bincount(first.labels).tolist() == [2] * 10
    assert torch.equal(first.labels, again.labels)
    assert not torch.equal(first.scales, again.scales)
    with pytest.raises(ValueError, match=r"sizes from 0\.5 to 2; got data\.sizes 4"):
        DataConfig("fashion", (4.0,))


def test_mnist_scale_has_a_draw_for_each_seed_and_splits_that_share_no_digit(monkeypatch) -> None:
    pictures, _ = small_mnist(monkeypatch)
    data = open_data(DataConfig("mnist-scale", (0.3, 1.0)))
    splits = [data.testing(1.0, "validation"), data.testing(1.0, "test")]
    whole = open_data(DataConfig("mnist-scale")).training()
    sets = [whole, *splits]
    assert [len(made) for made in sets] == [38, 7, 193]  # of 240 digits, in the shares of the protocol
    images = torch.cat([made.images[:, 0] for made in sets])
    assert len(images.flatten(1).unique(dim=0)) == len(images)  # no digit twice
    originals = {bytes(picture.numpy().tobytes()) for picture in pictures}
    assert all((image * 255).round().byte().numpy().tobytes() in originals for image in images)
    sizes = data.testing((0.3, 1.0), "test").scales
    assert 0.3 <= sizes.min() < 0.35
    assert 0.95 < sizes.max() <= 1
    assert sizes.mean() == pytest.approx(0.65, abs=0.05)  # uniform: log-uniform sizes have a mean of 0.58
    other = open_data(DataConfig("mnist-scale", seed=1)).training()
    assert not torch.equal(other.images, whole.images)
    redrawn = open_data(DataConfig("mnist-scale", (0.3, 1.0), redraw=True))
    assert torch.equal(redrawn.training().labels, redrawn.training(draw=1).labels)
    assert not torch.equal(redrawn.training().scales, redrawn.training(draw=1).scales)
    assert RunConfig(redrawn.config).resolve().shape.data.redraw  # runs of it can be trained together
    network = RunConfig(data.config).resolve().network
    assert (network.low, network.high) == (0.25, 1.0)


def test_photos_anywhere_are_continued_by_mirroring(monkeypatch) -> None:
    from scalechannels.data import rescaled_cifar10 as rescaled

    draw = torch.Generator().manual_seed(0)
    pictures = torch.randint(0, 256, (12, 3, 32, 32), generator=draw, dtype=torch.uint8)
    labels = torch.arange(12) % 10
    made = rescaled.TrainAndTest(pictures, labels, pictures, labels)
    monkeypatch.setattr(rescaled, "load_cifar10", lambda root: made)
    moved = open_data(DataConfig("cifar10", places="anywhere")).testing(1.0, "test")
    assert moved.images.shape == (12, 3, 64, 64)
    for image, place, picture in zip(moved.images, moved.places, pictures / 255, strict=True):  # type: ignore[arg-type]
        row, column = (place - 15.5).long().tolist()
        inside = image[:, row : row + 32, column : column + 32]
        assert torch.allclose(inside, picture, atol=1e-6)
        if row:
            assert torch.allclose(image[:, row - 1, column : column + 32], picture[:, 1], atol=1e-6)
    centred = open_data(DataConfig("cifar10", side=64)).testing(2.0, "test")
    assert centred.places is None
    assert torch.equal(
        centred.images[:, :, 16:48, 16:48], open_data(DataConfig("cifar10")).testing(2.0, "test").images
    )


def test_one_of_several_objects_is_looked_for(one_thread: None) -> None:
    config = RunConfig(DataConfig("strokes", places="anywhere", find=3, samples=40)).resolve().data
    assert (config.side, config.objects) == (128, 3)
    data = open_data(config)
    made = data.training()
    assert data.classes == ("no 3", "3")
    assert made.images.shape == (40, 1, 128, 128)
    assert made.labels.tolist() == [0, 1] * 20
    assert made.places is not None
    assert made.places.isnan().any(1).tolist() == [True, False] * 20
    assert not torch.equal(made.images, data.training(draw=1).images)


def test_digits_of_any_side_stay_at_the_centre_where_they_are_to() -> None:
    data = open_data(DataConfig("strokes", (0.5, 2.0), side=64, samples=30, distinct=10))
    made = data.training()
    assert made.images.shape == (30, 1, 64, 64)
    assert (made.places == 31.5).all()
    assert torch.bincount(made.labels).tolist() == [3] * 10
    assert data.config.about.test_sizes == CIFAR_SIZES


def test_digits_anywhere_have_all_their_options_in_the_run() -> None:
    config = RunConfig(DataConfig("strokes", places="anywhere", redraw=True)).resolve()
    assert config.data.side == 64
    assert RunConfig.from_dict(config.as_dict()).resolve() == config
    with pytest.raises(ValueError, match="crops about the centre"):
        RunConfig(DataConfig("strokes", places="anywhere"), training=TrainingConfig(visible=0.5)).resolve()


@pytest.mark.parametrize(
    ("data", "network"),
    [
        ({"name": "fashion"}, {}),
        ({"name": "fashion", "places": "anywhere"}, {"look": "everywhere", "low": 1.0, "high": 2.0}),
        ({"name": "fashion", "sizes": (0.5, 2.0), "redraw": True}, {"name": "cnn"}),
        ({"name": "mnist-scale", "sizes": (0.3, 1.0)}, {}),
        ({"name": "mnist-scale", "sizes": (0.3, 1.0)}, {"name": "cnn"}),
        ({"name": "mnist", "places": "anywhere", "find": 3}, {"look": "everywhere", "low": 1.0, "high": 2.0}),
        ({"name": "mnist", "side": 40}, {"name": "cnn"}),
    ],
)
def test_networks_are_trained_and_tested_on_it(
    data, network, monkeypatch, tmp_path, one_thread: None
) -> None:
    small_mnist(monkeypatch, 24)
    config = RunConfig(
        DataConfig(**data), NetworkConfig(**{"ratio": 2.0, **network}), TrainingConfig(epochs=1, batch=4)
    )
    (run,) = fit([config], tmp_path, device="cpu", split="validation")
    result = run.result()
    sizes = result["evaluation"]["sizes"]
    assert [entry["size"] for entry in sizes] == list(config.data.about.test_sizes)
    assert all(0 <= entry["accuracy"] <= 100 for entry in sizes)
    if "find" in data:
        assert result["classes"] == ["no 3", "3"]
        assert all(entry["place_error"] >= 0 for entry in sizes)  # not NaN


def test_photos_anywhere_are_trained_on_by_foveated_networks_alone(monkeypatch, tmp_path) -> None:
    from scalechannels.data import rescaled_cifar10 as rescaled

    pictures = torch.randint(
        256, (20, 3, 32, 32), generator=torch.Generator().manual_seed(0), dtype=torch.uint8
    )
    labels = torch.arange(20) % 10
    made = rescaled.TrainAndTest(pictures, labels, pictures, labels)
    monkeypatch.setattr(rescaled, "load_cifar10", lambda root: made)
    data = DataConfig("cifar10", places="anywhere")
    training = TrainingConfig(epochs=1, batch=10)
    config = recommended(RunConfig(data, NetworkConfig(ratio=4.0), training))
    (run,) = fit([config], tmp_path, device="cpu", sizes=(1.0,))
    assert run.done
    with pytest.raises(ValueError, match="the plain CNN of CIFAR-10 takes its 32x32 images"):
        RunConfig(data, NetworkConfig("cnn"), training).resolve()
    RunConfig(data, NetworkConfig("cnn", backbone="residual"), training).resolve()


@pytest.mark.usefixtures("few_textures")
def test_emoji_are_trained_on_some_designs_and_tested_on_others(
    emoji_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emoji, "open_drawings", lambda root, classes: open_drawings(root, 4))
    data = open_data(DataConfig("emoji", hold_out=True, redraw=True), root=emoji_root)
    assert len(data.classes) == 4
    first, again = data.training(), data.training(draw=1)
    assert (len(first), first.images.shape[-1]) == (3 * 4 * 2, data.config.about.image)
    assert not first.images.equal(again.images)  # other backgrounds, and nothing else
    middle = slice(256 - 8, 256 + 8)
    assert first.images[0, :, middle, middle].equal(again.images[0, :, middle, middle])
    assert len(data.testing(0.25, "validation")) == len(data.testing(8.0, "test")) == 8
