"""docs/detection.md does what it says: its commands and code run, and make the pictures it shows."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from scalechannels.cli import main

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "detection.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(float)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """The page from top to bottom in an empty folder."""
    folder = tmp_path_factory.mktemp("page")
    names: dict = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in "".join(blocks("sh")).splitlines():
            words = shlex.split(line)
            assert words[0] == "scalechannels"
            main(words[1:])
        for code in blocks("python"):
            exec(code, names)
    return folder, names


def test_the_commands_find_what_the_page_says(ran: tuple[Path, dict]) -> None:
    folder, names = ran
    truth = json.loads((folder / "scene.json").read_text())["objects"]
    found = json.loads((folder / "scene-detections.json").read_text())["objects"]
    assert len(truth) == len(found) == 12
    assert sorted(one["class"] for one in truth) == sorted(one["class"] for one in found)
    assert len(names["found"]) == 12
    assert set(found[0]) == {"class", "probability", "object_probability", "box", "scale", "at_edge"}
    looked = json.loads((folder / "interest.json").read_text())["objects"]
    assert 6 <= len(looked) <= 13
    assert names["own"].backbone.classes == 11


@pytest.mark.parametrize(
    ("made", "shown"), [("scene-detections.png", "detection.png"), ("maps.png", "detection-maps.png")]
)
def test_the_pictures_are_those_that_the_page_makes(ran: tuple[Path, dict], made: str, shown: str) -> None:
    assert f"images/{shown}" in TEXT
    one, other = pixels(ran[0] / made), pixels(DOCS / "images" / shown)
    assert one.shape == other.shape
    # Fonts and the last digits of floating point differ between machines; what is seen does not.
    assert np.abs(one - other).mean() < 4
