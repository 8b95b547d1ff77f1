"""How good a detector is: the threshold by hand, COCO's average precision, ignored regions, large images."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from scalechannels.data.boxes.labelled import LabelledImage
from scalechannels.detection import measuring
from scalechannels.detection.average_precision import Ranked, average_precision
from scalechannels.detection.coco_precision import coco_precision
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
def test_coco_precision_is_near_an_exact_one(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    truth = boxes(*range(0, 800, 20))
    labels = torch.randint(2, (40,), generator=generator)
    moved = truth + 2 * torch.randn(40, 1, generator=generator).double()
    scores = torch.rand(40, generator=generator).double()
    found, there = [Ranked(moved, labels, scores)], [Ranked(truth, labels, torch.ones(40))]
    coco = coco_precision(found, there)
    of_class = [
        [[Ranked(*(part[one.labels == label] for part in one)) for one in pair] for pair in (found, there)]
        for label in (0, 1)
    ]
    for iou, average in ((0.5, coco.half), (0.75, coco.three_quarters)):
        exact = [average_precision(*pair, iou=iou) for pair in of_class]
        assert sum(exact) / 2 == pytest.approx(average, abs=0.02)  # it reads precision at 101 recalls
    assert 0 < coco.mean < coco.half
    assert coco.three_quarters < coco.half


def test_hundreds_of_objects_in_an_image_count() -> None:
    """COCO would take the best hundred."""
    truth = Ranked(boxes(*range(0, 6000, 20)), torch.zeros(300).long(), torch.linspace(0.9, 0.1, 300))
    assert coco_precision([truth], [truth]).half == pytest.approx(1)


def test_nothing_found_is_a_precision_of_zero() -> None:
    nothing = Ranked(boxes(), torch.zeros(0).long(), torch.zeros(0))
    assert coco_precision([nothing], [Ranked(boxes(5), torch.zeros(1).long(), torch.ones(1))]) == (0, 0, 0)
    with pytest.raises(ValueError, match="needs at least one object"):
        coco_precision([nothing], [nothing])


def test_boxes_follow_the_size_and_ignored_regions_do_not_count(tmp_path: Path) -> None:
    Image.new("L", (100, 60)).save(tmp_path / "a.png")
    edges, crowd = torch.tensor([[9.5, 9.5, 29.5, 29.5]]), torch.tensor([[49.5, 9.5, 89.5, 49.5]])
    image = LabelledImage(
        tmp_path / "a.png", 60, 100, True, edges.double(), torch.tensor([0]), crowd.double()
    )

    # At twice the size:
    inside = [(19.5, 19.5, 59.5, 59.5), (119.5, 29.5, 159.5, 69.5), (0.0, 80.0, 30.0, 110.0)]
    seen = []

    def find(picture: torch.Tensor) -> Ranked:
        seen.append(picture.shape)
        return Ranked(torch.tensor(inside).double(), torch.zeros(3).long(), torch.full((3,), 0.9))

    one = measure(find, [image], 2.0, grey=True)
    assert seen == [(1, 120, 200)]
    assert one.truth[0].boxes.tolist() == [[19.5, 19.5, 59.5, 59.5]]
    assert one.found[0].boxes.tolist() == [list(inside[0]), list(inside[2])]
    _, right = one.ranked()
    assert right.tolist() == [True, False]


def test_images_that_grow_too_large_are_counted_and_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "MOST_PIXELS", 100 * 60)
    Image.new("L", (100, 60)).save(tmp_path / "a.png")
    image = LabelledImage(
        tmp_path / "a.png", 60, 100, True, boxes(5), torch.tensor([0]), torch.zeros(0, 4).double()
    )
    nothing = Ranked(boxes(), torch.zeros(0).long(), torch.zeros(0))
    twice = measure(lambda _: nothing, [image], 2.0, grey=True)
    assert (twice.too_large, twice.images, twice.objects) == (1, [], 0)
    assert [len(part) for part in twice.ranked()] == [0, 0]
    monkeypatch.setattr(measuring, "MOST_PIXELS", 10)
    own = measure(lambda _: nothing, [image], 1.0, grey=True)  # at their own size all are looked at
    assert (own.too_large, own.images, own.objects) == (0, [image], 1)
