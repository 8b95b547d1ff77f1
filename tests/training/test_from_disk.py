"""Own images that do not fit into memory: read from disk, and the run is the same to the bit."""

import os
from pathlib import Path

import pytest
import torch
from helpers.own_folder import write
from helpers.tiny_runs import assert_same, weights
from PIL import Image

from scalechannels.data import folder as folder_module
from scalechannels.data.folder import image_folder
from scalechannels.training import inputs
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig
from scalechannels.training.datasets import open_data
from scalechannels.training.fit import fit
from scalechannels.training.group import Group
from scalechannels.training.runs import Run
from scalechannels.training.streaming import from_disk
from scalechannels.training.streaming.from_disk import Store

FOVEATED = NetworkConfig("fovlse", low=0.5, high=2.0, ratio=2.0, window=12)
EVERYWHERE = NetworkConfig("fovlse", low=1.0, high=2.0, ratio=2.0, window=12, look="everywhere")
SIZES = {"sizes": (0.5, 2.0), "redraw": True}
WAYS = {
    "windows": (FOVEATED, {}, {"visible": 0.5, "jitter": 1, "detail": 0.5}),
    "changed images": (FOVEATED, {}, {"flips": True, "crops": 3, "visible": 0.5, "average": 0.9}),
    "redrawn sizes": (NetworkConfig("cnn", low=0.5, high=2.0, ratio=2.0, window=12), SIZES, {"crops": 3}),
    "resized": (NetworkConfig("cnn"), {"resize": 12, **SIZES}, {"crops": 2, "class_weights": "balanced"}),
    "frames": (FOVEATED, {"images": "frames", "object_size": 20.0, **SIZES}, {"crops": 2}),
    "everywhere": (EVERYWHERE, {}, {"crops": 2}),
}


class Killed(BaseException):
    """Stands for Ctrl-C, which would end the tests too."""


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return write(tmp_path / "images", [(30, 26), (28, 28), (33, 40)] * 3, "RGB")


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """For images, but not for windows or for what is kept of files."""
    monkeypatch.setattr("scalechannels.training.own_images.fits_in_memory", lambda needed: False)


def run(images: Path, way: str) -> RunConfig:
    network, data, training = WAYS[way]
    given = DataConfig("folder", folder=str(images), **data)
    return RunConfig(given, network, TrainingConfig(epochs=2, batch=4, **training))


def trained(config: RunConfig, folder: Path) -> Run:
    return fit([config], folder, device="cpu", sizes=[1.0])[0]


@pytest.mark.parametrize("way", WAYS)
def test_a_run_from_disk_is_that_from_memory(
    images: Path, tmp_path: Path, way: str, request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]
) -> None:
    whole = trained(run(images, way), tmp_path / "memory")
    assert "disk" not in capfd.readouterr().err
    request.getfixturevalue("little_memory")
    read = trained(run(images, way), tmp_path / "disk")
    said = capfd.readouterr().err
    assert f"{read.config.name}: images are read from disk: in memory they would take 0.0 GiB, and " in said
    assert "10 files are decoded once and kept" in said
    assert read.config == whole.config  # it is how a run is done, not what it is
    if way == "windows":  # made of other numbers of images at a time
        for name, value in weights(whole).items():
            torch.testing.assert_close(weights(read)[name], value, atol=1e-5, rtol=1e-4)
    else:
        assert_same(weights(whole), weights(read))


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("kept", [True, False])
def test_what_is_kept_of_files_is_what_they_show(
    images: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """Bytes, or numbers where images are reduced; 16 bits that are no bytes are read again and again."""
    monkeypatch.setattr(from_disk, "CACHE", 2**20 if kept else 0)
    deep = torch.linspace(0, 65535, 30 * 30).view(30, 30).to(torch.uint16)
    Image.fromarray(deep.numpy()).save(images / "class0" / "deep.png")
    for reduce in (1, 2):
        config = RunConfig(DataConfig("folder", folder=str(images), reduce=reduce)).resolve()
        made = open_data(config.data).training()
        files = made.dataset()
        assert (files.store is not None) == kept
        first, again = ([files[index][0] for index in range(len(made))] for _ in range(2))
        monkeypatch.setattr("scalechannels.training.own_images.fits_in_memory", lambda needed: True)
        expected = open_data(config.data).training().images
        monkeypatch.setattr("scalechannels.training.own_images.fits_in_memory", lambda needed: False)
        assert torch.equal(torch.stack(first), expected)
        assert torch.equal(torch.stack(again), expected)


def test_what_could_not_be_given_back_exactly_is_not_kept() -> None:
    store = Store([12, 4 * 12])
    odd = torch.full((3, 2, 2), 0.3)
    store.put(0, odd)
    store.put(1, odd)
    assert store.get(0) is None
    assert torch.equal(store.get(1), odd)


@pytest.mark.usefixtures("little_memory")
def test_a_killed_run_from_disk_resumes(images: Path, tmp_path: Path, monkeypatch) -> None:
    config = run(images, "redrawn sizes")
    whole, save = trained(config, tmp_path / "whole"), Group._save

    def killed(self: Group, epoch: int) -> None:
        save(self, epoch)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Group, "_save", killed)
        with pytest.raises(Killed):
            trained(config, tmp_path / "parts")
    assert_same(weights(whole), weights(trained(config, tmp_path / "parts")))


def test_it_is_decided_by_what_images_take_and_what_is_free(images: Path, monkeypatch) -> None:
    data = open_data(run(images, "changed images").resolve().data)
    made = data.training()
    assert data.needed == made.images.nbytes
    for free, fits in ((2 * made.images.nbytes, True), (2 * made.images.nbytes - 1, False)):
        monkeypatch.setattr(inputs, "free_memory", lambda device, free=free: free)
        assert open_data(data.config).training().in_memory is fits
    redrawn = open_data(run(images, "redrawn sizes").resolve().data)
    shown = sum(redrawn.read(redrawn.learnt, index).nbytes for index in range(len(redrawn.learnt)))
    monkeypatch.setattr(inputs, "free_memory", lambda device: 2**40)
    assert redrawn.needed == 2 * redrawn.training().images.nbytes + shown


def test_a_file_of_many_names_is_decoded_and_read_once(images: Path, monkeypatch) -> None:
    before = image_folder(images)
    for index in range(5):
        os.link(images / "class1" / "0.png", images / "class1" / f"link{index}.png")
        (images / "class0" / f"link{index}.png").symlink_to(images / "class0" / "1.png")
    checked, check = [], folder_module.check_image
    monkeypatch.setattr(folder_module, "check_image", lambda *given: checked.append(given) or check(*given))
    found = image_folder(images)
    assert (len(found), len(checked), len(found.different)) == (28, 18, 18)
    assert set(found.contents) == set(before.contents)
    assert [found.contents[found.paths.index(path)] for path in before.paths] == list(before.contents)
    for number, path in zip(found.numbers, found.paths, strict=True):
        assert path.samefile(found.different[number])
        assert sorted(found.sides[number]) == sorted(found.sizes[found.paths.index(path)])
