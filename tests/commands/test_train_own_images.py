"""`scalechannels train --data FOLDER`, its report, `predict` on its result; what is wrong with a folder."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.command_line import run
from PIL import Image

from scalechannels import ScaleGrid
from scalechannels.report.own_images import verdict
from scalechannels.training.config import RunConfig
from scalechannels.training.config.sections import DATA_SETS

FEW = ("--training.epochs", 1, "--network.low", 0.5, "--network.high", 2, "--network.ratio", 2)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # tensors this small gain nothing from threads
    yield tmp_path
    torch.set_num_threads(before)


def save(path: Path, image: Image.Image, **options: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, **options)
    return path


def photos(root: Path, count: int = 6, size: tuple[int, int] = (28, 28), mode: str = "RGB") -> Path:
    """Two classes of noise, red and blue."""
    noise = np.random.default_rng(0)
    for label, tint in enumerate(([1, 0.2, 0.2], [0.2, 0.2, 1])):
        for index in range(count):
            pixels = (noise.random((size[1], size[0], 3)) * 255 * np.array(tint)).astype(np.uint8)
            save(root / ("red", "blue")[label] / f"{index}.png", Image.fromarray(pixels).convert(mode))
    return root


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def only(pattern: str) -> Path:
    (found,) = [path for path in Path("runs").glob(pattern) if path.is_dir()]
    return found


def test_train_report_and_predict_on_colour_images(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photos(here / "photos")
    assert run("train", "--data", "photos", *FEW, "--sizes", 0.5, 1, 2) == 0
    said = capsys.readouterr()
    assert "rgb images, objects of 28 pixels" in said.out
    assert re.search(r"scale channels: training, 1 epoch …\nplain CNN: training, 1 epoch …\n", said.out)
    folder = only("fovlse-folder-*")
    assert only("cnn-folder-*") != folder
    assert f"The report: {folder / 'report.html'}" in said.out
    result = json.loads((folder / "report.json").read_text())
    assert result["classes"] == ["blue", "red"]
    assert result["images"] == {"learnt": 8, "kept": 4, "tested": 4}
    assert list(result["runs"]) == ["scale channels", "plain CNN"]
    assert result["verdict"] in said.out
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert result["verdict"] in page
    for outside in ("http://", "https://", "<script", 'src="/', "@import"):
        assert outside not in page.replace("http://www.w3.org", "")
    assert (folder / "accuracy.png").read_bytes()[:4] == b"\x89PNG"

    before = (folder / "result.json").stat().st_mtime_ns
    (folder / "report.html").unlink()
    assert run("train", "--data", "photos", *FEW, "--sizes", 0.5, 1, 2) == 0
    assert "scale channels: already trained and tested" in capsys.readouterr().out
    assert (folder / "result.json").stat().st_mtime_ns == before
    assert (folder / "report.html").read_text(encoding="utf-8") == page

    assert run("predict", folder, "photos/red", "--out", "found.csv") == 0
    rows = table(here / "found.csv")
    assert len(rows) == 6
    assert {row["class"] for row in rows} <= {"red", "blue"}
    capsys.readouterr()
    assert run("evaluate", folder, "--sizes", 1) == 0
    assert "4 held-out images of each size" in capsys.readouterr().out


def test_runs_that_were_tested_at_other_sizes_are_tested_anew(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DATA_SETS, "folder", replace(DATA_SETS["folder"], test_sizes=(0.5, 1.0)))
    photos(here / "photos")
    words = ("train", "--data", "photos", *FEW)
    assert run(*words, "--no-compare", "--sizes", 1) == 0
    folder = only("*")
    learnt = (folder / "model.safetensors").read_bytes()
    capsys.readouterr()
    assert run(*words) == 0  # at all sizes, with the plain CNN
    said = capsys.readouterr().out
    assert "scale channels: already trained; testing at other sizes …\nplain CNN: training, 1 epoch …" in said
    assert (folder / "model.safetensors").read_bytes() == learnt
    for sizes, more in ([0.5, 1.0], ()), ([2.0], ("--sizes", 2)), ([0.5, 1.0], ()):
        assert run(*words, *more) == 0
        runs = json.loads((folder / "report.json").read_text())["runs"]
        assert list(runs) == ["scale channels", "plain CNN"]
        for one in runs.values():
            assert [entry["size"] for entry in one["evaluation"]["sizes"]] == sizes
        assert run(*words, "--no-compare", "--sizes", 1, 2, 0.5) == 0  # more than the plain CNN then has


def test_the_plain_network_alone_has_a_report_without_channels(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos(here / "photos")
    words = ("train", "--data", "photos", *FEW, "--network.name", "cnn")
    assert run(*words, "--sizes", 1, 1) == 1
    assert "--sizes must name each size only once; got '1 1'" in capsys.readouterr().err
    assert run(*words, "--sizes", 0.5, 1) == 0
    said = capsys.readouterr().out
    assert "no channels, one window of 112 pixels" in said
    assert re.search(r"The plain CNN reaches \d+ % accuracy at the simulated size ", said)
    page = (only("cnn-*") / "report.html").read_text(encoding="utf-8")
    assert "none: one window of 112 pixels" in page
    for absent in ("Which channel decides", "--network.low", "strongest channel"):
        assert absent not in page


def test_the_wider_range_of_the_report_can_be_trained_with(here: Path) -> None:
    photos(here / "photos", size=(40, 30))
    few = ("--training.epochs", 1, "--network.ratio", 1.5, "--sizes", 1, "--no-compare")
    assert run("train", "--data", "photos", *few) == 0
    page = (only("*") / "report.html").read_text(encoding="utf-8")
    assert "Which channel decides" in page
    options = re.search(r"FOLDER --network.low (\S+) --network.high (\S+) --network.ratio ([\d.]+)", page)
    low, high, ratio = map(float, options.groups())
    old = RunConfig.from_toml(only("*") / "config.toml").network
    assert ratio == old.ratio == 1.5
    steps = len(ScaleGrid(old.low, old.high, ratio=1.5))
    assert len(ScaleGrid(low, high, ratio=ratio)) == steps + 4  # two more at each end are about an octave


def test_short_forms_stand_for_their_fields_and_a_file_can_say_the_rest(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos(here / "photos", size=(40, 30))
    (here / "photos" / "red" / "text.png").write_text("this is text")
    words = ("train", "--data", "photos", "--pixel-size", 0.5, "--deploy-pixel-sizes", 0.25, 2)
    (here / "run.toml").write_text("[training]\nepochs = 1\n[data]\nvalidation = 0.5\n")
    assert run(*words, "--config", "run.toml") == 1
    assert "'run.toml': data.validation is only for your own images" in capsys.readouterr().err
    (here / "run.toml").write_text("[training]\nepochs = 1\n[network]\nratio = 2\n")
    more = ("--data.validation", 0.5, "--skip-corrupt", "--no-compare", "--sizes", 1, "--config", "run.toml")
    assert run(*words, *more) == 0
    said = capsys.readouterr()
    assert "warning: 1 file in" in said.err
    assert "text.png" in said.err
    config = RunConfig.from_toml(only("*") / "config.toml")
    assert (config.data.pixel_size, config.data.deploy_pixel_sizes) == (0.5, (0.25, 2.0))
    assert (config.data.validation, config.data.skip_corrupt) == (0.5, True)
    assert (config.data.name, config.data.folder) == ("folder", str(here / "photos"))
    scale = 40 / 28
    assert config.network.low == pytest.approx(0.25 / 4 * scale)  # two channels of ratio 2 below 1/4
    assert config.network.high == pytest.approx(2 * 4 * scale)
    assert "plain CNN" not in said.out.split("windows of")[1].split("The report")[0].replace("(", "")


def test_one_known_pixel_size_has_a_simpler_way(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photos(here / "photos")
    words = ("--pixel-size", 1, "--deploy-pixel-sizes", 2, "--training.epochs", 1, "--network.ratio", 2)
    assert run("train", "--data", "photos", *words, "--sizes", 1, "--no-compare") == 0
    assert "you do not need scale channels: resample each image" in capsys.readouterr().err


def test_images_that_were_reduced_are_reduced_when_predicted(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos(here / "photos", count=4, size=(60, 60), mode="L")
    words = ("--data.reduce", 2, "--network.window", 12, "--training.epochs", 1, "--network.ratio", 2)
    assert run("train", "--data", "photos", *words, "--sizes", 1, "--no-compare") == 0
    folder = only("*")
    assert run("predict", folder, "photos/red/0.png", "--out", "one.csv") == 0
    (row,) = table(here / "one.csv")
    low = RunConfig.from_toml(folder / "config.toml").network.low
    names = [name for name in row if name.startswith("channel_")]
    strongest = max(names, key=lambda name: float(row[name]))
    assert float(row["scale"]) == pytest.approx(float(strongest.removeprefix("channel_")), rel=0.01)
    assert float(names[0].removeprefix("channel_")) == pytest.approx(
        2 * low, abs=1e-3
    )  # in the file's pixels

    import scalechannels
    from scalechannels.data.frames import reduced
    from scalechannels.data.pictures import read_image

    image = reduced(read_image(here / "photos/red/0.png", grey=True), 2)
    with torch.inference_mode():
        wanted = scalechannels.load(folder)(image[None]).softmax(1).max()
    assert float(row["probability"]) == pytest.approx(float(wanted), abs=1e-4)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda root: None, "is not a folder"),
        (lambda root: root.mkdir(), "two or more classes; it has none"),
        (lambda root: photos(root / "only"), "two or more classes; it has only 'only'"),
        (lambda root: [(root / name).mkdir(parents=True) for name in "ab"], "no readable images"),
        (
            lambda root: (photos(root) / "red" / "a.png").write_text("text"),
            r"a\.png: it is damaged, or not an image",
        ),
        (
            lambda root: (photos(root) / "red" / "a.png").write_bytes(b""),
            r"a\.png: it is damaged, or not an image",
        ),
        (
            lambda root: save(photos(root) / "red" / "bomb.png", Image.new("1", (20_000, 12_000))),
            r"bomb\.png: it has more than 48,000,000 pixels \(a decompression bomb\?\); raise --max-pixels",
        ),
        (
            lambda root: photos(root, size=(1, 1)),
            "objects of 1 pixels in images of 1 leave 1 pixels of an object",
        ),
        (lambda root: photos(root, count=1), "has 1 image"),
    ],
)
def test_a_folder_that_cannot_be_learnt_from_is_one_error(
    make, says: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(here / "images")
    assert run("train", "--data", "images") == 1
    said = capsys.readouterr()
    assert said.err.startswith("error: ")
    assert re.search(says, said.err)
    assert not (here / "runs").exists()


@pytest.mark.parametrize(
    "retired", ["folder", "pixel-size", "deploy-pixel-sizes", "skip-corrupt", "no-skip-corrupt", "max-pixels"]
)
def test_an_option_has_one_name(retired: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("train", "--data", "photos", f"--data.{retired}", 1) == 1
    assert capsys.readouterr().err.startswith(f"error: there is no option '--data.{retired}'; did")


def test_every_kind_of_image_is_learnt_from_and_predicted(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """16 bits, CMYK, palette, alpha, one pixel, float: as docs/own_images.md says, together in one folder."""
    root = photos(here / "photos")
    save(root / "red" / "deep.png", Image.fromarray(np.full((30, 20), 40_000, np.uint16)))
    save(root / "red" / "cmyk.jpg", Image.new("CMYK", (25, 25), (0, 255, 255, 0)))
    save(root / "red" / "palette.png", Image.new("RGB", (28, 31), (250, 3, 3)).quantize(4))
    save(root / "blue" / "alpha.png", Image.new("RGBA", (28, 28), (0, 0, 255, 128)))
    save(root / "blue" / "dot.png", Image.new("RGB", (1, 1), (0, 0, 255)))
    save(root / "blue" / "float.tif", Image.new("F", (28, 28), 0.5))
    save(root / "blue" / "bits.png", Image.new("1", (28, 28), 1))
    assert run("train", "--data", "photos", *FEW, "--sizes", 0.25, 1, "--no-compare") == 0
    assert run("predict", only("*"), "photos", "--out", "all.json") == 0
    found = json.loads((here / "all.json").read_text())
    assert len(found) == 19
    assert all(0 < one["probability"] <= 1 for one in found)


def result_of(channels: list[float], plain: list[float], images: int = 50) -> dict:
    runs = {}
    for name, values in (("scale channels", channels), ("plain CNN", plain)):
        sizes = [{"size": s, "accuracy": a} for s, a in zip((0.25, 1.0, 4.0), values, strict=True)]
        runs[name] = {"evaluation": {"sizes": sizes}}
    return {"runs": runs, "factors": [0.25, 4.0], "images": {"kept": images}}


def test_the_verdict_is_what_the_images_can_tell() -> None:
    helps = verdict(result_of([90, 50, 90], [20, 100, 30]))
    assert helps.text.startswith(
        "Scale channels help on these images: they reach 90 %, and a plain CNN of equal cost 25 %"
    )  # size 1 not counted
    assert "At the images' own size the plain CNN is better, 100 % against 50 %." in helps.text
    assert "own size" not in verdict(result_of([90, 80, 90], [20, 90, 30])).text  # 50 images cannot tell
    assert verdict(result_of([20, 99, 20], [90, 99, 90])).text.startswith("Scale channels do not help")
    unclear = verdict(result_of([60, 99, 60], [50, 99, 50]))
    assert "50 images cannot tell them apart" in unclear.text
    assert verdict(result_of([60, 99, 60], [50, 99, 50], images=5_000)).text.startswith("Scale channels help")
    # By hand: 2 sqrt((0.6 0.4 + 0.5 0.5) / 50) of the difference in per cent.
    assert unclear.margin == pytest.approx(200 * (0.49 / 50) ** 0.5)
    narrow = {**result_of([90, 50, 10], [20, 100, 30]), "factors": [0.25, 1.0]}
    assert verdict(narrow).channels == 90  # a size that is not expected does not count
