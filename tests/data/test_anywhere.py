"""Objects at any place: they are where the set says, as they are at the centre, and the same every time."""

from __future__ import annotations

import pytest
import torch

from scalechannels.data.anywhere import (
    BOX,
    DRAWN,
    PART,
    PARTS,
    SHARE,
    Pictures,
    _moved_at_once,
    _moved_one_by_one,
    anywhere,
    moved,
    noise,
)
from scalechannels.data.image_set import ImageSet
from scalechannels.data.pictures import BACKGROUND, as_shown
from scalechannels.data.strokes import strokes

DIGITS = strokes(20, seed=3)


def boxes(made: ImageSet) -> torch.Tensor:
    """x and y from and to (N, 4) of what is not background, in pixels."""
    ink = as_shown(made.images[:, 0]) > 0.05
    return torch.stack(
        [torch.cat([at.amin(0), at.amax(0)]) for at in (image.nonzero().double() for image in ink)]
    )


def test_an_object_is_where_its_place_and_size_say() -> None:
    made = anywhere(DIGITS, 60, (0.5, 2.0), seed=1)
    assert made.places is not None
    half = BOX * made.scales[:, None] / 2
    found = boxes(made)  # top, left, bottom, right
    assert (found[:, :2] >= made.places - half - 1).all()
    assert (found[:, 2:] <= made.places + half + 1).all()
    middle = (found[:, :2] + found[:, 2:]) / 2
    assert (
        (middle - made.places).abs() < 0.35 * half
    ).all()  # a 7 is not as wide to the left as to the right


def test_boxes_lie_inside_and_use_the_whole_image() -> None:
    made = anywhere(DIGITS, 400, 1.0, seed=2)
    assert made.places is not None
    assert (made.places - BOX / 2 >= -0.5).all()
    assert (made.places + BOX / 2 <= 63.5).all()
    assert (made.places.amin(0) == 13.5).all()
    assert (made.places.amax(0) == 49.5).all()
    assert anywhere(DIGITS, 3, 4.0).places.tolist() == [[31.5, 31.5]] * 3  # type: ignore[union-attr]


def test_moving_changes_nothing_but_the_place() -> None:
    made = anywhere(DIGITS, 30, (0.5, 1.5), seed=4)
    assert made.places is not None
    centred = DIGITS[torch.arange(30) % 20].render(made.scales, 64)
    for image, there, place in zip(made.images, centred, made.places, strict=True):
        row, column = (place - 31.5).long().tolist()
        back = image.roll((-row, -column), (1, 2))
        inside = slice(abs(row), 64 - abs(row)), slice(abs(column), 64 - abs(column))
        assert torch.allclose(back[0][inside], there[0][inside], atol=1e-6)


@pytest.mark.parametrize("move", [moved, _moved_one_by_one, _moved_at_once])
def test_images_are_moved_down_and_to_the_right_and_zeros_come_in(move) -> None:
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(30, 12, 12, generator=generator)
    offsets = torch.randint(-5, 6, (30, 2), generator=generator)
    expected = torch.zeros_like(images)
    for image, there, (down, right) in zip(images, expected, offsets.tolist(), strict=True):
        for row in range(max(0, down), min(12, 12 + down)):
            for column in range(max(0, right), min(12, 12 + right)):
                there[row, column] = image[row - down, column - right]
    assert torch.equal(move(images, offsets), expected)


def test_at_the_centre_nothing_but_the_place_differs() -> None:
    free, fixed = (anywhere(DIGITS, 25, seed=5, places=places) for places in ("anywhere", "centre"))  # type: ignore[arg-type]
    assert torch.equal(free.scales, fixed.scales)
    assert (fixed.places == 31.5).all()
    assert torch.allclose(fixed.images, DIGITS[torch.arange(25) % 20].render(fixed.scales, 64), atol=1e-6)


@pytest.mark.parametrize("background", ["plain", "noisy", "cluttered"])
def test_the_same_seed_gives_the_same_images_and_another_one_others(background: str) -> None:
    one, again, other = (
        anywhere(DIGITS, 25, seed=seed, background=background)  # type: ignore[arg-type]
        for seed in (5, 5, 6)
    )
    assert torch.equal(one.images, again.images)
    assert not torch.equal(one.images, other.images)
    assert one.images.amin() >= BACKGROUND - 1e-6
    assert one.images.amax() <= -BACKGROUND + 1e-6


def test_backgrounds_leave_the_object_and_change_the_rest() -> None:
    plain, noisy, cluttered = (
        anywhere(DIGITS, 25, 1.0, seed=7, background=kind)  # type: ignore[arg-type]
        for kind in ("plain", "noisy", "cluttered")
    )
    ink = as_shown(plain.images) > 0.99
    assert ink.any()
    for made in (noisy, cluttered):
        assert torch.equal(made.labels, plain.labels)
        assert torch.allclose(made.images[ink], plain.images[ink], atol=0.01)
    empty = as_shown(plain.images) < 0.01
    assert (noisy.images[empty] > BACKGROUND + 0.02).float().mean() > 0.5
    strewn = (cluttered.images[empty] > BACKGROUND + 0.1).float().mean()
    assert 0.01 < strewn < PARTS * PART**2 / 64**2
    assert (cluttered.images >= plain.images - 1e-6).all()


def test_clutter_shows_no_whole_object() -> None:
    small, large = (anywhere(DIGITS, 60, size, seed=8, background="cluttered") for size in (0.5, 1.5))
    for made, side in ((small, SHARE * BOX * 0.5), (large, PART)):
        alone = anywhere(DIGITS, 60, float(made.scales[0]), seed=8)
        strewn = ((made.images - alone.images).abs() > 0.02).sum((1, 2, 3))
        assert strewn.max() <= PARTS * (side + 1) ** 2


def test_noise_of_a_large_image_does_not_repeat() -> None:
    rows = noise(torch.empty(2, 600, 600), torch.Generator().manual_seed(0)).flatten(1)
    assert not torch.equal(rows[0, :1000], rows[1, :1000])
    assert len(rows[0].unique()) > 300_000 > DRAWN


def test_objects_come_again_elsewhere() -> None:
    made = anywhere(DIGITS, 45, 1.0)
    assert made.places is not None
    assert torch.equal(made.labels[20:40], made.labels[:20])
    assert not torch.equal(made.places[20:40], made.places[:20])


def test_pictures_are_drawn_as_in_mnist_large_scale() -> None:
    from scalechannels.data.mnist_large_scale import large_scale

    digits = torch.randint(256, (4, 28, 28), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    objects = Pictures(digits, torch.arange(4))
    made = anywhere(objects, 4, 4.0)  # no room to move
    assert torch.allclose(made.images, large_scale(digits, made.scales, 64), atol=1e-6)


def test_what_cannot_be_made_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one object"):
        anywhere(DIGITS, 0)
    with pytest.raises(ValueError, match="background must be one of"):
        anywhere(DIGITS, 3, background="striped")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="places must have the shape"):
        ImageSet(torch.zeros(2, 1, 4, 4), torch.zeros(2), torch.zeros(2), torch.zeros(2))
