"""Scenes: what the ground truth says is in the image, and nowhere else."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from scalechannels.data.anywhere import Pictures
from scalechannels.data.scenes import Scene, scene
from scalechannels.data.strokes import BACKGROUND, BOX, strokes


def overlaps(boxes: Tensor) -> int:
    pairs = 0
    for i in range(len(boxes)):
        for j in range(i):
            x = min(boxes[i, 2], boxes[j, 2]) - max(boxes[i, 0], boxes[j, 0])
            y = min(boxes[i, 3], boxes[j, 3]) - max(boxes[i, 1], boxes[j, 1])
            pairs += bool(x > 0 and y > 0)
    return pairs


def equal(first: Scene, second: Scene) -> bool:
    return all(
        torch.equal(getattr(first, name), getattr(second, name))
        for name in ("image", "boxes", "labels", "sizes")
    )


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(0, 25), top=st.floats(0.5, 2.5))
def test_boxes_lie_inside_do_not_overlap_and_have_side_28_times_the_size(
    seed: int, count: int, top: float
) -> None:
    made = scene(count, seed, height=400, width=500, sizes=(0.5, top))
    assert made.image.shape == (1, 400, 500)
    assert len(made.boxes) == len(made.labels) == len(made.sizes) == count
    assert overlaps(made.boxes) == 0
    x0, y0, x1, y1 = made.boxes.unbind(1)
    assert torch.all(made.boxes[:, :2] >= -0.5)
    assert torch.all(x1 <= 499.5)
    assert torch.all(y1 <= 399.5)
    assert torch.allclose(x1 - x0, BOX * made.sizes)
    assert torch.allclose(made.centres, torch.stack(((y0 + y1) / 2, (x0 + x1) / 2), 1))
    assert torch.allclose(y1 - y0, BOX * made.sizes)
    assert torch.all((made.sizes >= 0.5) & (made.sizes <= top))


def test_every_object_is_at_its_box_and_nothing_is_elsewhere() -> None:
    digits = strokes(15, 3, "test")
    made = scene(15, 3, height=400, width=600, sizes=(0.5, 3.0))
    rest = made.image[0].clone()
    for box, label, size in zip(made.boxes, made.labels, made.sizes, strict=True):
        middle = (box[:2] + box[2:]) / 2
        # Rendered again on the whole image about the middle of the box: one digit of that class fits.
        of_class = digits[torch.nonzero(digits.labels == label)[:, 0]]
        again = of_class.render(float(size), 600, middle.expand(len(of_class), 2))[:, 0, :400]
        x0, y0 = (box[:2].ceil().long()).tolist()
        x1, y1 = (box[2:].floor().long() + 1).tolist()
        difference = (again - made.image[0])[:, y0:y1, x0:x1].abs().amax((1, 2)).min()
        assert difference < 1e-4
        rest[y0:y1, x0:x1] = BACKGROUND
    assert (rest - BACKGROUND).abs().max() < 1e-6


def test_same_arguments_same_scene_and_other_seed_other_scene() -> None:
    assert equal(scene(5, 1, background="textured"), scene(5, 1, background="textured"))
    assert not equal(scene(5, 1), scene(5, 2))


def test_sizes_are_log_uniform() -> None:
    sizes = torch.cat([scene(20, seed, height=600, width=600, sizes=(0.5, 2.0)).sizes for seed in range(20)])
    assert (sizes < 1).double().mean() == pytest.approx(0.5, abs=0.08)  # uniform ones: a third


def test_backgrounds_vary_and_stay_darker_than_ink() -> None:
    images = {kind: scene(0, 4, background=kind).image for kind in ("plain", "noisy", "textured")}
    assert images["plain"].std() < 1e-6
    assert images["noisy"].std() > 0.04
    assert images["textured"].std() > 0.04
    neighbours = {k: (v[..., 1:] - v[..., :-1]).std() / v.std() for k, v in images.items() if k != "plain"}
    assert neighbours["noisy"] > 1 > 0.5 > neighbours["textured"]
    for image in images.values():
        assert image.max() <= 0.1
        assert image.min() >= BACKGROUND - 1e-6
    assert scene(10, 4, background="textured").image.max() > 0.7


def test_objects_of_ones_own_are_drawn_once_each_before_any_again() -> None:
    objects = strokes(4, 8)
    made = scene(8, 5, objects=objects, sizes=(0.5, 1.0))
    assert sorted(made.labels.tolist()) == sorted(objects.labels.tolist() * 2)


def test_mnist_like_images_serve_as_objects() -> None:
    images = torch.zeros(3, 28, 28, dtype=torch.uint8)
    images[:, 8:20, 8:20] = 255  # a square of 12 pixels: what should be there is known
    made = scene(6, 6, objects=Pictures(images, torch.tensor([7, 8, 9])), sizes=(1.0, 3.0))
    assert sorted(made.labels.tolist()) == [7, 7, 8, 8, 9, 9]
    for box, size in zip(made.boxes, made.sizes, strict=True):
        x, y = ((box[:2] + box[2:]) / 2).tolist()
        reach = 6 * float(size)
        row = made.image[0, round(y)]
        assert row[round(x)] > 0.7
        assert row[round(x - reach + 2 * float(size))] > 0
        assert row[round(x - reach - 2 * float(size))] < 0
        assert row[round(x + reach + 2 * float(size))] < 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": -1}, "count must not be negative"),
        ({"sizes": (2.0, 1.0)}, "sizes must be a range"),
        ({"sizes": (0.0, 1.0)}, "sizes must be a range"),
        ({"sizes": (1.0, 20.0)}, "needs 560 pixels, but the scene has 512 x 768"),
        ({"background": "plian"}, "plain, noisy, textured; got 'plian'"),
        ({"count": 200, "sizes": (3.0, 4.0)}, "no place for object .* fewer objects, smaller sizes"),
        ({"seed": -1}, r"seed must be at least 0 and below 2\^30"),
    ],
)
def test_bad_arguments_are_named(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scene(**arguments)


def test_no_objects_to_draw_from_is_refused() -> None:
    with pytest.raises(ValueError, match="objects is empty"):
        scene(3, objects=Pictures(torch.zeros(0, 28, 28), torch.zeros(0, dtype=torch.int64)))


def test_a_picture_lies_behind_the_objects_darker_than_ink() -> None:
    picture = torch.rand(200, 300, generator=torch.Generator().manual_seed(0))
    made = scene(3, 5, height=200, width=300, sizes=(0.5, 1.0), background=picture)
    plain = scene(3, 5, height=200, width=300, sizes=(0.5, 1.0))
    assert torch.equal(made.boxes, plain.boxes)
    empty = scene(0, 5, height=200, width=300, sizes=(0.5, 1.0), background=picture)
    assert float(empty.image.min()) == pytest.approx(BACKGROUND, abs=1e-3)
    assert float(empty.image.max()) == pytest.approx(0.1, abs=1e-3)
    assert made.image.max() > 0.5
    with pytest.raises(ValueError, match=r"must have the scene's 200 x 300 pixels; got \(300, 200\)"):
        scene(3, 5, height=200, width=300, sizes=(0.5, 1.0), background=picture.T)
