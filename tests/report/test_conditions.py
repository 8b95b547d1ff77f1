"""What is made of an image under each condition."""

import pytest
import torch

from scalechannels.data.frames import framed
from scalechannels.report.conditions import Condition, conditions, moved, picture


def test_sizes_cover_the_range_and_hold_its_ends_and_1() -> None:
    def sizes(*ends: float) -> list[float]:
        return [round(one.value, 3) for one in conditions(*ends) if one.group == "size"]

    assert sizes(0.25, 4) == [0.25, 0.354, 0.5, 0.707, 1, 1.414, 2, 2.828, 4]
    assert sizes(0.6, 0.8) == [0.6, 0.707, 0.8, 1]
    assert sizes(1, 1) == [1]
    assert [one.value for one in conditions(0.5, 2, [3.0]) if one.group == "size"] == [3.0]
    offsets = [one for one in conditions(1, 1) if one.group == "offset"]
    assert [one.value for one in offsets if one.scored("frames")] == [1 / 14, 1 / 7]
    assert [one.value for one in offsets if one.scored("crops")] == [1 / 14]


def test_crops_grow_with_their_object_and_frames_stay() -> None:
    image = torch.rand(1, 20, 30)
    for size, shape in ((0.5, (1, 10, 15)), (2.0, (1, 40, 60)), (1.0, (1, 20, 30))):
        assert picture(image, Condition("size", size), "crops", 20, 0).shape == shape
        assert picture(image, Condition("size", size), "frames", 20, 0).shape == (1, 20, 30)
    assert torch.equal(picture(image, Condition("size", 1.0), "frames", 20, 0), image)


@pytest.mark.parametrize(("number", "row", "column"), [(0, 7, 8), (1, 7, 12), (2, 11, 8), (3, 11, 12)])
def test_content_moves_along_both_axes(number: int, row: int, column: int) -> None:
    image = torch.zeros(1, 20, 20)
    image[0, 9, 10] = 1
    assert moved(image, 2, number).nonzero().tolist() == [[0, row, column]]


@pytest.mark.parametrize("kind", ["crops", "frames"])
def test_surroundings_leave_the_object_and_change_what_is_around_it(kind: str) -> None:
    image = torch.full((3, 24, 24), 0.9)
    edges, grey, clouds = (
        picture(image, Condition("surroundings", float(place)), kind, 24, 5) for place in range(3)
    )
    assert edges.shape == grey.shape == clouds.shape == (3, *((36, 36) if kind == "crops" else (24, 24)))
    assert torch.allclose(edges, torch.tensor(0.9))
    for one in (grey, clouds):
        assert torch.equal(framed(one, 12), framed(edges, 12))
        assert not torch.allclose(one[:, 0], edges[:, 0], atol=0.01)
    assert torch.all(grey[:, 0] == 0.5)
    assert clouds[:, 0].std() > 0.02
