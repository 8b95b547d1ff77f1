"""What the report on a detector says, by hand: a finder that is known, in pictures that are known."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from scalechannels.data.boxes.labelled import LabelledImage
from scalechannels.detection.average_precision import Ranked
from scalechannels.report import boxes_measured
from scalechannels.report.boxes import boxes_page, thresholds, worst
from scalechannels.report.boxes_measured import HeldOut, not_measured, numbers, some_of

SIDE = 100


def image(path: Path, *boxes: tuple[float, ...]) -> LabelledImage:
    Image.new("L", (SIDE, SIDE), 128).save(path)
    edges = torch.tensor(boxes, dtype=torch.float64).view(-1, 4)
    labels, none = torch.zeros(len(boxes), dtype=torch.int64), torch.zeros(0, 4, dtype=torch.float64)
    return LabelledImage(path, SIDE, SIDE, True, edges, labels, none)


OBJECT, NOTHING = (10.0, 10.0, 40.0, 30.0), (60.0, 60.0, 90.0, 90.0)


def finds_both(picture: torch.Tensor) -> Ranked:
    """The object, and something else, in a picture of any size."""
    size = picture.shape[1] / SIDE
    boxes = (torch.tensor([OBJECT, NOTHING], dtype=torch.float64) + 0.5) * size - 0.5
    return Ranked(boxes, torch.zeros(2).long(), torch.tensor([0.9, 0.8], dtype=torch.float64))


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HeldOut:
    monkeypatch.setattr(boxes_measured, "QUIET_PICTURES", 2)
    monkeypatch.setattr(boxes_measured, "QUIET_SIDE", SIDE)
    shown, quiet = image(tmp_path / "shown.png", OBJECT), image(tmp_path / "quiet.png")
    return HeldOut([shown], [quiet] * 3, 0.5, 2, True, 1, 10**6, 0)


def test_numbers_by_hand(held: HeldOut) -> None:
    said: list[str] = []
    outcome = held(finds_both, said.append)
    assert outcome.threshold == pytest.approx(0.9)  # where there is nothing, it is as sure as of the object
    result = numbers(outcome)
    assert [one["size"] for one in result["sizes"]] == [0.5, 1, 2]
    assert all(
        (one["ap50"], one["ap"], one["objects"], one["images"]) == (1, 1, 1, 1) for one in result["sizes"]
    )
    negatives, textures = (result["false_alarms"][name] for name in ("negatives", "textures"))
    assert negatives == {"pictures": 3, "megapixels": 0.03, "alarms": 3, "a_megapixel": 100.0}
    assert (textures["pictures"], textures["alarms"], textures["a_megapixel"]) == (2, 2, 100.0)
    assert result["own"] == result["sizes"][1]
    assert said[0] == "measuring at size 0.5 …"
    assert "s left" in said[-1]
    rows = {row["threshold"]: row for row in thresholds(outcome.sizes)}
    assert (rows[0.5]["precision"], rows[0.5]["recall"]) == (0.5, 1)
    assert (rows[0.84]["precision"], rows[0.84]["recall"]) == (1, 1)
    assert (rows[0.98]["precision"], rows[0.98]["recall"]) == (1, 0)


def test_the_worst_errors_are_those_where_there_is_nothing_too(held: HeldOut) -> None:
    outcome = held(finds_both, lambda line: None)
    pictures = worst(outcome, grey=True)
    # Above the threshold: the object, which in the quiet pictures is none.
    assert [text for _, text in pictures["False alarms"]] == ["quiet.png, 0.90"] * 3
    assert pictures["Missed objects"] == []
    outcome.threshold = 0.95
    pictures = worst(outcome, grey=True)
    assert [text for _, text in pictures["Missed objects"]] == ["shown.png"]
    assert pictures["False alarms"] == []


def test_without_such_images_textures_speak_alone(held: HeldOut) -> None:
    alone = HeldOut(held.images, [], 1, 1, True, 1, 10**6, 0)
    outcome = alone(finds_both, lambda line: None)
    result = numbers(outcome)
    assert result["false_alarms"]["negatives"]["a_megapixel"] is None
    more = {
        "verdict": "v",
        "classes": ["a"],
        "held": 0,
        "folder": "f",
        "source": "s",
        "objects": 1,
        "trained": 1,
    }
    more |= {
        "grid": [1],
        "smallest": 1.0,
        "largest": 2.0,
        "steps": 3,
        "seconds": 4.0,
        "seed": 0,
        "remarks": [],
    }
    more |= {"thresholds": thresholds(outcome.sizes), "against": None, "range": [1, 1]}
    page = boxes_page(result | more, {})
    assert "No images without objects were kept for the test" in page
    assert "on made-up textures" in page
    assert "Beside torchvision" not in page


def test_what_was_left_out_is_told(held: HeldOut, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes_measured, "QUIET_PIXELS", 1.5 * SIDE**2)
    monkeypatch.setattr(boxes_measured, "MEASURED", 2)
    monkeypatch.setattr("scalechannels.detection.measuring.MOST_PIXELS", 2 * SIDE**2)
    assert len(some_of(held.quiet)) == 2
    many = HeldOut(held.images * 3, held.quiet, 0.5, 2, True, 1, 10**6, 0)
    outcome = many(finds_both, lambda line: None)
    assert [one["size"] for one in numbers(outcome)["sizes"]] == [0.5, 1]
    first, second, third = not_measured(many, outcome)
    assert first == "of 3 images with objects to test on, 2 were measured"
    assert second == "of 3 images without objects, 2 were looked at"
    assert third.startswith("at size 2, 2 of the images were left out: enlarged, they have more than")
