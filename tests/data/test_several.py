"""Several objects: one of the wanted class or none, apart where there is room, inside always."""

from __future__ import annotations

import pytest
import torch

from scalechannels.data import several as module
from scalechannels.data.anywhere import Pictures
from scalechannels.data.pictures import as_shown
from scalechannels.data.several import apart, several
from scalechannels.data.strokes import BOX, strokes

DIGITS = strokes(40, seed=3)


def squares() -> Pictures:
    """Objects that fill their boxes, of two classes: bright, and half as bright in one corner."""
    images = torch.full((2, 28, 28), 255, dtype=torch.uint8)
    images[1, :14, :14] = 0
    return Pictures(images, torch.tensor([0, 1]))


def test_every_second_image_has_one_of_the_wanted_class_where_the_set_says() -> None:
    made = several(squares(), 1, 30, 1.0, seed=2)
    assert made.labels.tolist() == [0, 1] * 15
    assert made.places is not None
    for image, label, place in zip(as_shown(made.images[:, 0]), made.labels, made.places, strict=True):
        if label:
            row, column = place.long().tolist()
            corner, middle = image[row - 10 : row - 3, column - 10 : column - 3], image[row + 3 : row + 10]
            assert corner.max() < 0.2  # the dark corner, which only the wanted class has
            assert middle[:, column + 3 : column + 10].min() > 0.8
        # Bright pixels: three whole boxes, or two and three quarters of one.
        assert image.sum() == pytest.approx(28**2 * (2.75 if label else 3), rel=0.03)


def test_boxes_lie_inside_and_apart_where_there_is_room() -> None:
    generator = torch.Generator().manual_seed(0)
    scales = 0.5 * 4 ** torch.rand(3, 500, generator=generator, dtype=torch.float64)
    offsets = apart(scales, 128, generator)
    halves = BOX * scales / 2
    assert (offsets.abs().amax(2) + halves <= 64).all()
    overlaps = 0
    for one in range(3):
        for other in range(one):
            between = (offsets[one] - offsets[other]).abs().amax(1) - halves[one] - halves[other]
            overlaps += int((between < 0).sum())
    assert overlaps < 0.01 * 1500
    assert len(offsets[0].unique(dim=0)) > 400


def test_where_no_try_has_room_the_least_overlap_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    placed = iter(torch.tensor([[[0, 0]], [[3, 0]], [[-9, 2]], [[1, 5]]]))
    monkeypatch.setattr(module, "drawn_offsets", lambda *_: next(placed))
    monkeypatch.setattr(module, "TRIES", 3)
    assert apart(torch.ones(2, 1, dtype=torch.float64), 64, torch.Generator())[1].tolist() == [[-9, 2]]


def test_seeds_and_backgrounds() -> None:
    one, again, other = (several(DIGITS, 3, 12, seed=seed) for seed in (5, 5, 6))
    assert torch.equal(one.images, again.images)
    assert not torch.equal(one.images, other.images)
    for background in ("noisy", "cluttered"):
        made = several(DIGITS, 3, 12, seed=5, background=background)  # type: ignore[arg-type]
        assert torch.equal(made.labels, one.labels)
        assert (made.images >= one.images - 1e-6).all()
        assert (made.images > one.images + 0.05).any()


def test_what_cannot_be_made_is_refused() -> None:
    with pytest.raises(ValueError, match="must have room for all of its objects"):
        several(DIGITS, 3, 10, 2.0, side=64)
    with pytest.raises(ValueError, match="objects of the class 3 and of others"):
        several(DIGITS[DIGITS.labels == 3], 3, 10)
