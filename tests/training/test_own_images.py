"""Own images as data: what is trained on and tested, and runs that come back from their files."""

import dataclasses
import shutil
from pathlib import Path

import pytest
import torch
from helpers.own_folder import chosen, write
from PIL import Image

import scalechannels
from scalechannels.data.folder import image_folder
from scalechannels.data.frames import framed, rescaled, simulated
from scalechannels.plain import resized
from scalechannels.saving.saved_network import SavedNetwork
from scalechannels.training import own_images
from scalechannels.training.config import DataConfig, NetworkConfig, ResolvedRun, RunConfig, TrainingConfig
from scalechannels.training.datasets import open_data
from scalechannels.training.fit import fit
from scalechannels.training.trainer import Trainer


def test_large_images_are_reduced_alike_and_seen_in_larger_windows(tmp_path: Path) -> None:
    config = chosen(write(tmp_path, [(300, 250), (240, 500), (100, 300)] * 2, "RGB"))
    assert (config.data.colour, config.data.object_size, config.data.reduce) == ("rgb", 300, 2)
    assert config.network.window == 56
    data = open_data(config.data)
    learnt = data.training()
    assert learnt.images.shape == (8, 3, 250, 250)  # the longest side of all, halved; nothing is resized
    assert [len(data.testing(1.0, split)) for split in ("validation", "test")] == [2, 2]
    assert data.testing(4.0, "test").images.shape[2:] == (600, 600)  # four times the object


def test_reduced_images_are_read_once_for_all_candidates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = chosen(write(tmp_path / "images", [(60, 60)] * 4), reduce=2).data
    first = open_data(config)
    shown, kept = first.training().images, first.image("test", 0)
    monkeypatch.setattr(own_images, "reduced", lambda *_: pytest.fail("it is made again"))
    assert torch.equal(open_data(dataclasses.replace(config, resize=28)).image("test", 0), kept)
    assert torch.equal(open_data(config).training().images, shown)
    monkeypatch.undo()
    path = first.learnt.paths[0]
    Image.new("L", (60, 60), 9).save(path)
    assert own_images.once_reduced(first.learnt, 0, 2).unique().tolist() == pytest.approx([9 / 255])


def test_training_and_testing_are_disjoint_and_keep_the_scale(tmp_path: Path) -> None:
    write(tmp_path, [(20, 20), (31, 30), (60, 44), (28, 28)] * 3)
    config = chosen(tmp_path, validation=0.25, test=0.25)
    data = open_data(config.data)
    learnt, checked, kept = data.training(), *(data.testing(1.0, split) for split in ("validation", "test"))
    assert (len(learnt), len(checked), len(kept)) == (12, 6, 6)
    assert learnt.images.shape[-1] == 60
    for index, (image, _) in enumerate(data.learnt):
        assert torch.equal(learnt.images[index], framed(image, 60))
    assert len({path for part in (data.learnt, data.checked, data.kept) for path in part.paths}) == 24
    half = data.testing(0.5, "test")
    for index, (image, label) in enumerate(data.kept):
        assert torch.equal(half.images[index], simulated(image, 0.5, half.images.shape[-1]))
        assert (int(half.labels[index]), float(half.scales[index])) == (label, 0.5)
    with pytest.raises(ValueError, match="single sizes"):
        data.testing((0.5, 2.0), "test")


def test_training_at_other_sizes_rescales_as_testing_does(tmp_path: Path) -> None:
    write(tmp_path, [(20, 20), (31, 30)] * 4)
    given = DataConfig("folder", (0.5, 2.0), folder=str(tmp_path), redraw=True)
    config = RunConfig(given).resolve()
    data = open_data(config.data)
    first, again = data.training(), data.training(draw=1)
    side = first.images.shape[-1]
    assert side == 62  # twice the longest side
    assert again.images.shape == first.images.shape
    assert not torch.equal(first.scales, again.scales)
    for index, (image, _) in enumerate(data.learnt):
        assert torch.equal(first.images[index], simulated(image, float(first.scales[index]), side))
    largest = RunConfig(dataclasses.replace(given, redraw=False, sizes=(1.0, 3.0, 100.0))).resolve()
    assert open_data(largest.data).training().images.shape[-1] == 4 * 25.5  # at most four objects


def test_very_many_test_images_are_thinned_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, [(8, 8)] * 110)
    config = chosen(tmp_path, validation=0.01, test=0.95)
    monkeypatch.setattr(own_images, "MEMORY", 2**20)
    kept = open_data(config.data).testing(4.0, "test")
    assert 0 < len(kept) < 209
    assert kept.labels.bincount().tolist() == [len(kept) // 2 + len(kept) % 2, len(kept) // 2]


def test_a_run_resumes_and_comes_back_from_its_file(tmp_path: Path) -> None:
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


def test_both_networks_train_in_the_form_of_a_gpu_and_resume_from_a_checkpoint(tmp_path: Path) -> None:
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
    with pytest.raises(ValueError, match=r"text\.png: it is damaged, or not an image"):
        chosen(tmp_path)
    with pytest.warns(UserWarning, match=r"text\.png"):
        config = chosen(tmp_path, skip_corrupt=True)
    with pytest.warns(UserWarning, match=r"text\.png"):
        assert len(open_data(config.data).training()) == 4


@pytest.mark.parametrize("name", ["fovlse", "cnn"])
def test_images_are_cropped_in_the_measure_of_their_object(tmp_path: Path, name: str, monkeypatch) -> None:
    write(tmp_path / "images", [(120, 120)] * 4)
    config = dataclasses.replace(
        chosen(tmp_path / "images", NetworkConfig(name), reduce=2),
        training=TrainingConfig(epochs=1, batch=4, visible=0.5),
    )
    assert config.network.window == 56
    frames, learn = [], Trainer.learn

    def spy(self: Trainer, *batch: torch.Tensor) -> None:
        frames.append(self.augmentations[0].frames)
        learn(self, *batch)

    monkeypatch.setattr(Trainer, "learn", spy)
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


def test_a_1x1_image_among_others_is_one_colour(tmp_path: Path) -> None:
    write(tmp_path, [(28, 28)] * 3 + [(1, 1)])
    data = open_data(chosen(tmp_path).data)
    images = torch.cat([data.training().images, data.testing(1.0, "test").images])
    assert sum(float(image.amax() - image.amin()) == 0 for image in images) == 2


def test_what_is_learnt_at_one_size_is_recognised_at_another(tmp_path: Path) -> None:
    """The way of values, labels and scales from files to logits is whole: bars that lie, bars that stand."""
    generator = torch.Generator().manual_seed(0)
    for index in range(60):
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


def test_a_network_that_is_loaded_and_saved_again_is_used_as_before(tmp_path: Path) -> None:
    """Its classes, values and reduction belong to it, whichever way it was saved."""
    root = write(tmp_path / "images", [(300, 250)] * 8)  # grey, and reduced
    network, training = NetworkConfig("fovavg", ratio=2), TrainingConfig(epochs=1, batch=4)
    (run,) = fit([RunConfig(DataConfig("folder", folder=str(root)), network, training)], tmp_path / "runs")
    first = SavedNetwork.open(run.folder)
    assert (first.values, first.reduce, first.grey) == ("unit", 2, True)
    assert first.classes is not None
    tried = scalechannels.load(run.folder)
    tried.usage |= {"temperature": 0.7, "object_size": 90.0, "own_scale": 1.5}  # as a trial measures them
    tried.save_pretrained(run.folder)
    first = SavedNetwork.open(run.folder)
    assert (first.temperature, first.object_size, first.own_scale) == (0.7, 90.0, 1.5)
    scalechannels.load(run.folder).save_pretrained(tmp_path / "again")
    scalechannels.load(tmp_path / "again").save_pretrained(tmp_path / "once more")
    for name in ("again", "once more"):
        saved = SavedNetwork.open(tmp_path / name)
        measured = ("temperature", "object_size", "own_scale")
        for what in ("classes", "background", "values", "reduce", "scales", *measured):
            assert getattr(saved, what) == getattr(first, what), what


def test_a_run_of_an_earlier_version_keeps_its_two_parts(tmp_path: Path) -> None:
    root = write(tmp_path, [(28, 28)] * 8)
    today = chosen(root)
    earlier = dataclasses.replace(today.data, test=None, images=None, validation=0.25)
    assert RunConfig(earlier, today.network, today.training).resolve().data == earlier  # nothing is filled in
    data = open_data(earlier)
    learnt, kept = image_folder(root).split(0.75)
    assert data.learnt.paths == learnt.paths
    assert data.part("validation").paths == data.part("test").paths == kept.paths


def test_frames_stay_and_resized_crops_lose_their_size(tmp_path: Path) -> None:
    write(tmp_path, [(40, 30), (28, 36)] * 3)
    framed_at_2 = chosen(tmp_path, images="frames", object_size=12.0, sizes=(2.0,))
    data = open_data(framed_at_2.data)
    made, (image, _) = data.training(), data.learnt[0]
    assert made.images.shape[-1] == 40  # not twice that
    inner = simulated(image, 2.0, tuple(image.shape[1:]))
    assert torch.equal(made.images[0], framed(inner, 40))
    assert data.testing(0.5, "test").images.shape[-1] == 40

    config = chosen(tmp_path, NetworkConfig("cnn"), resize=20, sizes=(0.5, 2.0), redraw=True)
    data = open_data(config.data)
    made, (image, _) = data.training(), data.learnt[0]
    assert made.images.shape[1:] == (1, 20, 20)
    assert torch.equal(made.images[0], resized(rescaled(image, float(made.scales[0])), 20))
    large, larger = (data.testing(size, "test").images for size in (2.0, 4.0))
    assert (large - larger).abs().mean() < 0.01  # the size is gone
    assert (large - data.testing(0.25, "test").images).abs().mean() > 0.05  # and so is the detail
