"""What a detector learns from: digits of one size, and windows whose targets say what they overlap."""

import json
from pathlib import Path

import pytest
import torch

import scalechannels
from scalechannels.data.strokes import BACKGROUND, BOX
from scalechannels.detection import training_windows as detector_windows
from scalechannels.detection.training import (
    CLASSES,
    digits_of_one_size,
    save,
    train,
    whole_images,
)
from scalechannels.detection.training_windows import SIDE, Canvases, Digits, canvases, overlaps, windows
from scalechannels.sampling import Foveate
from scalechannels.scales import ScaleGrid


@pytest.fixture(scope="module")
def digits() -> Digits:
    return digits_of_one_size("strokes", count=50)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_canvases_hold_digits_of_size_one_where_they_say(
    digits: Digits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        detector_windows, "backgrounds", lambda count, _: torch.full((count, SIDE, SIDE), BACKGROUND)
    )
    monkeypatch.setattr(detector_windows, "softened", lambda images, _: images)
    made = canvases(digits, 6, seeded())
    assert made.images.shape == (6, 1, SIDE, SIDE)
    rest = made.images.clone()
    counts = 0
    for canvas in range(6):
        for middle, label in zip(made.middles[canvas], made.labels[canvas], strict=True):
            if label < 0:
                continue
            top, left = (middle - (BOX - 1) / 2).long().tolist()
            patch = rest[canvas, 0, top : top + BOX, left : left + BOX]
            ink = (patch - BACKGROUND) / (-2 * BACKGROUND)
            shown = digits.cover[digits.labels == label]
            factor = ink.max() / shown.amax((1, 2), keepdim=True)  # contrast varies, size does not
            assert (shown * factor - ink).abs().amax((1, 2)).min() < 0.02
            patch.fill_(BACKGROUND)
            counts += 1
    assert counts > 20
    assert (rest - BACKGROUND).abs().max() < 1e-6


def test_windows_are_those_of_foveation_and_say_what_they_overlap(digits: Digits) -> None:
    made = canvases(digits, 4, seeded(1))
    centres, octaves = detector_windows.look(made, 9, seeded(2))
    seen, targets = windows(made, 9, CLASSES, seeded(2))
    assert seen.shape == (36, 1, BOX, BOX)
    for canvas, window in ((0, 0), (1, 4), (3, 8)):
        grid = ScaleGrid.of(2 ** float(octaves[canvas, window]))
        expected = Foveate(grid)(made.images[canvas : canvas + 1], centres[canvas, window][None])[0, 0]
        assert torch.allclose(seen[canvas * 9 + window], expected, atol=1e-3)
    assert torch.allclose(targets.sum(1), torch.ones(36))
    _, targets = windows(canvases(digits, 20, seeded(3)), 50, CLASSES, seeded(4))
    assert 0.2 < targets[:, -1].mean() < 0.9


def test_targets_by_hand() -> None:
    labels = torch.full((1, 25), -1)
    labels[0, 0] = 7
    made = Canvases(torch.zeros(1, 1, SIDE, SIDE), torch.full((1, 25, 2), 50.0), labels)
    at = torch.tensor([[[50.0, 50.0], [50.0, 64.0], [50.0, 50.0], [50.0, 150.0]]])
    sigma = torch.tensor([[1.0, 1.0, 2.0, 1.0]])
    shared = overlaps(at, sigma, made)
    assert shared[0, :, 0].tolist() == pytest.approx([1, 1 / 3, 1 / 4, 0])
    assert shared[0, :, 1:].max() == 0


def test_the_pyramids_windows_have_one_scale(digits: Digits, monkeypatch: pytest.MonkeyPatch) -> None:
    made = canvases(digits, 2, seeded())
    scales = []
    original = detector_windows.overlaps
    monkeypatch.setattr(
        detector_windows, "overlaps", lambda c, sigma, m: (scales.append(sigma), original(c, sigma, m))[1]
    )
    windows(made, 20, CLASSES, seeded(), one_scale=True)
    assert bool((scales[0] == 1).all())
    windows(made, 20, CLASSES, seeded())
    assert scales[1].min() < 0.7 < 1.4 < scales[1].max()


def test_whole_images_hold_one_digit_or_none(digits: Digits) -> None:
    images, targets = whole_images(digits, seeded())
    assert images.shape[1:] == (1, 56, 56)
    assert targets.shape == (len(images), CLASSES + 1)
    assert bool((targets.sum(1) == 1).all())
    held = targets[:, CLASSES] == 0
    assert 0 < int(held.sum()) < len(images)
    for image in images[held]:
        assert image[0, 10:46, 10:46].amax() > 0.2


@pytest.mark.parametrize("kind", ["detector", "pyramid", "swmax"])
def test_every_kind_trains_and_is_saved(kind: str, digits: Digits, tmp_path: Path) -> None:
    network = train(kind, digits, steps=2, features=(2, 2, 2, 2), hidden=4)
    save(network, tmp_path / "net")
    about = json.loads((tmp_path / "net" / "detector.json").read_text())
    assert about["background"] == CLASSES
    assert about["classes"] == [str(digit) for digit in range(10)]
    again = scalechannels.load(tmp_path / "net")
    assert len(again.grid) == 15
    image = torch.randn(1, 1, 40, 40)
    with torch.no_grad():
        assert torch.equal(again(image), network(image))
    assert again(image).shape == (1, CLASSES + 1)


def test_wrong_kinds_are_named(digits: Digits) -> None:
    with pytest.raises(ValueError, match=r"kind must be one of .*; got 'cnn'"):
        train("cnn", digits)
    with pytest.raises(ValueError, match=r"data must be one of .*; got 'digits'"):
        digits_of_one_size("digits")
