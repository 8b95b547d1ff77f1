"""The detection benchmarks: what they count is right, and nothing is looked at twice."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from benchmarks import detection_scenes, detection_table
from benchmarks.one_scale import told_by_place
from scalechannels.detection.window_pool import Looks, Objects
from scalechannels.files import json_lines

BOXES = [[10.0, 10.0, 37.0, 37.0], [60.0, 60.0, 87.0, 87.0], [100.0, 10.0, 127.0, 37.0]]


@pytest.fixture
def scenes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four scenes with the same three digits."""
    one = SimpleNamespace(boxes=torch.tensor(BOXES), labels=torch.tensor([3, 3, 7]))
    monkeypatch.setattr(
        detection_table, "made", lambda split, background, count: [(number, one) for number in range(count)]
    )


def written(path: Path, found: dict[int, list[list[float]]], seed: int = 0) -> Path:
    with path.open("a") as file:
        for background in ("plain", "noisy"):
            for scene, objects in found.items():
                line: dict[str, Any] = {"row": "r", "seed": seed, "split": "test", "background": background}
                line |= {"scene": scene, "seconds": 1.0, "trained": {"steps": 1}, "found": objects}
                file.write(json.dumps(line) + "\n")
    return path


@pytest.mark.usefixtures("scenes")
def test_recall_precision_and_average_precision_by_hand(tmp_path: Path) -> None:
    right = [[*box, label, 0.9] for box, label in zip(BOXES, (3, 3, 7), strict=True)]
    unsure = [*right[:2], [*BOXES[2], 7, 0.3]]  # found, but not at probability 1/2
    wrong = [*right[:2], [*BOXES[2], 3, 0.9]]  # of the wrong class: a fourth of what is said of class 3
    path = written(tmp_path / "found.jsonl", {0: right, 1: unsure, 2: wrong, 3: []})
    plain = detection_table.table(path, "test")["r"]["plain"]
    assert plain["objects"] == 12
    assert plain["recall"]["mean"] == pytest.approx(7 / 12)
    assert plain["precision"]["mean"] == pytest.approx(7 / 8)
    assert plain["recall"]["low"] < 7 / 12 < plain["recall"]["high"]
    # Class 3: six of eight, precision 1 but for the seventh answer, which ties; class 7: two of four.
    assert plain["average_precision"] == [pytest.approx((6 / 8 + 2 / 4) / 2, abs=0.07)]


@pytest.mark.usefixtures("scenes")
def test_perfect_and_empty_answers_and_the_mean_over_seeds(tmp_path: Path) -> None:
    right = [[*box, label, 0.9] for box, label in zip(BOXES, (3, 3, 7), strict=True)]
    path = written(tmp_path / "found.jsonl", {0: right, 1: right})
    written(path, {0: [], 1: []}, seed=1)
    plain = detection_table.table(path, "test")["r"]["plain"]
    assert plain["average_precision"] == [pytest.approx(1), 0.0]
    assert plain["recall"]["mean"] == 0.5


def test_scenes_that_the_file_has_are_not_looked_at_again(tmp_path: Path, monkeypatch) -> None:
    one = SimpleNamespace(image=torch.zeros(1, 8, 8))
    monkeypatch.setattr(detection_scenes, "made", lambda *_: [(7, one)])
    asked, out = [], tmp_path / "found.jsonl"

    def method(image: torch.Tensor) -> list[list[float]]:
        asked.append(image)
        return [[0.04, 1, 2, 3, 5, 0.123456]]

    for _ in range(2):
        detection_scenes.look({"r": method}, {"r": {"steps": 3}}, "test", 1, out, seed=0)
    assert len(asked) == 2  # plain and noisy, once
    assert [line["found"] for line in json_lines(out)] == [[[0.0, 1, 2, 3, 5, 0.1235]]] * 2


def test_windows_of_one_scale_are_told_of_objects_of_any_size() -> None:
    """Trees of 20 and of 40 pixels and windows of σ = 1 about them: both count, with boxes to scale."""
    boxes = torch.tensor([[0.0, 0.0, 20.0, 20.0], [100.0, 100.0, 120.0, 140.0]], dtype=torch.float64)
    trees = Objects(boxes, torch.zeros(2, dtype=torch.int64), torch.zeros(0, 4, dtype=torch.float64))
    centres = torch.tensor([[10.0, 10.0], [120.0, 110.0], [124.0, 110.0], [60.0, 60.0]], dtype=torch.float64)
    targets, said, fits = told_by_place(Looks(centres, torch.ones(4, dtype=torch.float64)), trees, 1)
    assert targets[:, 0].tolist() == [1, 1, 1, 0]
    assert fits.tolist() == [1, 1, 1, 0]
    two = math.log(2)
    expected = [[0, 0, 0, 0], [0, 0, 0, two], [0, -4 / 20, 0, two]]
    torch.testing.assert_close(said[:3], torch.tensor(expected), atol=1e-6, rtol=0)
