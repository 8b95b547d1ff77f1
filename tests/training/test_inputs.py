"""What lies in memory, and what a step does to it."""

import dataclasses

import pytest
import torch
from helpers.tiny_runs import tiny, trained, weights

import scalechannels
from scalechannels.training import datasets, inputs
from scalechannels.training.config import DataConfig, NetworkConfig, ResolvedRun, RunConfig, TrainingConfig
from scalechannels.training.inputs import changes_images
from scalechannels.training.trainer import Trainer


def run(data: str, **training) -> ResolvedRun:
    return RunConfig(DataConfig(data), NetworkConfig("fovlse"), TrainingConfig(**training)).resolve()  # type: ignore


@pytest.mark.parametrize("option", [{"flips": True}, {"crops": 1}, {"visible": 0.5}, {"rotation": 9.0}])
def test_images_of_cifar_are_changed_before_windows_are_made(option) -> None:
    assert changes_images(run("cifar10", **option))


@pytest.mark.parametrize("option", [{"flips": True}, {"crops": 1}, {"visible": 0.5}, {"detail": 0.5}])
@pytest.mark.parametrize("name", ["cnn", "swmax"])
def test_networks_without_windows_have_their_images_changed(name, option) -> None:
    assert changes_images(tiny(name, **option).resolve())
    assert not changes_images(tiny(name).resolve())


def test_others_keep_windows_in_memory() -> None:
    assert not changes_images(run("cifar10"))
    assert not changes_images(run("mnist", visible=0.5))
    for data in ("strokes", "mnist", "cifar10"):
        assert not changes_images(run(data, detail=0.5))


def test_sizes_are_drawn_again_in_every_epoch(tmp_path, monkeypatch) -> None:
    config = tiny("cnn", samples=40)
    config = dataclasses.replace(config, data=dataclasses.replace(config.data, sizes=(1.0, 2.0), redraw=True))
    seen, train = [], Trainer.epoch

    def epoch(self, order, rate, *report):
        seen.append(self.inputs.clone())
        return train(self, order, rate, *report)

    monkeypatch.setattr(Trainer, "epoch", epoch)
    trained(config, tmp_path)
    assert len(seen) == 2
    assert not torch.equal(*seen)
    fresh = datasets.open_data(config.data).training(draw=1)
    torch.testing.assert_close(seen[1].flatten(), fresh.images.flatten())
    again = datasets.open_data(config.data).training(draw=0)
    torch.testing.assert_close(seen[0].flatten(), again.images.flatten())
    assert torch.equal(fresh.labels, again.labels)
    with pytest.raises(ValueError, match=r"data\.redraw needs two or more data\.sizes; got 1"):
        dataclasses.replace(config.data, sizes=(1.0,))


@pytest.mark.parametrize(("name", "frames"), [("cnn", 0), ("fovlse", 0)])
def test_what_is_visible_follows_the_size_that_is_drawn_again(name, frames, tmp_path, monkeypatch) -> None:
    config = tiny(name, samples=40, visible=0.5)
    config = dataclasses.replace(config, data=dataclasses.replace(config.data, sizes=(1.0, 2.0), redraw=True))
    seen, train = [], Trainer.epoch

    def epoch(self, order, rate, *report):
        seen.append(self.augmentations[frames].frames.clone())
        return train(self, order, rate, *report)

    monkeypatch.setattr(Trainer, "epoch", epoch)
    trained(config, tmp_path)
    for draw, found in enumerate(seen):
        scales = datasets.open_data(config.data).training(draw=draw).scales
        torch.testing.assert_close(found[0], (28 * scales).float())
    assert not torch.equal(*seen)


@pytest.mark.parametrize("together", [True, False])
def test_windows_that_are_drawn_again_take_the_place_of_the_first(together, tmp_path, monkeypatch) -> None:
    """Even where less memory is free by then than all of them need: it is theirs that is taken."""
    config = tiny("fovlse", samples=40)
    config = dataclasses.replace(config, data=dataclasses.replace(config.data, sizes=(1.0, 2.0), redraw=True))
    seen, train = [], Trainer.epoch

    def epoch(self, order, rate, *report):
        seen.append(self.inputs.clone())
        monkeypatch.setattr(inputs, "free_memory", lambda device: 0)
        return train(self, order, rate, *report)

    monkeypatch.setattr(Trainer, "epoch", epoch)
    run = trained(config, tmp_path, together=together)
    fresh = datasets.open_data(config.data).training(draw=1)
    windows = scalechannels.load(run.folder).foveate(fresh.images)  # (N, S, 1, n, n)
    assert len(seen) == 2
    torch.testing.assert_close(seen[1].flatten(), windows.flatten())


@pytest.mark.parametrize(
    "options",
    [{}, {"visible": 0.5, "jitter": 1}, {"detail": 0.5}, {"flips": True, "crops": 2, "visible": 0.5}],
)
def test_windows_that_do_not_fit_are_made_in_every_step(options, tmp_path, monkeypatch) -> None:
    """From images in memory or from streamed ones, with every augmentation: the same network."""
    config = tiny("fovlse", samples=40, epochs=1, **options)
    resident = weights(trained(config, tmp_path / "resident"))
    streamed = weights(trained(config, tmp_path / "streamed", stream=True))
    monkeypatch.setattr(inputs, "free_memory", lambda device: 0)
    small = weights(trained(config, tmp_path / "small"))
    for name, value in resident.items():
        torch.testing.assert_close(small[name], value, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(streamed[name], value, atol=1e-5, rtol=1e-4)
