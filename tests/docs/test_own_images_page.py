"""docs/own_images.md and docs/is_this_for_me.md: what they say is so, and the tutorial's commands run."""

import csv
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from scalechannels.cli import main
from scalechannels.commands.train import train
from scalechannels.data.folder import image_folder
from scalechannels.data.survey import survey
from scalechannels.report.own_images import described
from scalechannels.training.config import DataConfig, RunConfig
from scalechannels.training.config.own_images import in_parts

DOCS = Path(__file__).parents[2] / "docs"
TUTORIAL = (DOCS / "own_images.md").read_text(encoding="utf-8")
GUIDE = (DOCS / "is_this_for_me.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TUTORIAL, flags=re.DOTALL)


def run_in_shell(line: str) -> None:
    """Run a line in which runs/NAME stands for the one run."""
    words = shlex.split(line, comments=True)
    if "runs/NAME" in words:
        (folder,) = Path("runs").glob("stamps-*/")
        words[words.index("runs/NAME")] = str(folder)
    assert words[0] == "scalechannels"
    main(words[1:])


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(float)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tutorial's folders of images."""
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("python")
    exec(code, {})
    return tmp_path


def test_the_folders_are_what_the_page_says_and_lead_to_what_it_shows(made: Path) -> None:
    assert len(list((made / "stamps").rglob("*.png"))) == 200
    look, *_ = "".join(blocks("sh")).splitlines()
    run_in_shell(look)
    assert np.abs(pixels(made / "stamps.png") - pixels(DOCS / "images" / "own-images-sheet.png")).mean() < 3
    images = image_folder("stamps")
    for line in survey(images).lines():
        assert line in TUTORIAL
    config = RunConfig(DataConfig("folder", folder="stamps")).resolve()
    parts = in_parts(images, config.data)
    assert [len(part) for part in parts] == [120, 40, 40]
    assert "120 images to train on, 40 to choose by, 40 for the report" in TUTORIAL
    assert described(config) in TUTORIAL


@pytest.mark.slow
@pytest.mark.timeout(3600)  # some minutes on two free cores
def test_two_hundred_pngs_train_report_and_predict_with_three_commands(made: Path) -> None:
    look, train, predict = "".join(blocks("sh")).splitlines()
    for line in (look, train, predict):
        run_in_shell(line)
    (folder,) = (made / "runs").glob("stamps-*/")
    result = json.loads((folder / "report.json").read_text())
    winner = result["verdict"]["winner"]
    assert f"Use the {winner}: " in TUTORIAL  # the last digits depend on the machine
    assert result["images"] == {"train": 120, "validation": 40, "test": 40}
    assert (folder / "report.html").stat().st_size > 10_000
    rows = list(csv.DictReader((made / "classes.csv").read_text().splitlines()))
    for name in ("far", "near"):
        mine = [row for row in rows if row["path"].startswith(name)]
        assert len(mine) == 50
        right = sum(row["class"] == Path(row["path"]).parent.name for row in mine)
        (said,) = re.findall(rf"(\d+) of the 50 {name}\s+ones", TUTORIAL)
        assert abs(right - int(said)) <= 8  # as the page says, the last digits depend on the machine
    shown = pixels(DOCS / "images" / "own-images.png")
    assert pixels(folder / "accuracy.png").shape == shown.shape


def test_the_options_that_the_pages_name_exist() -> None:
    known = {name for argument in train.assemble_argument_collection() for name in argument.names}
    named = set(re.findall(r"--[a-z][a-z.-]+[a-z]", TUTORIAL + GUIDE))
    assert len(named) > 12
    assert named <= known


@pytest.mark.parametrize("text", [TUTORIAL, GUIDE])
def test_links_and_pictures_exist(text: str) -> None:
    places = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
    assert places
    for place in places:
        assert (DOCS / place).is_file(), place
