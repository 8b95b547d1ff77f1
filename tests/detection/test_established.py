"""An established detector's training: its batches, and which rate is chosen; its losses need torchvision."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import detection_established, established_canvases, established_fcos
from benchmarks.detection_scenes import canvas_boxes
from benchmarks.established_canvases import FRAME, Drawn, enlarged, framed, jittered, shrunk
from scalechannels.data.pictures import BACKGROUND
from scalechannels.detection.training_windows import Digits


@pytest.fixture
def digits() -> Digits:
    return Digits(torch.rand(20, 28, 28), torch.arange(20) % 10)


@pytest.mark.parametrize("seed", range(8))
def test_boxes_follow_enlarged_and_shrunk_canvases(seed: int) -> None:
    """A white square of 28 pixels: where it is afterwards, as far as it was not cut off, is its box."""
    image = torch.zeros(1, 180, 180)
    image[:, 70:98, 90:118] = 1
    (target,) = canvas_boxes(torch.tensor([[[83.5, 103.5]]]), torch.tensor([[4]]))
    assert target["boxes"].tolist() == [[90, 70, 118, 98]]
    moved, target = jittered(image, target, torch.Generator().manual_seed(seed))
    assert max(moved.shape) <= FRAME
    rows, columns = (moved[0] > 0.5).nonzero(as_tuple=True)
    if len(target["labels"]):
        assert target["labels"].tolist() == [4]
        edges = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        torch.testing.assert_close(target["boxes"][0], torch.tensor(edges).float(), atol=1.1, rtol=0)
    else:
        assert (moved > 0.5).float().mean() < 0.5


def test_a_crop_of_an_enlarged_image_is_part_of_it() -> None:
    image = torch.rand(1, 40, 40, generator=torch.Generator().manual_seed(0))
    whole = shrunk(image, 97)  # the same resampling, of all of it
    torch.testing.assert_close(enlarged(image, 97, 30, 5, 50), whole[:, 5:55, 30:80], atol=1e-5, rtol=0)


def test_images_and_boxes_are_filled_up() -> None:
    targets = [
        {"boxes": torch.tensor([[1.0, 2, 3, 4], [5, 6, 7, 8]]), "labels": torch.tensor([7, 0])},
        {"boxes": torch.zeros(0, 4), "labels": torch.zeros(0, dtype=torch.int64)},
    ]
    made = framed([torch.ones(1, 180, 180), torch.ones(1, 90, 90)], targets)
    assert made.images.shape == (2, 1, FRAME, FRAME)
    assert (made.images == 1).sum((1, 2, 3)).tolist() == [180**2, 90**2]
    assert made.images[1, 0, 90:].unique().item() == pytest.approx(BACKGROUND, abs=1e-3)
    assert made.labels[0].tolist() == [7, 0, *[-1] * 23]
    assert made.boxes[0, :3].tolist() == [[1, 2, 3, 4], [5, 6, 7, 8], [0, 0, 0, 0]]
    assert (made.labels[1] == -1).all()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # workers are forked
def test_batches_do_not_depend_on_who_draws_them(digits: Digits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(established_canvases, "CANVASES", 2)
    drawn = Drawn(digits, seed=1, steps=3, jitter=True)
    alone, by_two = (list(drawn.ahead(workers, pinned=False)) for workers in (0, 2))
    for one, other, again in zip(alone, by_two, (drawn[0], drawn[1], drawn[2]), strict=True):
        assert all(torch.equal(a, b) and torch.equal(a, c) for a, b, c in zip(one, other, again, strict=True))
    assert not torch.equal(alone[0].images, alone[1].images)
    assert not torch.equal(drawn[0].images, Drawn(digits, seed=2, steps=3, jitter=True)[0].images)


def test_an_anchor_has_the_smallest_box_around_it_or_none() -> None:
    boxes = torch.tensor([[8.0, 8, 24, 24], [24, 8, 40, 24]])
    at = established_fcos.Anchors(boxes, torch.zeros(2), torch.full((2,), torch.inf), 1.5)
    given = torch.tensor(
        [[[0.0, 0, 32, 32], [4, 4, 28, 28], [0, 0, 0, 0]], [[0, 0, 64, 64], [0] * 4, [0] * 4]]
    )
    labels = torch.tensor([[3, 5, -1], [-1, -1, -1]])
    assert established_fcos.matched(given, labels, at).tolist() == [[1, -1], [-1, -1]]


def test_the_losses_are_those_of_torchvision() -> None:
    pytest.importorskip("torchvision")
    assert max(established_fcos.compared(0)) < 1e-5


def test_the_best_of_each_row_is_chosen() -> None:
    tried = [
        {"row": row, "optimiser": by, "rate": rate, "average_precision": value}
        for row, by, rate, value in (
            ("fcos", "adamw", 1e-3, 0.2),
            ("fcos", "sgd", 1e-2, 0.3),
            ("fcos, jitter", "adamw", 1e-3, 0.5),
        )
    ]
    chosen = {
        "fcos": {"optimiser": "sgd", "rate": 1e-2},
        "fcos, jitter": {"optimiser": "adamw", "rate": 1e-3},
    }
    assert detection_established.best(tried) == chosen


def test_no_training_is_begun_without_a_choice_after_the_time_or_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import benchmarks.established_training as training
    import scalechannels.detection.training as digits_module

    words = [
        "--chosen",
        str(tmp_path / "chosen.json"),
        "--out",
        str(tmp_path / "found.jsonl"),
        "--device",
        "cpu",
    ]
    with pytest.raises(SystemExit):
        detection_established.main(words)
    assert "run --choose first" in capsys.readouterr().err

    def begun(*_: Any, **__: Any) -> None:
        pytest.fail("it was begun")

    monkeypatch.setattr(training, "train", begun)
    monkeypatch.setattr(digits_module, "digits_of_one_size", lambda: None)
    (tmp_path / "chosen.json").write_text(json.dumps({"chosen": {}}))
    detection_established.main([*words, "--minutes", "-1"])
    assert "no training is begun after -1 minutes" in capsys.readouterr().out
    of_both = [
        {"row": "fcos", "seed": 0, "split": "test", "background": name, "scene": 5000} for name in "ab"
    ]
    (tmp_path / "found.jsonl").write_text("".join(json.dumps(line) + "\n" for line in of_both))
    detection_established.main([*words, "--scenes", "1", "--rows", "fcos", "--seeds", "0"])
    assert "fcos, seed 0: done before" in capsys.readouterr().out
