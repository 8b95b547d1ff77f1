"""How good a detector is: the threshold by hand, average precision beside pycocotools', ignored regions."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from benchmarks.detection_table import coco_precision
from scalechannels.data.boxes.labelled import LabelledImage
from scalechannels.detection import measuring
from scalechannels.detection.average_precision import Ranked
from scalechannels.detection.detector import Detection
from scalechannels.detection.measuring import Measured, calibrated, measure


def boxes(*corners: float) -> torch.Tensor:
    return torch.tensor([[at, 0.0, at + 10, 10.0] for at in corners], dtype=torch.float64).view(-1, 4)


def measured(right: list[float], wrong: list[float], objects: int) -> Measured:
    """Objects side by side; those found with these probabilities, and others elsewhere."""
    truth = boxes(*(20.0 * number for number in range(objects)))
    found = torch.cat((truth[: len(right)], boxes(*(-500.0 - 20 * number for number in range(len(wrong))))))
    scores = torch.tensor([*right, *wrong], dtype=torch.float64)
    there = Ranked(truth, torch.zeros(objects).long(), torch.ones(objects).double())
    return Measured(1.0, [Ranked(found, torch.zeros(len(scores)).long(), scores)], [there], pixels=1e6)


def test_the_threshold_lies_between_objects_and_false_alarms() -> None:
    nothing = torch.zeros(0, dtype=torch.float64)
    between = calibrated([measured([0.9] * 20, [0.6], 20)], nothing, 1.0)
    odds = [torch.tensor(one).logit() for one in (0.6, between, 0.9)]
    assert float(odds[1]) == pytest.approx(float((odds[0] + odds[2]) / 2), abs=0.01)
    # False alarms on pictures without objects count as those in the images do.
    assert calibrated([measured([0.9] * 20, [], 20)], torch.tensor([0.6]).double(), 1.0) == between
    # One in ten megapixels is allowed.
    assert calibrated([measured([0.9] * 20, [0.6], 20)], nothing, 10.0) < between
    assert calibrated([measured([1.0] * 20, [0.999] * 20, 20)], nothing, 1.0) == 0.95
    assert calibrated([measured([0.1], [], 20)], nothing, 1.0) == 0.5


@pytest.mark.parametrize("seed", range(3))
def test_average_precision_is_near_that_of_pycocotools(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    truth = boxes(*range(0, 800, 20))
    labels = torch.randint(2, (40,), generator=generator)
    moved = truth + 4 * torch.randn(40, 1, generator=generator).double()
    scores = torch.rand(40, generator=generator).double()
    one = Measured(1.0, [Ranked(moved, labels, scores)], [Ranked(truth, labels, torch.ones(40))])
    lines = torch.cat((moved, labels[:, None], scores[:, None]), 1).tolist()
    coco = coco_precision({0: {"found": lines}}, {0: {"boxes": truth.tolist(), "labels": labels.tolist()}})
    assert one.precision(2) == pytest.approx(coco, abs=0.02)  # it reads precision at 101 recalls


def test_boxes_follow_the_size_and_ignored_regions_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("L", (100, 60)).save(tmp_path / "a.png")
    edges, crowd = torch.tensor([[9.5, 9.5, 29.5, 29.5]]), torch.tensor([[49.5, 9.5, 89.5, 49.5]])
    image = LabelledImage(
        tmp_path / "a.png", 60, 100, True, edges.double(), torch.tensor([0]), crowd.double()
    )

    class Sees:
        def __init__(self, network: object) -> None:
            self.network = network

        def with_threshold(self, threshold: float) -> "Sees":
            return self

    inside = [
        (19.5, 19.5, 59.5, 59.5),
        (119.5, 29.5, 159.5, 69.5),
        (0.0, 80.0, 30.0, 110.0),
    ]  # at twice the size
    found = [Detection(box, 0, 0.9, 1.0, False, 0.9) for box in inside]
    seen = []
    monkeypatch.setattr(measuring, "look", lambda _, picture, reduce: seen.append(picture.shape) or found)
    network = type("Network", (), {"usage": {"reduce": 1}})()
    one = measure(Sees(network), [image], 2.0, grey=True)
    assert seen == [(1, 120, 200)]
    assert one.truth[0].boxes.tolist() == [[19.5, 19.5, 59.5, 59.5]]
    assert one.found[0].boxes.tolist() == [list(inside[0]), list(inside[2])]
    _, right = one.ranked()
    assert right.tolist() == [True, False]
