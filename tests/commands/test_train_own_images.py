"""`scalechannels train --data FOLDER`, its report, `predict` on its result; what is wrong with a folder."""

import csv
import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.command_line import run
from PIL import Image

from scalechannels import Predictor
from scalechannels.data.strokes import strokes
from scalechannels.report import candidates, own_images_run
from scalechannels.saving.saved_network import SavedNetwork
from scalechannels.training import build
from scalechannels.training.config import RunConfig

FEW = ("--training.epochs", 1, "--network.low", 0.5, "--network.high", 2, "--network.ratio", 2)
QUICK = ("--range", 0.5, 1, "--network.ratio", 2, "--network.window", 12)


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


def test_candidates_are_trained_compared_reported_and_one_is_kept(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos(here / "photos", count=10)
    words = ("train", "--data", "photos", *QUICK, "--training.epochs", 1, "--sizes", 0.5, 1)
    assert run(*words) == 0
    said = capsys.readouterr().out
    assert "2 classes: blue 10, red 10\n" in said
    assert "20 colour images of 28 pixels; objects do not stand out" in said
    assert "12 images to train on, 4 to choose by, 4 for the report" in said
    names = ["resized CNN", "augmented CNN", "scale channels", "scale channels everywhere"]
    for number, name in enumerate(names, start=1):  # each is told when it begins
        assert f"{number}/4 {name}: 1 epoch …\n{number}/4 {name}: trained in " in said
    folder = only("photos-*")
    result = json.loads((folder / "report.json").read_text())
    assert list(result["candidates"]) == names
    assert result["classes"] == ["blue", "red"]
    assert result["images"] == {"train": 12, "validation": 4, "test": 4}
    assert f"The report: {folder / 'report.html'}" in said
    assert result["verdict"]["text"] in said
    again = result["again"]
    assert again["images"] == 16
    assert f"{result['verdict']['winner']} again, on 16 images: training …\n" in said
    assert "Trained again on 16 images, those to choose by among them, it has " in result["verdict"]["text"]
    (own,) = (entry for entry in again["test"] if entry["group"] == "size" and entry["value"] == 1)
    assert "\n4 images were tested: by chance alone, a number such as the " in said
    assert f"'s at size 1 (own) can be {own['margin']:.0f} points off (95 %)." in said
    page = (folder / "report.html").read_text(encoding="utf-8")
    for part in ("Off the centre", "Other surroundings", "How sure they are", "What they cost", *names):
        assert part in page
    for outside in ("http://", "https://", "<script", 'src="/', "@import"):
        assert outside not in page.replace("http://www.w3.org", "")
    assert (folder / "accuracy.png").read_bytes()[:4] == b"\x89PNG"
    winner, kept = (Path(one["folder"]) for one in (result["candidates"][result["verdict"]["winner"]], again))
    assert winner.parent == kept.parent == folder / "candidates"
    for name in ("model.safetensors", "result.json", "config.toml"):
        assert (kept / name).read_bytes() == (folder / name).read_bytes()
    assert SavedNetwork.open(folder).temperature == SavedNetwork.open(winner).temperature
    learnt, more = (
        set(json.loads((one / "result.json").read_text())["learnt_from"]) for one in (winner, kept)
    )
    assert learnt == more  # to choose by an image is to learn from it
    assert len(more) == 16

    for name in result["candidates"]:  # every candidate is a network that can be used, and is calibrated
        saved = SavedNetwork.open(result["candidates"][name]["folder"])
        assert saved.temperature == result["candidates"][name]["temperature"] != 1
    assert run("predict", folder, "photos/red", "--out", "found.csv") == 0
    assert {row["class"] for row in table(here / "found.csv")} <= {"red", "blue"}
    capsys.readouterr()
    assert run("evaluate", folder, "--sizes", 1) == 0
    assert "4 held-out images of each size" in capsys.readouterr().out
    assert run("evaluate", folder, "--sizes", 1, "--split", "validation") == 1
    assert "has learnt from the validation images" in capsys.readouterr().err

    again = (*words[:3], "--config", folder / "config.toml", "--out", "again", "--sizes", 1)
    assert run("train", *again[1:]) == 0, capsys.readouterr().err  # a kept network's file
    (anew,) = Path("again").glob("photos-*/report.json")
    assert json.loads(anew.read_text())["images"] == result["images"]
    capsys.readouterr()

    before = (folder / "model.safetensors").stat().st_mtime_ns, (winner / "result.json").stat().st_mtime_ns
    (folder / "report.html").unlink()
    assert run(*words) == 0
    said = capsys.readouterr().out
    assert "1/4 resized CNN: already trained\n" in said
    assert "again, on 16 images: already trained\n" in said
    assert "testing" not in said
    assert (winner / "result.json").stat().st_mtime_ns == before[1]
    assert (folder / "report.html").read_text(encoding="utf-8") == page


def test_a_stronger_backbone_is_that_of_all_candidates_that_can_take_it(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "RESIDUAL_FEATURES", 2)
    photos(here / "photos")
    few = (*QUICK, "--training.epochs", 1, "--sizes", 1, "--network.backbone", "residual")
    assert run("train", "--data", "photos", *few) == 0
    said = capsys.readouterr().out
    assert "left out: scale channels everywhere; network.look everywhere needs a backbone without" in said
    result = json.loads((only("photos-*") / "report.json").read_text())
    assert list(result["candidates"]) == ["resized CNN", "augmented CNN", "scale channels"]
    window, channels = 12, 6
    costs = [trial["cost"]["multiplications"] for trial in result["candidates"].values()]
    for trial in result["candidates"].values():
        network = SavedNetwork.open(trial["folder"]).network
        assert type(network.backbone).__name__ == "ResidualBackbone"
        for side in (20, 60):  # any image is taken, as its window is what the backbone sees
            assert network(torch.rand(1, 3, side, side)).shape == (1, 2)
    assert len(network.grid) == channels
    assert costs[2] == channels * costs[0]  # both see windows of 12 pixels
    assert costs[1] > 12 * costs[0]  # four times the side, and the last layers are the same
    by_hand = window**2 * 9 * (3 * 2 + 2 * 4) + 2 * (window // 2) ** 2 * 9 * 4 * 4
    by_hand += (window // 2) ** 2 * 9 * 4 * 8 + (window // 4) ** 2 * 9 * 8 * 16
    by_hand += 2 * (window // 8) ** 2 * 9 * 16 * 16 + 16 * 2
    assert costs[0] == by_hand


def test_unbalanced_classes_are_weighted_and_told_in_both_measures(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos(here / "photos", count=30)
    for index in range(22):
        (here / "photos" / "blue" / f"{index}.png").unlink()
    words = (
        "train",
        "--data",
        "photos",
        *QUICK,
        "--training.epochs",
        1,
        "--sizes",
        1,
        "--network.name",
        "cnn",
    )
    assert run(*words) == 0
    said = capsys.readouterr().out
    assert "note: 30 images of red, but 8 of blue" in said
    assert "balanced accuracy, the mean over the classes (in brackets: of all images)" in said
    (own,) = re.findall(r"size 1 \(own\) +([\d.]+) % \(([\d.]+)\)", said)
    assert re.search(r"The plain CNN has \d+ % balanced accuracy over", said)
    folder = only("photos-*")
    (trial,) = json.loads((folder / "report.json").read_text())["candidates"].values()
    entry = next(one for one in trial["test"] if one["group"] == "size")
    assert own == (f"{entry['balanced']:.1f}", f"{entry['accuracy']:.1f}")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert f"{entry['balanced']:.1f} ± {entry['margin']:.1f} ({entry['accuracy']:.1f})" in page
    assert RunConfig.from_toml(folder / "config.toml").training.class_weights == "balanced"
    assert run("evaluate", folder, "--sizes", 1, "--out", "again.json") == 0
    found = json.loads((here / "again.json").read_text())["evaluation"]["sizes"][0]
    assert found["balanced"] == pytest.approx(sum(found["per_class"]) / 2)
    assert re.search(rf"accuracy +balanced .*\n.* {found['balanced']:.2f} %", capsys.readouterr().out)

    shutil.rmtree(here / "runs")
    assert run(*words, "--training.class-weights", "none") == 0
    assert RunConfig.from_toml(only("photos-*") / "config.toml").training.class_weights == "none"


def test_a_budget_becomes_epochs_once_and_a_stopped_command_resumes(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between candidates, it goes on with the plan of the first time, however fast it is by then."""
    photos(here / "photos", count=10)
    times = {"cnn": 0.01, "fovlse": 0.02}
    monkeypatch.setattr(candidates, "LEAST", 1)
    monkeypatch.setattr(candidates, "seconds_an_epoch", lambda config, *_: times[config.network.name])
    words = ("train", "--data", "photos", *QUICK, "--budget", "0.125s", "--sizes", 1)

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(own_images_run, "tried", stopped)
        assert run(*words) == 130
    said = capsys.readouterr()
    assert "run the same command again to resume" in said.err
    plan = json.loads((only("photos-*") / "plan.json").read_text())
    epochs = [one["config"]["training"]["epochs"] for one in plan["candidates"]]
    assert epochs == [2, 2, 1, 1]
    assert [one["config"]["training"]["period"] for one in plan["candidates"]] == epochs
    assert sum(one["seconds"] for one in plan["candidates"]) <= 0.1
    times["cnn"] = 1.0
    assert run(*words) == 0
    said = capsys.readouterr().out
    assert "4/4 scale channels everywhere: already trained" in said
    assert json.loads((only("photos-*") / "plan.json").read_text()) == plan
    assert run(*words, "--training.epochs", 1) == 1
    assert "--budget sets the epochs; remove it or --training.epochs" in capsys.readouterr().err
    assert run("train", "--data", "photos", "--budget", "soon") == 1
    assert "--budget must be a time such as 90s, 10m or 1h; got 'soon'" in capsys.readouterr().err


def test_a_budget_that_is_too_short_trains_the_fastest_candidate_and_says_so(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    photos(here / "photos")
    monkeypatch.setattr(candidates, "LEAST", 1)
    monkeypatch.setattr(
        candidates, "seconds_an_epoch", lambda config, *_: 9 if config.data.resize is None else 1
    )
    assert run("train", "--data", "photos", *QUICK, "--budget", "0.125s", "--sizes", 1) == 0
    said = capsys.readouterr().out
    assert (
        "the budget is too short, and the fastest candidate gets the fewest steps that make sense\n" in said
    )
    assert "1/1 resized CNN: 1 epoch, about 1 s …\n" in said


def test_the_plain_network_alone_has_a_report_without_channels(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos(here / "photos")
    words = ("train", "--data", "photos", *FEW, "--network.name", "cnn", "--threads", 2)
    assert run(*words, "--sizes", 1, 1) == 1
    assert "--sizes must name each size only once; got '1 1'" in capsys.readouterr().err
    assert run(*words, "--sizes", 0.5, 1) == 0
    said = capsys.readouterr().out
    assert "no channels, one window of 112 pixels" in said
    assert "1/1 plain CNN: 1 epoch …" in said
    assert torch.get_num_threads() == 2
    assert re.search(r"The plain CNN has \d+ % accuracy over sizes ½ to 1 ", said)
    assert "Which channel decides" not in (only("photos-*") / "report.html").read_text(encoding="utf-8")


def test_an_average_that_is_too_long_is_told_and_does_no_harm(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """0.999 over 40 steps: the network is as good as without, and was at 10 % when it kept its start."""
    for index, digit in enumerate(strokes(60, seed=0, split="train").render(1.0, 28)):
        label = int(strokes(60, seed=0, split="train").labels[index]) % 2
        pixels = ((digit[0] + 0.763) / 1.526 * 255).clamp(0, 255).byte().numpy()
        turned = pixels if label else np.ascontiguousarray(255 - pixels)  # two classes that are easy to tell
        save(here / "digits" / str(label) / f"{index}.png", Image.fromarray(turned))
    few = ("--network.low", 1, "--network.high", 1, "--training.epochs", 15, "--network.name", "fovlse")
    assert run("train", "--data", "digits", *few, "--training.average", 0.999, "--sizes", 1) == 0
    said = capsys.readouterr()
    assert (
        "warning: training.average 0.999 averages over about 1,000 steps, and the scale channels" in said.err
    )
    result = json.loads((only("digits-*") / "report.json").read_text())
    (entry,) = (e for e in result["candidates"]["scale channels"]["test"] if e["group"] == "size")
    assert entry["accuracy"] > 80


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
    config = RunConfig.from_toml(only("photos-*") / "config.toml")
    assert (config.data.pixel_size, config.data.deploy_pixel_sizes) == (0.5, (0.25, 2.0))
    assert (config.data.validation, config.data.skip_corrupt) == (0.5, True)
    assert (config.data.name, config.data.folder) == ("folder", str(here / "photos"))
    scale = 40 / 28
    assert config.network.low == pytest.approx(0.25 / 4 * scale)  # two channels of ratio 2 below 1/4
    assert config.network.high == pytest.approx(2 * 4 * scale)
    assert "CNN" not in said.out


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
    folder = only("photos-*")
    assert run("predict", folder, "photos/red/0.png", "--out", "one.csv") == 0
    (row,) = table(here / "one.csv")
    low = RunConfig.from_toml(folder / "config.toml").network.low
    names = [name for name in row if name.startswith("channel_")]
    scales = [float(name.removeprefix("channel_")) for name in names]
    (strongest,) = (one for one in scales if one == pytest.approx(float(row["scale"]), rel=0.01))
    said = [float(row[name]) for name in names]
    assert said[scales.index(strongest)] == max(said)  # others may have as much, to these digits
    assert float(names[0].removeprefix("channel_")) == pytest.approx(
        2 * low, abs=1e-3
    )  # in the file's pixels

    answer = Predictor(folder)("photos/red/0.png")  # the same object in the same units
    assert (float(row["size"]), float(row["pixels"])) == pytest.approx((answer.size, answer.pixels), abs=0.1)
    assert float(row["pixels"]) == pytest.approx(60 * float(row["size"]), rel=0.02)
    assert float(row["probability_red"]) + float(row["probability_blue"]) == pytest.approx(1, abs=2e-4)

    import scalechannels
    from scalechannels.data.frames import reduced
    from scalechannels.data.pictures import read_image

    image = reduced(read_image(here / "photos/red/0.png", grey=True), 2)
    with torch.inference_mode():
        wanted = (
            (scalechannels.load(folder)(image[None]) / SavedNetwork.open(folder).temperature).softmax(1).max()
        )
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
        (lambda root: photos(root, count=1), "has 1 image to train on; each class needs at least 3"),
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
    assert run("predict", only("photos-*"), "photos", "--out", "all.json") == 0
    found = json.loads((here / "all.json").read_text())
    assert len(found) == 19
    assert all(0 < one["probability"] <= 1 for one in found)


@pytest.mark.slow
def test_a_killed_command_resumes_where_it_was(here: Path) -> None:
    """SIGKILL while the second candidate trains: the first is not trained again, the second resumes."""
    photos(here / "photos", count=10)
    words = ("train", "--data", "photos", *QUICK, "--training.epochs", "60", "--sizes", "1")
    command = [sys.executable, "-m", "scalechannels.cli", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.startswith("2/4 augmented CNN"):
                break
        run_folder = only("photos-*") / "candidates"
        while not list(run_folder.glob("cnn-*/checkpoint.safetensors")):
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "1/4 resized CNN: already trained\n2/4 augmented CNN: 60 epochs …\n" in ended.stdout
    assert (only("photos-*") / "report.html").exists()
