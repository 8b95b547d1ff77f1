"""`scalechannels data`: what it writes, what it says, and how it ends."""

import os
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from helpers.command_line import run as run_command
from PIL import Image

from scalechannels.commands.data import BUILT_IN
from scalechannels.data import emoji, mnist_large_scale, mnist_scale, rescaled_cifar10, show, sources
from scalechannels.data.emoji_drawings import open_drawings
from scalechannels.data.sources import TrainAndTest


def run(*words: object) -> int:
    return run_command("data", *words)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCALECHANNELS_DATA", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def small_data(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(60) % 10
    digits = torch.randint(0, 256, (60, 28, 28), generator=generator, dtype=torch.uint8)
    photos = torch.randint(0, 256, (60, 3, 32, 32), generator=generator, dtype=torch.uint8)
    mnist, cifar10 = (
        TrainAndTest(digits, labels, digits, labels),
        TrainAndTest(photos, labels, photos, labels),
    )
    for module in (show, mnist_large_scale, mnist_scale):
        monkeypatch.setattr(module, "load_mnist", lambda root: mnist)
    monkeypatch.setattr(show, "load_fashion", lambda root: mnist)
    for module in (show, rescaled_cifar10):
        monkeypatch.setattr(module, "load_cifar10", lambda root: cifar10)


@pytest.mark.parametrize("what", [name for name in BUILT_IN if name != "emoji"])
def test_show_writes_a_picture_and_says_where(
    what: str, here: Path, small_data: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("show", what) == 0
    assert capsys.readouterr().out.strip() == f"{what}.png"
    with Image.open(here / f"{what}.png") as image:
        assert image.format == "PNG"
        assert min(image.size) > 200


@pytest.mark.usefixtures("few_textures")
def test_emoji_are_generated_and_shown(
    here: Path, emoji_root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("generate", "emoji", "--classes", 4, "--out", emoji_root) == 0  # it is there already
    assert capsys.readouterr().out.strip() == str(emoji_root / "emoji" / "drawings-4.npz")
    assert run("generate", "emoji", "--samples", 5) == 1
    assert "--samples does not apply to emoji; remove it" in capsys.readouterr().err
    assert run("generate", "mnist-large-scale", "--classes", 4) == 1
    assert "--classes is for emoji" in capsys.readouterr().err
    monkeypatch.setattr(emoji, "open_drawings", lambda root, classes: open_drawings(root, 4))
    assert run("show", "emoji", "--root", emoji_root) == 0
    with Image.open(here / "emoji.png") as image:
        assert min(image.size) > 300


def test_show_draws_strokes_by_default_with_out_and_seed(here: Path) -> None:
    for number, seed in enumerate((0, 0, 7)):
        assert run("show", "--out", f"new/{number}.png", "--seed", seed) == 0
    first, second, third = (np.asarray(Image.open(f"new/{number}.png")) for number in range(3))
    assert (first == second).all()
    assert (first != third).any()


def test_show_a_folder_and_name_its_corrupt_files(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("cat", "dog"):
        (here / "photos" / name).mkdir(parents=True)
        Image.new("RGB", (40, 30), "teal").save(here / "photos" / name / "1.png")
    assert run("show", "photos") == 0
    assert (here / "photos.png").is_file()
    (here / "photos" / "dog" / "bad.jpg").write_text("no image")
    capsys.readouterr()
    assert run("show", "photos") == 1
    assert "bad.jpg" in capsys.readouterr().err
    assert run("show", "photos", "--skip-corrupt") == 0
    assert "warning: 1 file in" in capsys.readouterr().err


def test_show_a_folder_of_large_files_if_they_are_allowed(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("cat", "dog"):
        (here / "photos" / name).mkdir(parents=True)
        Image.new("RGB", (40, 30), "teal").save(here / "photos" / name / "1.png")
    assert run("show", "photos", "--max-pixels", 1_000) == 1
    assert "40 x 30 pixels, more than the limit of 1,000; raise --max-pixels" in capsys.readouterr().err
    assert run("show", "photos", "--max-pixels", 1_200) == 0


def test_fetch_says_that_the_cache_is_searched_and_nothing_is_copied_from_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("fetch", "--help") == 0
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "Data that are already in --root or in the cache are not downloaded again." in said
    assert "searched first, then the user's cache" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", "storkes"), "error: WHAT must be a folder or one of strokes, scenes,"),
        (("show", "strokes", "--out", "x.jpg"), "error: --out must end in .png; got 'x.jpg'"),
        (("show", "strokes", "--seed", "-1"), "error: seed must be at least 0 and below 2^30; got -1"),
        (("show", "empty"), "error: 'empty' needs a subfolder of images for each of two or more classes"),
        (("generate", "mnist-large-scale", "--samples", "0"), "error: --samples must be at least 1; got '0'"),
    ],
)
def test_expected_problems_end_with_one_line_and_code_1(
    words: tuple[str, ...], message: str, here: Path, small_data: None, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "empty").mkdir()
    assert run(*words) == 1
    said = capsys.readouterr()
    assert said.err.startswith(message)
    assert said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.skipif(os.name == "nt", reason="permissions differ")
def test_a_folder_that_cannot_be_written_is_one_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "file").write_text("in the way")
    assert run("show", "strokes", "--out", "file/x.png") == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_unknown_names_are_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fetch", "mnits") != 0
    assert "mnist" in capsys.readouterr().err
    assert run("generate", "strokes") != 0
    assert run("generate", "cifar10") != 0  # an earlier version wrote it


def test_fetch_says_where_the_data_is(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def fetched(source: sources.Source, root: Path | None) -> sources.Fetched:
        asked.append((source, root))
        return sources.Fetched(Path("somewhere"), "found", {})

    monkeypatch.setattr(sources, "fetch", fetched)
    assert run("fetch", "cifar10", "--root", "mine") == 0
    assert asked == [(sources.CIFAR10, Path("mine"))]
    assert capsys.readouterr().out == "cifar10: somewhere (found)\n"
    assert run("fetch", "fashion") == 0
    assert asked[1] == (sources.FASHION, None)


def test_generate_mnist_large_scale_writes_the_published_names_and_keeps_complete_files(
    here: Path, small_data: None, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("generate", "mnist-large-scale", "--tests-only", "--samples", "10", "--out", "sets")
    assert run(*words) == 0
    said = capsys.readouterr()
    assert said.out == "sets\n"
    names = sorted(path.name for path in (here / "sets").glob("*.h5"))
    assert len(names) == 17
    assert names[0] == "mnist_large_scale_te10_outsize112-112_scte0p500.h5"
    assert sorted(said.err.split()) == names
    before = {path: path.stat().st_mtime_ns for path in (here / "sets").glob("*.h5")}
    (here / "sets" / names[3]).write_bytes(b"damaged")
    assert run(*words) == 0
    changed = [path.name for path, time in before.items() if path.stat().st_mtime_ns != time]
    assert changed == [names[3]]
    with h5py.File(here / "sets" / names[3]) as file:
        assert file["x_test"].shape == (10, 112, 112, 1)


def test_generate_with_training_sets_in_the_cache_by_default(here: Path, small_data: None) -> None:
    assert run("generate", "mnist-large-scale", "--samples", "2") == 0
    names = {path.name for path in (here / "cache" / "mnist-large-scale").glob("*.h5")}
    assert len(names) == 23
    assert "mnist_large_scale_tr2_vl2_te2_outsize112-112_sctr1p000-4p000_scte1p000-4p000.h5" in names


@pytest.mark.parametrize("command", ["fetch", "show", "generate"])
def test_every_command_has_an_example_in_its_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command, "--help") == 0
    assert f"scalechannels data {command} " in " ".join(capsys.readouterr().out.split())
