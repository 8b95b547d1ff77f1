"""What is measured of a candidate, on answers whose truth is known."""

from collections.abc import Iterator

import pytest
import torch

from scalechannels import ScaleGrid, fovlse
from scalechannels.network import Explanation
from scalechannels.report import trial
from scalechannels.report.conditions import Condition
from scalechannels.report.trial import answered, cost, summary, thinned

OWN = Condition("size", 1.0)


def test_many_bags_and_few_boots_are_balanced() -> None:
    """All are taken for bags: 96 % of the images, and half of the classes."""
    logits = torch.zeros(208, 2)
    logits[:, 0] = 2
    labels = torch.tensor([0] * 200 + [1] * 8)
    found = summary(OWN, Explanation(logits), labels, 2, 1.0)
    assert found.accuracy == pytest.approx(96.15, abs=0.01)
    assert (found.balanced, found.per_class) == (50, [100, 0])
    assert found.confusion == [[200, 0], [8, 0]]
    # By hand: p = 201/202 of 200 and 1/10 of 8.
    variance = (201 * 1 / 202**2 / 200 + 0.1 * 0.9 / 8) / 4
    assert found.margin == pytest.approx(196 * variance**0.5)
    sure = torch.tensor([2.0, 0.0]).softmax(0)[0]
    assert found.sure == pytest.approx(100 * float(sure))
    assert found.calibration == pytest.approx(abs(96.15 - found.sure), abs=0.01)
    assert summary(OWN, Explanation(logits), labels, 2, 4.0).sure < found.sure


def test_shifted_windows_are_looks_that_cost() -> None:
    grid = ScaleGrid(0.5, 2, ratio=2)
    plain, shifted = (cost(fovlse(grid, shifts=shifts))["multiplications"] for shifts in (0, 1))
    assert plain == cost(fovlse(ScaleGrid.of(1)))["multiplications"] * 3
    assert shifted == 5 * plain


def test_a_class_without_images_does_not_count() -> None:
    found = summary(OWN, Explanation(torch.eye(3)[:2]), torch.tensor([0, 1]), 3, 1.0)
    assert (found.balanced, found.accuracy) == (100, 100)


def test_answers_come_in_the_order_of_the_pictures() -> None:
    network = fovlse(ScaleGrid.of(0.5, 1, 2)).eval()
    pictures = [torch.rand(1, side, 30) for side in (30, 40, 30, 50, 40)]
    found = answered(network, pictures, "cpu")
    for index, picture in enumerate(pictures):
        said = network.explain(picture[None])
        assert torch.allclose(found.logits[index], said.logits[0], atol=1e-5)
        assert found.scales[index] == said.scales[0]


def test_very_many_images_are_thinned_out_evenly_and_no_further_than_needed() -> None:
    """One image more than are tested once halved the test, and doubled the variance of what it said."""
    assert thinned(7, 10) == list(range(7))
    assert thinned(0, 10) == []
    found = thinned(11, 10)
    assert (len(found), found[0], found[-1]) == (10, 0, 9)
    assert thinned(30, 10) == list(range(0, 30, 3))


def test_pictures_may_be_made_one_by_one_and_few_of_them_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    network = fovlse(ScaleGrid.of(0.5, 1, 2)).eval()
    sides = [30, 40, 50, 60, 30, 40, 50, 60, 30, 70] * 2
    pictures = [torch.rand(1, side, 30) for side in sides]
    expected = answered(network, pictures, "cpu")
    asked, explain = [], network.explain
    monkeypatch.setattr(network, "explain", lambda images: asked.append(images.numel()) or explain(images))
    monkeypatch.setattr(trial, "HELD", 4000)
    made = []

    def one_by_one() -> Iterator[torch.Tensor]:
        for picture in pictures:
            assert sum(one.numel() for one in made) - sum(asked) <= 4000
            made.append(picture)
            yield picture

    found = answered(network, one_by_one(), "cpu")
    assert torch.allclose(found.logits, expected.logits, atol=1e-5)
    assert len(asked) > 5
