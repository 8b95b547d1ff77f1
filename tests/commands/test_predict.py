"""`scalechannels predict`: files in, classes and scales out, by the convention of training."""

import csv
import io
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.bright import looking_everywhere
from helpers.command_line import run as run_command
from helpers.pictures import tiff, write
from PIL import Image

from scalechannels import (
    LogMeanExpOverScales,
    ScaleChannelNetwork,
    ScaleGrid,
    cnn,
    fovlse,
    scale_contributions,
)
from scalechannels.backbones.paper import ConvBackbone
from scalechannels.commands import predict as predicting
from scalechannels.commands.predict import Prediction, Taken, edge_warnings
from scalechannels.data.pictures import as_digits
from scalechannels.data.strokes import strokes

run = partial(run_command, "predict")


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    fovlse(ScaleGrid(0.5, 2, ratio=2)).save_pretrained("net")
    (tmp_path / "digits").mkdir()
    return tmp_path


def save(path: Path, values: torch.Tensor) -> None:
    """Values from 0 to 1, (H, W), as a grey PNG."""
    Image.fromarray((values * 255).round().byte().numpy()).save(path)


def ink(count: int = 3, scale: float = 1.0, size: int = 112) -> torch.Tensor:
    """Digits from 0 to 1 before the arctan of MNIST Large Scale, (N, H, W)."""
    shown = strokes(count, 0).render(scale, size)[:, 0]  # −0.76 to 0.76
    return ((torch.tan(shown * torch.pi / 2) / 0.02 + 128) / 255).clamp(0, 1)


def test_csv_on_the_screen_says_what_the_network_says(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import scalechannels

    for number, image in enumerate(ink()):
        save(here / "digits" / f"{number}.png", image)
    assert run("net", "digits") == 0
    said = capsys.readouterr()
    found = rows(said.out)
    assert [row["path"] for row in found] == [f"digits/{number}.png" for number in range(3)]
    ends = [row["at_edge"] for row in found].count("true")
    assert said.err.count("warning: ") == said.err.count("To widen the range") == (ends > 0)
    images = torch.stack([as_digits((image * 255).round() / 255) for image in ink()])[:, None]
    network = scalechannels.load("net")
    with torch.inference_mode():
        probabilities = network(images).softmax(1)
    shares = scale_contributions(network, images)
    for index, row in enumerate(found):
        assert int(row["class"]) == int(probabilities[index].argmax())
        assert float(row["probability"]) == pytest.approx(float(probabilities[index].max()), abs=1e-4)
        of_all = [float(row[f"probability_{label}"]) for label in range(10)]
        assert of_all == pytest.approx(probabilities[index].tolist(), abs=1e-4)
        assert "size" not in row  # nobody measured how large the training objects were
        strongest = int(shares[index].argmax())
        assert float(row["scale"]) == (0.5, 1, 2)[strongest]
        assert row["at_edge"] == str(strongest != 1).lower()
        given = [float(row[f"channel_{name}"]) for name in ("0.5", "1", "2")]
        assert given == pytest.approx(shares[index].tolist(), abs=1e-4)


def test_invert_is_for_ink_on_paper_and_is_suggested(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(here / "white.png", ink(1)[0])
    save(here / "black.png", 1 - ink(1)[0])
    assert run("net", "white.png") == 0
    white = capsys.readouterr()
    assert white.err == ""
    assert run("net", "black.png") == 0
    assert "1 of 1 images look dark on light" in capsys.readouterr().err
    assert run("net", "black.png", "--invert") == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out == white.out.replace("white", "black")


def test_json_holds_the_same_and_images_may_have_any_size(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(here / "large.png", ink(1, 2.0, 150)[0])
    Image.new("RGB", (40, 30), "teal").save("colour.jpg")
    assert run("net", "large.png", "colour.jpg", "--out", "new/classes.json") == 0
    found = json.loads((here / "new" / "classes.json").read_text())
    assert [row["path"] for row in found] == ["large.png", "colour.jpg"]
    known = {"path", "class", "probability", "scale", "at_edge", "contributions", "probabilities"}
    assert set(found[0]) == known
    assert found[0]["probabilities"][found[0]["class"]] == found[0]["probability"]
    assert sum(found[0]["contributions"]) == pytest.approx(1)
    assert "2 of 2 images" in capsys.readouterr().out
    assert run("net", "large.png", "colour.jpg", "--out", "classes.csv") == 0
    assert [row["class"] for row in rows((here / "classes.csv").read_text())] == [
        row["class"] for row in found
    ]


def test_corrupt_files_are_named_and_the_others_are_done(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(here / "digits" / "a.png", ink(1)[0])
    (here / "digits" / "b.png").write_text("no image")
    save(here / "digits" / "c.png", ink(1)[0])
    assert run("net", "digits") == 1
    said = capsys.readouterr()
    assert [row["path"] for row in rows(said.out)] == ["digits/a.png", "digits/c.png"]
    assert said.err.startswith("error: 'digits/b.png' cannot be read: it is damaged")
    assert said.err.count("\n") == 1


def test_an_image_of_any_mode_is_one_of_many(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One file in LAB ended a whole run, unnamed."""
    save(here / "digits" / "a.png", ink(1)[0])
    write(here / "digits" / "b.tif", tiff(np.full((40, 40, 3), 80, dtype=np.uint8), photometric=8))
    write(here / "digits" / "c.tif", tiff(np.full((40, 40, 1), 200, dtype=np.int32)))
    save(here / "digits" / "d.png", ink(1)[0])
    assert run("net", "digits") == 1
    said = capsys.readouterr()
    assert [row["path"] for row in rows(said.out)] == [
        f"digits/{name}" for name in ("a.png", "b.tif", "d.png")
    ]
    assert said.err.startswith("error: 'digits/c.tif' cannot be read: it has signed integers")


def test_what_is_left_out_of_a_folder_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here / "digits" / "photo.cr2", b"")
    assert run("net", "digits") == 1
    assert "holds no images (.png" in (said := capsys.readouterr().err)
    assert said.endswith("; 1 file in 'digits' left out, not read as images: photo.cr2\n")
    save(here / "digits" / "a.png", ink(1)[0])
    assert run("net", "digits") == 0
    said = capsys.readouterr().err
    assert said.startswith("warning: 1 file in 'digits' left out, not read as images: photo.cr2\n")


@pytest.mark.skipif(os.name == "nt", reason="names are Unicode there")
def test_names_that_are_not_utf8_and_emoji_are_written_everywhere(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The work was done and then lost: such a name cannot be written as UTF-8."""
    for name in (b"caf\xe9.png", "\U0001f600.png".encode()):
        save(here / "digits" / os.fsdecode(name), ink(1)[0])
    write(here / "digits" / os.fsdecode(b"no\xff.png"), b"")
    expected = ["digits/caf\\xe9.png", "digits/\U0001f600.png"]
    assert run("net", "digits") == 1
    printed = capsys.readouterr().out
    assert sorted(row["path"] for row in rows(printed)) == sorted(expected)
    for name in ("o.json", "o.csv", os.fsdecode(b"\xe9.csv")):
        assert run("net", "digits", "--out", name) == 1
        said = capsys.readouterr()
        assert said.err.startswith("error: 'digits/no\\xff.png' cannot be read")
        assert said.out.endswith(": 2 of 3 images\n")
        if name != "o.json":
            assert (here / name).read_text(encoding="utf-8") == printed
    found = json.loads((here / "o.json").read_text(encoding="utf-8"))
    assert sorted(row["path"] for row in found) == sorted(expected)


def test_where_nothing_is_readable_nothing_is_written(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "b.png").write_text("no image")
    for words in (("net", "b.png"), ("net", "b.png", "--out", "classes.csv")):
        assert run(*words) == 1
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("error: 'b.png' cannot be read: it is damaged, or not an image")
        assert said.err.count("\n") == 1
    assert not (here / "classes.csv").exists()


def test_the_plain_network_has_no_scale_and_says_which_image_it_cannot_take(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cnn().save_pretrained("plain")
    save(here / "a.png", ink(1)[0])
    save(here / "small.png", ink(1, size=100)[0])
    assert run("plain", "a.png") == 0
    (row,) = rows(capsys.readouterr().out)
    of_classes = [f"probability_{label}" for label in range(10)]
    assert list(row) == ["path", "class", "probability", "scale", "at_edge", *of_classes]
    assert row["scale"] == ""
    assert run("plain", "a.png", "small.png") == 1
    assert (
        "error: 'small.png' cannot be used: images must have the plain CNN's 112x112"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("net", "nowhere.png"), "'nowhere.png' does not exist; give"),
        (("net", "digits"), "'digits' holds no images (.png, .apng, .jpg"),
        (("net", "net"), "IMAGES must be image files or folders of them; 'net' is a network's folder"),
        (("digits", "a.png"), "'digits' is not a saved network"),
        (("net", "a.png", "--out", "x.txt"), "--out must end in .csv or .json; got 'x.txt'"),
        (("net", "a.png", "--max-pixels", "0"), "--max-pixels must be at least 1; got '0'"),
        (("net", "a.png", "--out", "net/result.json"), "'net/result.json' is a file of the network in "),
    ],
)
def test_what_a_user_can_mend_is_one_line(
    words: tuple[str, ...], message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(here / "a.png", ink(1)[0])
    assert run(*words) == 1
    said = capsys.readouterr()
    assert said.err.startswith("error: ")
    assert message in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


def prediction(strongest: int, channels: int = 3) -> Prediction:
    shares = [float(index == strongest) for index in range(channels)]
    edge = channels > 1 and strongest in (0, channels - 1)
    return Prediction(f"{strongest}.png", "a", 1.0, 2.0**strongest, edge, shares)


def test_a_scale_at_the_edge_is_told_with_what_to_do() -> None:
    grid = ScaleGrid(1, 4, ratio=2)
    assert edge_warnings([prediction(1), prediction(0, channels=1)], grid) == []
    low, high = edge_warnings([prediction(0), prediction(1), prediction(2), prediction(2)], grid)
    assert low.startswith("in 1 of 4 images, such as '0.png', the strongest channel is the smallest (σ = 1)")
    assert low.endswith("train again with the same options and --network.low 0.5")
    assert high.startswith("in 2 of 4 images, such as '2.png', the strongest channel is the largest (σ = 4)")
    assert high.endswith("with the same options and --network.high 8")
    # The options are in the network's own pixels, the scale in the file's: here of an image reduced by 4.
    assert edge_warnings([prediction(2)], [0.25, 0.5, 1])[0].endswith("--network.high 2")
    low, high = edge_warnings([prediction(0), prediction(2)], grid, deployed=(0.25, 2.0))
    assert low.endswith("with the same options and --deploy-pixel-sizes that reach to 4")
    assert high.endswith("with the same options and --deploy-pixel-sizes that reach to 0.125")


@pytest.mark.parametrize("ratio", [2**0.25, 2**0.5, 1.5, 1.1, 3])
@pytest.mark.parametrize("minimum", [0.2020305, 1 / 3, 36 / 28 * 2**-2.5, 7.123456789])
def test_the_scale_that_is_advised_is_one_that_can_be_trained_with(minimum: float, ratio: float) -> None:
    old = ScaleGrid.of(*(minimum * ratio**k for k in range(17)))
    ends = [prediction(0, channels=17), prediction(16, channels=17)]
    low, high = (float(line.split()[-1]) for line in edge_warnings(ends, old))
    for grid in (
        ScaleGrid(low, old.maximum, ratio=ratio),
        ScaleGrid(old.minimum, high, ratio=ratio),
        ScaleGrid(low, high, ratio=ratio),
    ):
        assert set(torch.tensor(old.factors).log().mul(1e4).round().tolist()) < set(
            grid.scales.log().mul(1e4).round().tolist()
        )
    assert 1.4 < high / old.maximum < 3.1
    assert 1.4 < old.minimum / low < 3.1


def test_a_detector_says_background_where_there_is_no_object(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(here / "nothing.png", torch.zeros(60, 60))
    assert run("digit-detector", "nothing.png") == 0
    said = capsys.readouterr()
    assert rows(said.out)[0]["class"] == "background"
    assert "only background at the centre of 1 of 1 images" in said.err
    assert "scalechannels detect IMAGE --network digit-detector" in said.err


def test_one_channel_has_no_edge(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fovlse(ScaleGrid.of(1)).save_pretrained("single")
    save(here / "one.png", ink(1)[0])
    assert run("single", "one.png") == 0
    said = capsys.readouterr()
    assert (rows(said.out)[0]["at_edge"], said.err) == ("false", "")


def test_large_files_are_read_by_those_who_allow_them(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save(here / "large.png", ink(1, size=60)[0])
    assert run("net", "large.png", "--max-pixels", 3_000) == 1
    assert (
        "it has 60 x 60 pixels, more than the limit of 3,000; raise --max-pixels" in capsys.readouterr().err
    )
    assert run("net", "large.png", "--max-pixels", 3_600) == 0


def test_a_batch_is_bounded_in_images_and_in_pixels(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from scalechannels.saving.saved_network import SavedNetwork

    monkeypatch.setattr(predicting, "BATCH", 3)
    monkeypatch.setattr(predicting, "BATCH_PIXELS", 3_000)
    saved = SavedNetwork.open(Path("net"))
    seen, explain = [], saved.network.explain
    monkeypatch.setattr(saved.network, "explain", lambda batch: seen.append(batch.shape) or explain(batch))
    sides = [30] * 4 + [20] * 7 + [40, 60, 60, 60, 20]
    images = [
        Taken(Path(f"{number}.png"), torch.rand(1, side, side), (side, side))
        for number, side in enumerate(sides)
    ]
    found = [one for _, one in predicting.predict_images(saved, images)]
    assert [int(Path(one.path).stem) for one in found] == list(range(len(sides)))
    assert [tuple(shape)[::2] for shape in seen] == [
        *((3, 30), (1, 30), (3, 20), (3, 20), (1, 20), (1, 40), (1, 60), (1, 60), (1, 60), (1, 20)),
    ]
    alone = [next(iter(predicting.predict_images(saved, [image])))[1] for image in images]
    for one, other in zip(found, alone, strict=True):
        assert (one.path, one.label) == (other.path, other.label)
        assert one.probability == pytest.approx(other.probability, abs=1e-5)


@pytest.mark.parametrize("reduce", [1, 3])
def test_a_network_that_looks_everywhere_says_where(
    reduce: int, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In pixels of the file, also where its sides, 100 and 83, are no multiples of the reduction."""
    looking_everywhere(reduce).save_pretrained("anywhere")
    image = torch.zeros(100, 83)
    image[58:67, 21:30] = 1.0  # about (62, 25)
    save(Path("spot.png"), image)
    assert run("anywhere", "spot.png", "--draw", "drawn") == 0
    (one,) = rows(capsys.readouterr().out)
    assert one["class"] == "bright"
    assert (float(one["row"]), float(one["column"])) == pytest.approx((62, 25), abs=2 * reduce)
    assert run("anywhere", "spot.png", "--out", "one.json") == 0
    (told,) = json.loads(Path("one.json").read_text())
    assert (told["row"], told["column"]) == pytest.approx((float(one["row"]), float(one["column"])), abs=0.05)


def test_the_window_is_drawn_where_it_looked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    looking_everywhere().save_pretrained("anywhere")
    for folder, corner in (("a", 10), ("b", 80)):  # of one name, in two folders
        Path(folder).mkdir()
        image = torch.zeros(300, 300)
        image[corner : corner + 30, 200:230] = 1.0
        save(Path(folder, "spot.png"), image)
    assert run("anywhere", "a", "b", "--draw", "drawn", "--out", "rows.csv") == 0
    assert "drawn: 2 pictures" in capsys.readouterr().out
    told = rows(Path("rows.csv").read_text())
    for one, name in zip(told, ("spot.png", "spot-2.png"), strict=True):
        picture = torch.from_numpy(np.asarray(Image.open(Path("drawn", name))).astype(int))
        framed = (picture == torch.tensor([255, 149, 0])).all(2)  # the box, and its caption on black
        framed |= (picture == torch.tensor([90, 170, 255])).all(2)
        row, column = round(float(one["row"])), round(float(one["column"]))
        half = float(one["scale"]) * 7 / 2
        assert framed[round(row - half + 0.5) : round(row + half), round(column - half + 0.5)].all()
    assert told[1]["row"] != told[0]["row"]


def test_a_network_without_channels_has_no_window_to_draw(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cnn(data="mnist").save_pretrained("plain")
    save(Path("one.png"), ink(1)[0])
    assert run("plain", "one.png", "--draw", "drawn") != 0
    assert "'plain' has no channels" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is counted in other units")
def test_memory_does_not_grow_with_the_number_of_large_images(here: Path) -> None:
    """16 photographs of 12 megapixels took 4.4 GB. One is 144 MB as numbers; its bytes lie beside them."""
    network = ScaleChannelNetwork(
        ConvBackbone(channels=3, classes=2), ScaleGrid.of(1, 2), LogMeanExpOverScales()
    )
    network.save_pretrained("colour")
    (here / "photos").mkdir()
    for number in range(6):
        Image.new("RGB", (4000, 3000), (40 * number, 0, 0)).save(f"photos/{number}.jpg")
    code = """
import resource, sys
from scalechannels.cli import main
import scalechannels
scalechannels.load("colour")(__import__("torch").zeros(1, 3, 60, 60))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
main(["predict", "colour", sys.argv[1]])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    grown = {
        given: int(
            subprocess.run(
                [sys.executable, "-c", code, given], capture_output=True, text=True, check=True
            ).stdout.split()[-1]
        )
        for given in ("photos/0.jpg", "photos")
    }
    assert grown["photos"] < 450  # megabytes
    assert grown["photos"] < grown["photos/0.jpg"] + 100


def test_the_walk_of_a_picture_is_short(here: Path) -> None:
    """Which of our modules one prediction loads: nothing of training, reports or detection."""
    save(here / "picture.png", ink(1)[0])
    code = """
import sys
from scalechannels.cli import main
main(["predict", "fovlse-mnist", "picture.png"])
ours = [module for name, module in sys.modules.items() if name.startswith("scalechannels.")]
print(*(one.__name__.removeprefix("scalechannels.") for one in ours if not hasattr(one, "__path__")))
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stderr == ""
    assert set(said.stdout.splitlines()[-1].split()) == {
        *("cli", "commands.predict", "saving.saved_network", "saving.usage", "saving.accepted"),
        *("data.image_files", "data.decoding", "data.pictures"),
        *("scales", "sampling", "network", "pooling", "backbones.paper", "backbones.inference"),
    }
