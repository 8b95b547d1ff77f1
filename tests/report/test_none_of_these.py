"""Images of none of the classes: counted by hand, told by train and evaluate, and not measured as objects."""

import re
from pathlib import Path

import pytest
import torch
from helpers.command_line import run
from helpers.on_ground import square
from helpers.pictures import save
from PIL import Image

from scalechannels.data.folder import image_folder
from scalechannels.data.survey import NONE, survey
from scalechannels.report.none_of_these import Rejected, rejected


def test_false_alarms_and_missed_objects_by_hand() -> None:
    confusion = [[7, 1, 2], [3, 5, 0], [0, 4, 6]]  # rows are the truth
    assert rejected(confusion, ("cat", NONE, "dog")) == Rejected(alarms=3, nothing=8, missed=5, objects=20)
    found = rejected(confusion, ("cat", NONE, "dog"))
    assert found is not None
    assert (found.false_alarms, found.missed_objects) == ("37.5 % (3 of 8)", "25.0 % (5 of 20)")
    assert rejected(confusion, ("cat", "dog", "ship")) is None
    assert rejected([[1, 1], [0, 0]], ("cat", NONE)) is None  # a folder of new images may have none of them


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Bright and dark squares in frames, and more images without any."""
    monkeypatch.chdir(tmp_path)
    noise = torch.Generator().manual_seed(0)
    for index in range(10):
        for name, shown in (("bright", square(14, 40, 13, 13)), ("dark", 1 - square(14, 40, 13, 13))):
            pixels = (0.9 * shown[0] + 0.1 * torch.rand(40, 40, generator=noise)).mul(255).byte().numpy()
            save(tmp_path / "images" / name / f"{index}.png", Image.fromarray(pixels))
    for index in range(30):
        pixels = (torch.rand(40, 40, generator=noise) * 255).byte().numpy()
        save(tmp_path / "images" / NONE / f"{index}.png", Image.fromarray(pixels))
    return tmp_path / "images"


def test_they_have_no_object_that_could_be_measured(folder: Path) -> None:
    """Most of these images have none, so that the median would be that of whole images."""
    seen = survey(image_folder(folder))
    assert (seen.images, seen.object_size) == ("frames", pytest.approx(14, abs=2))
    assert "none-of-these: 30 images of no class; the report says how often they get one" in seen.lines()


def test_the_rates_are_told_and_are_on_the_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ("--range", 1, 1, "--network.window", 12, "--network.name", "fovlse", "--training.epochs", 1)
    assert run("train", "--data", folder, *few) == 0
    said = capsys.readouterr().out
    told = re.search(
        r"note: False alarms: ([\d.]+ % \(\d+ of 6\)) of the test images in 'none-of-these'", said
    )
    assert told is not None
    (made,) = Path("runs").glob("images-*")
    page = (made / "report.html").read_text(encoding="utf-8")
    assert "<h2>None of these</h2>" in page
    assert f"{told[1]}; " in page
    assert run("evaluate", made, "--sizes", 1) == 0
    assert f"at size 1: false alarms {told[1]}, missed " in capsys.readouterr().out
