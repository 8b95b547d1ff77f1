"""Labelled images are tested as the network takes them, at every size, and few of them are held."""

import weakref
from pathlib import Path

import pytest
import torch
from helpers.own_folder import write
from torch import Tensor

from scalechannels import ScaleGrid, fovlse
from scalechannels.data import folder
from scalechannels.data.frames import rescaled
from scalechannels.data.pictures import BACKGROUND, as_digits, read_image
from scalechannels.report import labelled, trial
from scalechannels.saving.saved_network import SavedNetwork


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    """Two classes of images that the shipped network for digits knows."""
    root = write(tmp_path / "images", [(40, 30), (28, 28)] * 3)
    for name, digit in (("class0", "3"), ("class1", "7")):
        (root / name).rename(root / digit)
    return root


def test_a_network_for_digits_gets_digits_at_every_size(
    digits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rescaled with black at −0.76, all that is dark would become the grey in the middle."""
    saved, seen = SavedNetwork.open("fovlse-mnist"), []
    explain = saved.network.explain
    monkeypatch.setattr(saved.network, "explain", lambda images: seen.append(images) or explain(images))
    labelled.labelled(saved, digits, torch.device("cpu"), (0.5, 1.0, 2.0))
    images = [read_image(path, grey=True) for path in sorted(digits.glob("*/*.png"))]
    expected = [as_digits(rescaled(image, size)) for size in (0.5, 1.0, 2.0) for image in images]
    got = [image for batch in seen for image in batch]
    assert len(got) == len(expected)
    for image in got:
        assert any(image.shape == one.shape and torch.allclose(image, one, atol=1e-6) for one in expected)
        assert float(image.min()) == pytest.approx(BACKGROUND, abs=1e-3)


def test_few_images_are_in_memory(digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alive: weakref.WeakSet[Tensor] = weakref.WeakSet()
    most, get = [], folder.ImageFolder.__getitem__

    def noted(self: folder.ImageFolder, index: int) -> tuple[Tensor, int]:
        image, label = get(self, index)
        alive.add(image)
        most.append(len(alive))
        return image, label

    monkeypatch.setattr(folder.ImageFolder, "__getitem__", noted)
    monkeypatch.setattr(trial, "AT_ONCE", 2000)
    monkeypatch.setattr(trial, "HELD", 4000)
    saved = SavedNetwork.open("fovlse-mnist")
    entries = labelled.labelled(saved, digits, torch.device("cpu"), (1.0, 2.0))["sizes"]
    assert [entry["images"] for entry in entries] == [12, 12]
    assert len(most) == 24
    assert max(most) <= 5


def test_classes_without_names_are_those_of_the_network(digits: Path, tmp_path: Path) -> None:
    """They were taken to be as many as the folder has: answers of others were counted as those of these."""
    fovlse(ScaleGrid.of(1.0)).save_pretrained(tmp_path / "net")
    saved = SavedNetwork.open(tmp_path / "net")
    assert saved.names is None
    (entry,) = labelled.labelled(saved, digits, torch.device("cpu"))["sizes"]
    assert len(entry["per_class"]) == len(entry["confusion"]) == 10
    assert [sum(row) for row in entry["confusion"]] == [0, 0, 0, 6, 0, 0, 0, 6, 0, 0]
