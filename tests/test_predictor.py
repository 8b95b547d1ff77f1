"""Predictor says what the command `predict` says, and in which size an object is."""

import csv
from pathlib import Path

import pytest
import torch
from helpers.command_line import run
from helpers.own_folder import write

from scalechannels import Detector, Predictor, ScaleGrid, fovlse
from scalechannels.data.frames import reduced
from scalechannels.data.pictures import as_digits, read_image
from scalechannels.report.labelled import labelled
from scalechannels.saving.saved_network import SavedNetwork


def test_answers_are_those_of_predict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = write(tmp_path / "images", [(40, 30), (28, 28)])
    network = fovlse(ScaleGrid.of(0.5, 1, 2), classes=3)
    network.usage = {
        "classes": ["a", "b", "c"],
        "background": None,
        "values": "unit",
        "reduce": 1,
        "temperature": 0.5,
        "object_size": 56.0,
        "own_scale": 1.0,
    }
    network.save_pretrained(tmp_path / "net")
    assert run("predict", "net", "images", "--out", "said.csv") == 0
    predictor = Predictor("net")
    for row in csv.DictReader((tmp_path / "said.csv").read_text().splitlines()):
        answer = predictor(row["path"])
        assert answer.label == row["class"]
        assert answer.probability == pytest.approx(float(row["probability"]), abs=1e-4)
        assert answer.size == pytest.approx(float(row["scale"]))
        assert answer.pixels == pytest.approx(56 * answer.size)
        assert sum(answer.probabilities.values()) == pytest.approx(1)
        assert predictor(read_image(Path(row["path"]), grey=True)) == answer
        with torch.inference_mode():
            logits = network.eval()(read_image(Path(row["path"]), grey=True)[None])
        assert answer.probability == pytest.approx(float((logits / 0.5).softmax(1).max()))  # not at 1
    assert root.exists()


def test_a_network_that_nobody_measured_has_no_size() -> None:
    image = torch.zeros(1, 60, 60)
    image[:, 20:40, 28:32] = 1
    answer = Predictor("fovlse-mnist")(image)
    assert answer.size is answer.pixels is None
    assert answer.label in answer.probabilities


def test_a_detector_is_refused_with_what_to_use(tmp_path: Path) -> None:
    """Its last outputs say a box: they are no classes."""
    Detector(fovlse(ScaleGrid.of(1, 2)), background=3).save_pretrained(tmp_path / "found")
    with pytest.raises(ValueError, match=r"found' is a detector, .* use scalechannels\.Detector"):
        Predictor(tmp_path / "found")


@pytest.mark.parametrize(
    ("image", "says"),
    [
        (torch.randint(0, 256, (1, 60, 60), dtype=torch.uint8), r"1; got torch\.uint8 .*float\(\) / 255"),
        (255 * torch.rand(1, 60, 60), "from 0 to 1; got torch.float32 from .* to 25"),
        (-torch.rand(1, 60, 60), "from 0 to 1; got torch.float32 from -"),
        (torch.full((1, 60, 60), torch.nan), "from 0 to 1; got torch.float32 from nan"),
        (torch.rand(60, 60), r"the shape \(C, H, W\); got \(60, 60\)"),
        (torch.rand(1, 0, 60), r"the shape \(C, H, W\); got \(1, 0, 60\)"),
    ],
)
def test_values_that_are_no_shares_of_white_are_refused(image: torch.Tensor, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Predictor("fovlse-mnist")(image)


def test_ink_on_paper_is_told_and_can_be_inverted() -> None:
    """It was taken for a digit of another shape, without a word."""
    digit = torch.zeros(1, 112, 112)
    digit[:, 36:76, 54:58] = 1
    predictor = Predictor("fovlse-mnist")
    expected = predictor(digit)
    with pytest.warns(UserWarning, match=r"the image looks dark on light, .*; try invert=True"):
        assert predictor(1 - digit) != expected
    assert predictor(1 - digit, invert=True) == expected


@pytest.mark.filterwarnings("ignore:.* looks dark on light")  # noise may
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_a_network_of_any_precision_is_asked_about_files(
    kind: torch.dtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "images", [(40, 30), (28, 28)])
    network = fovlse(ScaleGrid.of(1, 2)).eval().to(kind)
    network.save_pretrained("net")
    assert run("predict", "net", "images") == 0
    (first, *_) = csv.DictReader(capsys.readouterr().out.splitlines())
    answer = Predictor("net")(first["path"])
    assert (answer.label, f"{answer.probability:.4f}") == (first["class"], first["probability"])
    with torch.no_grad():
        logits = network.float()(as_digits(read_image(first["path"], grey=True))[None])
    assert answer.probability == pytest.approx(float(logits.softmax(1).max()), abs=1e-5)


@pytest.mark.filterwarnings("ignore:.* looks dark on light")  # noise may
@pytest.mark.parametrize("values", ["digits", "unit"])
def test_images_are_reduced_first_by_all_who_read_them(
    values: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Contrast is stretched after that: the other way round, `evaluate` tested other values than these."""
    monkeypatch.chdir(tmp_path)
    root = write(tmp_path / "images", [(40, 30), (28, 28), (51, 60)])
    network = fovlse(ScaleGrid.of(0.5, 1), classes=2).eval()
    network.usage = {"classes": ["class0", "class1"], "background": None, "values": values, "reduce": 3}
    network.usage["temperature"] = 0.01  # so that a small difference shows
    network.save_pretrained("net")
    predictor, sure = Predictor("net"), []
    for path in sorted(root.glob("*/*.png")):
        small = reduced(read_image(path, grey=True), 3)
        with torch.no_grad():
            logits = network((as_digits(small) if values == "digits" else small)[None])
        sure.append(float((logits / 0.01).softmax(1).max()))
        assert predictor(path).probability == pytest.approx(sure[-1], abs=1e-5)
    assert run("predict", "net", "images") == 0
    rows = csv.DictReader(capsys.readouterr().out.splitlines())
    assert [float(row["probability"]) for row in rows] == pytest.approx(sure, abs=1e-4)
    (entry,) = labelled(SavedNetwork.open("net"), root, torch.device("cpu"))["sizes"]
    assert entry["sure"] == pytest.approx(100 * sum(sure) / len(sure), abs=1e-3)
