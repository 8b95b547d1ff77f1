"""docs/own_images.md and docs/is_this_for_me.md: what they say is so, and the tutorial's commands run."""

import csv
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from scalechannels import ScaleGrid
from scalechannels.cli import main
from scalechannels.commands.train import train
from scalechannels.training.config import DataConfig, RunConfig

DOCS = Path(__file__).parents[2] / "docs"
TUTORIAL = (DOCS / "own_images.md").read_text(encoding="utf-8")
GUIDE = (DOCS / "is_this_for_me.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TUTORIAL, flags=re.DOTALL)


def run_in_shell(line: str) -> None:
    """Run a line in which runs/NAME stands for the run with scale channels."""
    words = shlex.split(line, comments=True)
    if "runs/NAME" in words:
        (folder,) = Path("runs").glob("fovlse-folder-*")
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
    config = RunConfig(DataConfig("folder", folder="stamps")).resolve()
    assert "rgb images, objects of 36 pixels" in TUTORIAL
    assert (config.data.colour, config.data.object_size) == ("rgb", 36)
    grid = ScaleGrid(config.network.low, config.network.high, ratio=config.network.ratio)
    sigma = f"σ = {grid.minimum:.3g} to {grid.maximum:.3g}"
    assert f"{len(grid)} channels, for 0.177 to 5.66 times that size ({sigma})" in TUTORIAL
    assert f"training, {config.training.epochs} epochs …" in TUTORIAL
    assert config.name in TUTORIAL  # the same images everywhere, and the same run
    (own,) = re.findall(r" 1 +([\d.]+) % .*own size", TUTORIAL)
    assert re.search(rf"at the training size\s\({float(own):.0f} %\)", TUTORIAL)


@pytest.mark.slow
@pytest.mark.timeout(3600)  # two minutes on two free cores
def test_two_hundred_pngs_train_report_and_predict_with_three_commands(made: Path) -> None:
    look, train, predict = "".join(blocks("sh")).splitlines()
    for line in (look, train, predict):
        run_in_shell(line)
    (folder,) = (made / "runs").glob("fovlse-*")
    result = json.loads((folder / "report.json").read_text())
    assert result["verdict"].startswith("Scale channels help on these images")
    assert result["images"] == {"learnt": 150, "kept": 50, "tested": 50}
    assert (folder / "report.html").stat().st_size > 10_000
    rows = list(csv.DictReader((made / "classes.csv").read_text().splitlines()))
    for name in ("far", "near"):
        mine = [row for row in rows if row["path"].startswith(name)]
        assert len(mine) == 50
        right = sum(row["class"] == Path(row["path"]).parent.name for row in mine)
        (said,) = re.findall(rf"(\d+) of the 50 {name} ones", TUTORIAL)
        assert abs(right - int(said)) <= 8  # as the page says, the last digits depend on the machine
    scales = [
        np.median([float(row["scale"]) for row in rows if row["path"].startswith(name)])
        for name in ("far", "near")
    ]
    assert scales[1] / scales[0] == pytest.approx(5, rel=0.3)  # 3.75 against 0.75
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
