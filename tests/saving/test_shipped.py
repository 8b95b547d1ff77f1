"""Networks that come with the package are found by name, everywhere a folder is taken."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from PIL import Image

import scalechannels
from scalechannels import PlainNetwork, ScaleChannelNetwork, ScaleGrid, cnn, fovlse
from scalechannels.cli import main
from scalechannels.saving import saved_network

ROOT = Path(__file__).parents[2]


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand-ins for what is shipped, and a working folder beside them."""
    folder = tmp_path / "weights"
    fovlse(ScaleGrid.of(1, 2)).save_pretrained(folder / "digits")
    cnn().save_pretrained(folder / "plain")
    (folder / "README.md").write_text("no network")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(saved_network, "SHIPPED", folder)
    return folder


def same(first: torch.nn.Module, second: torch.nn.Module) -> bool:
    values, others = first.state_dict(), second.state_dict()
    return list(values) == list(others) and all(torch.equal(values[name], others[name]) for name in values)


def test_a_name_finds_the_shipped_network(weights: Path):
    assert saved_network.shipped_names() == ["digits", "plain"]
    expected = scalechannels.load(weights / "digits")
    for found in (scalechannels.load("digits"), ScaleChannelNetwork.from_pretrained("digits")):
        assert same(found, expected)
        assert not found.training
    assert isinstance(scalechannels.load("plain"), PlainNetwork)


def test_an_own_folder_of_the_same_name_comes_first(weights: Path):
    own = fovlse(ScaleGrid.of(3))
    own.save_pretrained("digits")
    assert scalechannels.load("digits").grid == ScaleGrid.of(3)
    assert ScaleChannelNetwork.from_pretrained("digits").grid == ScaleGrid.of(3)


UNKNOWN = "is neither a folder nor a shipped network; the shipped networks are digits, plain"


@pytest.mark.parametrize("name", ["digts", "../weights/digitz", "./digits", "nowhere/at/all", "/nowhere"])
def test_an_unknown_name_gets_the_list(name: str, weights: Path):
    for load in (scalechannels.load, ScaleChannelNetwork.from_pretrained):
        with pytest.raises(FileNotFoundError, match=f"'{name}' {UNKNOWN}$"):
            load(name)


def test_without_shipped_networks_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(saved_network, "SHIPPED", tmp_path / "weights")
    with pytest.raises(
        FileNotFoundError,
        match=r"'nothing' is neither .* shipped network; the shipped networks are missing",
    ):
        scalechannels.load("nothing")


def test_the_commands_take_the_name(weights: Path, capsys: pytest.CaptureFixture[str]):
    Image.new("L", (112, 112)).save("black.png")
    main(["predict", "plain", "black.png"])
    assert "black.png," in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", "plane", "--data.name", "strokes"])
    assert ended.value.code == 1
    assert capsys.readouterr().err == f"error: 'plane' {UNKNOWN}\n"


def test_evaluate_takes_the_name(
    weights: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    from scalechannels.training import datasets

    monkeypatch.setattr(datasets, "STROKES_TEST", 20)
    main(["evaluate", "digits", "--data.name", "strokes", "--sizes", "1"])
    assert "20 images of each size" in capsys.readouterr().out


@pytest.mark.parametrize("name", saved_network.shipped_names())
def test_what_is_shipped_loads_and_is_small_and_described(name: str):
    network = scalechannels.load(name)
    assert not network.training
    folder = saved_network.SHIPPED / name
    assert (folder / "model.safetensors").stat().st_size < 2_000_000
    assert len((folder / "README.md").read_text(encoding="utf-8")) > 200
    assert {path.name for path in folder.iterdir()} >= {"model.safetensors", "config.json", "README.md"}


@pytest.mark.slow
def test_the_weights_are_in_the_wheel(tmp_path: Path):
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("pyproject.toml", "PACKAGE.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, tree)
    shutil.copytree(
        ROOT / "scalechannels", tree / "scalechannels", ignore=shutil.ignore_patterns("__pycache__")
    )
    fovlse(ScaleGrid.of(1)).save_pretrained(tree / "scalechannels" / "weights" / "stand-in")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path)]
    subprocess.run([*command, str(tree)], check=True, timeout=200)
    (wheel,) = tmp_path.glob("*.whl")
    inside = zipfile.ZipFile(wheel).namelist()
    for file in ("model.safetensors", "config.json", "README.md"):
        assert f"scalechannels/weights/stand-in/{file}" in inside
    assert "scalechannels/py.typed" in inside
    assert "scalechannels/saving/model_card.md" in inside
