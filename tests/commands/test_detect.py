"""`scalechannels detect`: a file in, JSON and a picture out; every kind of file that people have."""

import csv
import json
import shutil
import struct
import zlib
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.command_line import run as run_command
from PIL import Image

from scalechannels import MaxOverScales, ScaleChannelNetwork, ScaleGrid, cnn, fovavg
from scalechannels.backbones.paper import CifarBackbone, ConvBackbone
from scalechannels.cli import main
from scalechannels.detection.boxes import overlap
from scalechannels.detection.overlay import AT_EDGE, FOUND, draw
from scalechannels.saving.saved_network import find_network

run = partial(run_command, "detect")


def generate(*words: object) -> None:
    main(["data", "scene", *(str(word) for word in words)])


def pixels(path: str) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def tiny(here: Path) -> Path:
    """A detector of two channels that costs nothing, and says background."""
    torch.manual_seed(0)
    backbone = ConvBackbone((2, 2, 2, 2), classes=3, hidden=4)
    with torch.no_grad():
        backbone.classifier.bias.copy_(torch.tensor([-9.0, -9.0, 9.0]))
    ScaleChannelNetwork(backbone, ScaleGrid.of(1, 2), MaxOverScales()).save_pretrained("tiny")
    about = {"classes": ["a", "b"], "background": 2, "values": "digits"}
    Path("tiny/detector.json").write_text(json.dumps(about))
    return here / "tiny"


def test_a_generated_scene_is_detected_and_drawn(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generate("scene.png", "--height", 260, "--width", 380, "--count", 5, "--seed", 4, "--background", "noisy")
    capsys.readouterr()
    assert run("scene.png") == 0
    said = capsys.readouterr()
    result = json.loads(Path("scene-detections.json").read_text())
    truth = json.loads(Path("scene.json").read_text())["objects"]
    assert (result["height"], result["width"], result["look"]) == (260, 380, "everywhere")
    assert len(result["objects"]) == len(truth) == 5
    shared = overlap(
        *(torch.tensor([one["box"] for one in side]).double() for side in (truth, result["objects"]))
    )
    for number, one in enumerate(truth):
        match = result["objects"][int(shared[number].argmax())]
        assert shared[number].max() > 0.5
        assert match["class"] == one["class"]
        assert match["scale"] == pytest.approx(one["size"], rel=0.3)
    lines = said.out.splitlines()
    assert lines[0].split()[:3] == ["class", "probability", "size"]
    assert lines[-1] == "5 objects: scene-detections.json, scene-detections.png"
    picture, scene = (pixels(f"scene{end}.png") for end in ("-detections", ""))
    assert picture.shape == scene.shape
    coloured = (picture.max(2).astype(int) - picture.min(2)) > 60
    assert 200 < coloured.sum() < 0.2 * coloured.size
    assert run("scene.png", "--look", "interest", "--json", "new/i.json", "--overlay", "new/i.png") == 0
    assert len(json.loads(Path("new/i.json").read_text())["objects"]) >= 2
    assert Path("new/i.png").is_file()


def test_a_detector_that_reduces_its_images_gives_boxes_of_the_whole_image(here: Path) -> None:
    generate("scene.png", "--height", 180, "--width", 260, "--count", 4, "--seed", 4)
    truth = json.loads(Path("scene.json").read_text())["objects"]
    with Image.open("scene.png") as image:
        image.resize((520 + 1, 360), Image.Resampling.BICUBIC).save("large.png")
    shutil.copytree(find_network(Path("digit-detector")), "net")
    about = json.loads(Path("net/detector.json").read_text())
    Path("net/detector.json").write_text(json.dumps({**about, "reduce": 2}))
    assert run("large.png", "--network", "net") == 0
    found = json.loads(Path("large-detections.json").read_text())
    assert (found["height"], found["width"], len(found["objects"])) == (360, 521, len(truth))
    for one in found["objects"]:
        nearest = min(truth, key=lambda other: abs(other["box"][0] * 2 - one["box"][0]))
        assert str(nearest["class"]) == one["class"]
        assert one["scale"] == pytest.approx(nearest["size"] * 2, rel=0.2)
        for edge, expected in zip(one["box"], nearest["box"], strict=True):
            assert edge == pytest.approx(expected * 2 + 0.5, abs=0.12 * 28 * one["scale"])


def test_ink_on_paper_needs_invert_and_is_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generate("light.png", "--height", 120, "--width", 160, "--count", 2, "--sizes", 1, 2)
    Image.fromarray(255 - pixels("light.png")).save("dark.png")
    assert run("light.png") == 0
    capsys.readouterr()
    assert run("dark.png", "--invert") == 0
    assert capsys.readouterr().err == ""
    both = [json.loads(Path(f"{name}-detections.json").read_text())["objects"] for name in ("light", "dark")]
    assert [one["class"] for one in both[0]] == [one["class"] for one in both[1]]
    assert len(both[0]) == 2
    assert run("dark.png") == 0
    assert "looks dark on light" in capsys.readouterr().err


def save(kind: str, path: Path) -> None:
    grey = np.zeros((20, 30), np.uint8)
    grey[5:15, 5:25] = 255
    image = Image.fromarray(grey)
    if kind == "16-bit":
        image = Image.fromarray(grey.astype(np.uint16) * 257)
    elif kind == "alpha":
        image = Image.merge("LA", (image, image))
    elif kind != "L":
        image = image.convert("RGB").convert({"palette": "P"}.get(kind, kind))
    image.save(path)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("L", "a.png"), ("16-bit", "a.png"), ("CMYK", "a.jpg"), ("palette", "a.png"), ("alpha", "a.png"),
     ("RGBA", "a.png"), ("RGB", "a.webp"), ("1", "a.png")],
)  # fmt: skip
def test_every_kind_of_image_is_read(tiny: Path, kind: str, name: str) -> None:
    save(kind, Path(name))
    assert run(name, "--network", "tiny") == 0
    assert json.loads(Path("a-detections.json").read_text())["objects"] == []
    assert pixels("a-detections.png").shape == (160, 240, 3)  # small images are shown in whole multiples


@pytest.mark.parametrize("look", ["everywhere", "interest"])
@pytest.mark.parametrize("size", [(1, 1), (1, 50), (60, 40)])
def test_images_without_objects_give_an_empty_result(
    here: Path, look: str, size: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    Image.new("L", size, 77).save("empty.png")
    assert run("empty.png", "--look", look) == 0
    assert json.loads(Path("empty-detections.json").read_text())["objects"] == []
    said = capsys.readouterr()
    assert said.out == "no objects: empty-detections.json, empty-detections.png\n"
    assert said.err == ""


def bomb(path: Path, side: int) -> None:
    """A small PNG that unpacks to side² pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(side + 1)) for _ in range(side)) + packer.flush()
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b""))


def test_large_images_and_bombs_are_refused_unless_allowed(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bomb(Path("large.png"), 1200)
    assert run("large.png", "--network", "tiny", "--max-pixels", 1_000_000) == 1
    said = capsys.readouterr()
    assert said.err.startswith(
        "error: 'large.png' cannot be read: it has 1200 x 1200 pixels, more than the limit of 1,000,000"
    )
    assert "--max-pixels" in said.err
    assert not Path("large-detections.json").exists()
    assert run("large.png", "--network", "tiny", "--max-pixels", 2_000_000) == 0
    bomb(Path("bomb.png"), 20_000)
    assert run("bomb.png", "--network", "tiny") == 1
    said = capsys.readouterr()
    assert "error: 'bomb.png' cannot be read: " in said.err
    assert "--max-pixels" in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere.png",), "'nowhere.png' does not exist"),
        (("text.png",), "'text.png' cannot be read: it is damaged, or not an image"),
        (("tiny",), "'tiny' is a folder without images that are read"),
        (("a.png", "--json", "x.txt"), "--json must end in .json; got 'x.txt'"),
        (("a.png", "--overlay", "x.jpg"), "--overlay must end in .png; got 'x.jpg'"),
        (("a.png", "--overlay", "a.png"), "would replace the image 'a.png'"),
        (("a.png", "--max-pixels", "0"), "--max-pixels must be at least 1; got '0'"),
        (("a.png", "--threshold", "1.5"), "--threshold must be a probability"),
        (("a.png", "--network", "none"), "'none' is neither a folder nor a shipped network"),
        (("a.png", "--network", "plain"), "'plain' cannot detect: the network must be a scale-channel one"),
        (("a.png", "--network", "padded"), "'padded' cannot detect: CifarBackbone cannot slide"),
        (("a.png", "--network", "damaged"), "'damaged/detector.json' is damaged"),
    ],
)
def test_what_a_user_can_mend_is_one_line(
    tiny: Path, words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    save("L", Path("a.png"))
    Path("text.png").write_text("no image")
    if "plain" in words:
        cnn().save_pretrained("plain")
    if "padded" in words:
        ScaleChannelNetwork(CifarBackbone(), ScaleGrid.of(1), MaxOverScales(), window=32).save_pretrained(
            "padded"
        )
    if "damaged" in words:
        Path("tiny").rename("damaged")
        Path("damaged/detector.json").write_text('{"classes": ["a"]}')
    network = () if "--network" in words else ("--network", "tiny" if Path("tiny").exists() else "damaged")
    assert run(*words, *network) == 1
    said = capsys.readouterr()
    assert said.err.startswith("error: ")
    assert message in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert not list(Path().glob("*-detections.*"))


def test_a_network_without_background_warns_and_edges_are_told(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    fovavg(ScaleGrid.of(1, 2)).save_pretrained("net")
    save("L", Path("a.png"))
    assert run("a.png", "--network", "net", "--threshold", 0) == 0
    said = capsys.readouterr()
    assert "this network has no background class" in said.err
    assert "found by the smallest or the largest scale channel (σ = 1 or 2)" in said.err
    assert "at the edge of the scales" in said.out
    objects = json.loads(Path("a-detections.json").read_text())["objects"]
    assert objects
    assert all(one["at_edge"] for one in objects)
    assert run("a.png", "--network", "net", "--threshold", 0.999) == 0
    assert "no object has a probability of 0.999; lower --threshold" in capsys.readouterr().err


def both_files_say_the_same(results: list[dict]) -> None:
    """COCO and CSV have what the JSON has: every image, box, class and both probabilities."""
    coco = json.loads(Path("coco.json").read_text())
    assert [(one["file_name"], one["height"], one["width"]) for one in coco["images"]] == [
        (one["image"], one["height"], one["width"]) for one in results
    ]
    files = {one["id"]: one["file_name"] for one in coco["images"]}
    names = {one["id"]: one["name"] for one in coco["categories"]}
    with Path("table.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    objects = [(result["image"], one) for result in results for one in result["objects"]]
    assert len(objects) == len(lines) == len(coco["annotations"]) > 0
    for (image, one), annotation, line in zip(objects, coco["annotations"], lines, strict=True):
        x0, y0, x1, y1 = (edge + 0.5 for edge in one["box"])
        assert (files[annotation["image_id"]], names[annotation["category_id"]]) == (image, one["class"])
        assert annotation["bbox"] == pytest.approx([x0, y0, x1 - x0, y1 - y0], abs=0.006)
        assert [annotation[key] for key in ("score", "object_score")] == [
            one[key] for key in ("probability", "object_probability")
        ]
        assert (line["image_path"], line["label"]) == (image, one["class"])
        edges = [float(line[key]) for key in ("xmin", "ymin", "xmax", "ymax")]
        assert edges == pytest.approx([x0, y0, x1, y1], abs=0.006)
        assert float(line["score"]) == one["probability"] <= float(line["object_score"]) + 1e-6
        assert float(line["object_score"]) == one["object_probability"]


def test_several_images_give_one_list_and_a_picture_each(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fovavg(ScaleGrid.of(1, 2)).save_pretrained("net")
    for name in ("a/1.png", "b/1.png", "b/2.png"):
        Path(name).parent.mkdir(exist_ok=True)
        save("L", Path(name))
    words = ("--network", "net", "--threshold", 0, "--coco", "coco.json", "--csv", "table.csv")
    assert run("a/1.png", "b", *words) == 0
    said = capsys.readouterr()
    assert "3 of 3: b/2.png: " in said.err
    results = json.loads(Path("detections.json").read_text())
    assert [one["image"] for one in results] == ["a/1.png", "b/1.png", "b/2.png"]
    assert said.out.endswith("objects in 3 images: detections.json, detections, coco.json, table.csv\n")
    pictures = sorted(path.name for path in Path("detections").iterdir())
    assert pictures == ["2-detections.png", "a-1.png-detections.png", "b-1.png-detections.png"]
    both_files_say_the_same(results)
    assert run("b/*.png", *words) == 0
    assert len(json.loads(Path("detections.json").read_text())) == 2
    assert run("c/*.png", *words) == 1
    assert "no image matches 'c/*.png'" in capsys.readouterr().err


def test_no_picture_replaces_another(tiny: Path) -> None:
    """Of files that have the same name in folders of the same name, the last one was left."""
    fovavg(ScaleGrid.of(1, 2)).save_pretrained("net")
    for name in ("a/x/1.png", "b/x/1.png", "B/X/1.PNG"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        save("L", Path(name))
    assert run("a/x/1.png", "b/x/1.png", "B/X/1.PNG", "--network", "net", "--threshold", 0) == 0
    assert len(list(Path("detections").iterdir())) == 3


def test_of_several_images_a_damaged_one_is_named_and_the_others_are_done(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fovavg(ScaleGrid.of(1, 2)).save_pretrained("net")
    for name in ("1.png", "2.png", "3.png"):
        save("L", Path(name))
    Path("2.png").write_bytes(Path("1.png").read_bytes()[:40])
    words = ("--network", "net", "--threshold", 0, "--csv", "table.csv")
    assert run("1.png", "2.png", "3.png", *words) == 1
    said = capsys.readouterr()
    assert "error: '2.png' cannot be read: it is damaged" in said.err
    assert said.out.endswith(" in 2 images: detections.json, detections, table.csv\n")
    results = json.loads(Path("detections.json").read_text())
    assert [one["image"] for one in results] == ["1.png", "3.png"]
    assert Path("table.csv").exists()
    Path("detections.json").unlink()
    for name in ("1.png", "3.png"):
        Path(name).write_bytes(b"")
    assert run("1.png", "2.png", "3.png", *words) == 1
    assert capsys.readouterr().err.count("cannot be read") == 3
    assert not Path("detections.json").exists()


def test_the_picture_has_boxes_where_they_are_and_shows_the_edge() -> None:
    objects = [
        {"box": [99.5, 49.5, 199.5, 149.5], "class": "3", "probability": 0.9, "at_edge": False},
        {"box": [250, 200, 290, 240], "class": "x", "probability": 0.6, "at_edge": True},
        {"box": [-20, -20, 10, 10], "class": "y", "probability": 0.6, "at_edge": False},  # beyond the image
    ]
    picture = np.asarray(draw(torch.zeros(1, 300, 400), objects))
    assert picture.shape == (300, 400, 3)
    assert tuple(picture[100, 100]) == FOUND  # the left edge: pixel 100 is the first inside
    assert tuple(picture[100, 199]) == FOUND
    assert tuple(picture[100, 99]) == (0, 0, 0)
    assert tuple(picture[100, 200]) == (0, 0, 0)
    assert tuple(picture[150 - 1, 150]) == FOUND
    assert tuple(picture[220, 250]) in (AT_EDGE, (0, 0, 0))
    assert (picture == AT_EDGE).all(2).sum() > 100
    large = draw(torch.zeros(3, 20, 9000), [])
    assert large.size == (3000, 7)
