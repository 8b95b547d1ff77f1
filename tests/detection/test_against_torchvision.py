"""A detector of torchvision beside ours: refused where it cannot run, and shown what we are shown.

Its stand-in has torchvision's interface; the real one has run on a CPU for a few steps, with the same code.
"""

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.command_line import run
from PIL import Image
from torch import nn

from scalechannels.data.boxes.reading import read_boxes
from scalechannels.data.frames import reduced
from scalechannels.detection import established, own_boxes
from scalechannels.detection.established import Established, square
from scalechannels.detection.window_pool import Objects
from scalechannels.report import boxes_measured
from scalechannels.report.boxes_run import train_on_boxes


class StandIn(nn.Module):
    """What torchvision's detectors are to their users; it learns one number, and finds one box."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options, self.seen = options, []
        self.weight = nn.Parameter(torch.ones(1))
        self.transform = types.SimpleNamespace(min_size=None, max_size=None)

    def forward(self, images: list[torch.Tensor], targets: Any = None) -> Any:
        if self.training:
            self.seen.append((images, targets))
            return {"classification": (self.weight**2).sum(), "bbox_regression": self.weight.abs().sum()}
        (image,) = images
        assert image.shape[0] == 3
        assert (self.transform.min_size, self.transform.max_size) == (
            (min(image.shape[1:]),),
            max(image.shape[1:]),
        )
        boxes = torch.tensor([[0.0, 0.0, 4.0, 3.0]])
        return [{"boxes": boxes, "labels": torch.tensor([0]), "scores": torch.tensor([0.9])}]


@pytest.fixture
def torchvision(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What its detectors were made with."""
    made: list[dict[str, Any]] = []

    def make(**options: Any) -> StandIn:
        made.append(options)
        if options["weights_backbone"] == "DEFAULT":
            raise OSError("no network")
        return StandIn(**options)

    detection = types.ModuleType("torchvision.models.detection")
    detection.fcos_resnet50_fpn = detection.retinanet_resnet50_fpn = make  # type: ignore[attr-defined]
    for name in ("torchvision", "torchvision.models"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "torchvision.models.detection", detection)
    return made


@pytest.fixture
def labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A white bar and an ignored region in a dark picture."""
    monkeypatch.chdir(tmp_path)
    picture = Image.new("L", (90, 60), 40)
    picture.paste(255, (20, 10, 50, 22))
    picture.paste(255, (60, 30, 80, 50))
    picture.save("a.png")
    crowd = {"id": 2, "image_id": 1, "category_id": 1, "bbox": [60, 30, 20, 20], "iscrowd": 1}
    content = {
        "images": [{"id": 1, "file_name": "a.png"}],
        "categories": [{"id": 1, "name": "bar"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [20, 10, 30, 12]}, crowd],
    }
    path = tmp_path / "bars.json"
    path.write_text(json.dumps(content))
    return path


def test_without_torchvision_it_is_refused_before_any_work(
    labels: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)
    assert run("train", "--data", labels, "--against", "fcos") == 1
    said = capsys.readouterr().err
    assert said.startswith("error: --against fcos needs torchvision, which cannot be imported (")
    assert said.endswith("): pip install torchvision\n")
    assert said.count("\n") == 1
    assert not Path("runs").exists()


@pytest.mark.usefixtures("torchvision")
def test_without_a_gpu_it_is_refused_before_any_work(
    labels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", "--data", labels, "--against", "retinanet", "--device", "cpu") == 1
    assert (
        capsys.readouterr().err
        == "error: --against retinanet needs a GPU: on a CPU it would train for hours\n"
    )
    assert not Path("runs").exists()


@pytest.mark.usefixtures("torchvision")
def test_a_torchvision_that_could_not_look_is_refused_before_any_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ImportError, match="no compiled part that fits this PyTorch"):
        established.require("fcos", "cuda")
    monkeypatch.setattr(torch.ops.torchvision, "nms", None, raising=False)
    established.require("fcos", "cuda")


@pytest.mark.parametrize("turns", [False, True])
@pytest.mark.parametrize("scales", [(1.0, 1.0), (0.5, 8.0)])
def test_objects_lie_where_the_boxes_of_a_square_say(
    labels: Path, scales: tuple[float, float], turns: bool
) -> None:
    (image,) = read_boxes(labels).images
    picture, objects = image.read(False), Objects.of(image)
    generator = torch.Generator().manual_seed(0)
    shapes, places = set(), set()
    for _ in range(60):
        seen, target = square(picture, objects, scales, turns, generator)
        assert seen.shape == (3, established.SIDE, established.SIDE)
        bright = (seen[0] > 0.75).nonzero()  # rows and columns; the ignored region was as bright
        for x0, y0, x1, y1 in target["boxes"].tolist():
            top, left = bright.min(0).values.tolist()
            bottom, right = (bright.max(0).values + 1).tolist()
            blurred = 1.5 + scales[1] * 0.4  # how far interpolation moves an edge
            assert [x0, y0, x1, y1] == pytest.approx([left, top, right, bottom], abs=blurred)
            shapes.add(x1 - x0 > y1 - y0)
            places.add((round(x0), round(y0)))
        assert target["labels"].tolist() == [0] * len(target["boxes"])
    assert len(shapes) == 1 + turns  # turned by a quarter, the bar stands upright
    assert len(places) > 1


def test_a_square_is_laid_about_an_object_of_a_large_picture() -> None:
    """Anywhere in such a picture there is next to never one."""
    far = Objects(
        torch.tensor([[4000.0, 4000, 4040, 4020]]).double(), torch.tensor([0]), torch.zeros(0, 4).double()
    )
    picture, generator = torch.zeros(3, 6000, 6000), torch.Generator().manual_seed(0)
    shown = [len(square(picture, far, (1, 1), False, generator)[1]["boxes"]) for _ in range(80)]
    assert 0.3 < sum(shown) / 80 < 0.7


def test_found_boxes_are_in_pixels_of_the_whole_image(
    labels: Path, torchvision: list[dict[str, Any]]
) -> None:
    other = Established("fcos", read_boxes(labels), scales=(0.5, 2), reduce=2, device="cpu")
    other.model.eval()
    picture = torch.rand(1, 41, 61)
    found = other.find(picture)
    # The box covers 4 x 3 of the reduced pixels, 8 x 6 of the whole, from the corner of the first.
    small = reduced(picture, 2)
    corner = [
        (whole - 2 * seen) / 2 - 0.5
        for whole, seen in zip((61, 41), (small.shape[2], small.shape[1]), strict=True)
    ]
    x, y = corner
    assert found.boxes.tolist() == [[x, y, x + 8, y + 6]]
    assert [one["weights_backbone"] for one in torchvision] == ["DEFAULT", None]
    assert other.begins.startswith(
        "weights drawn by chance, since ImageNet's could not be downloaded (no network)"
    )


def test_the_report_has_both(
    labels: Path, torchvision: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {
        "FOR_EACH": 1,
        "ABOUT": 200,
        "ELSEWHERE": 60,
        "MINING": 1e4,
        "TEXTURE": 64,
        "BATCH": 16,
        "HIDDEN": 8,
    }
    for name, value in {**small, "FEATURES": (4, 4, 8, 8)}.items():
        monkeypatch.setattr(own_boxes, name, value)
    monkeypatch.setattr(established, "require", lambda name, device: None)
    monkeypatch.setattr(established, "SIDE", 64)
    monkeypatch.setattr(boxes_measured, "QUIET_PICTURES", 1)
    monkeypatch.setitem(Established.__init__.__kwdefaults__, "steps", 3)
    said: list[str] = []
    folder = train_on_boxes(
        labels, Path("runs"), "cpu", low=1, high=1, steps=4, against="fcos", say=said.append
    )
    result = json.loads((folder / "report.json").read_text())
    other = result["against"]
    assert (other["name"], other["steps"]) == ("fcos", 3)
    assert [one["size"] for one in other["sizes"]] == [one["size"] for one in result["sizes"]] == [1]
    # Its one box is of no object: an alarm on the texture at any threshold below 0.9.
    assert other["own"]["ap50"] == 0
    assert other["false_alarms"]["textures"]["alarms"] == (other["threshold"] <= 0.9)
    assert torchvision[-1]["num_classes"] == 1
    page = (folder / "report.html").read_text()
    assert "Beside torchvision's fcos" in page
    assert "fcos, IoU 0.5" in page  # its curve
    assert any("step 3 of 3" in line for line in said)
    assert not list(folder.glob("state*"))
