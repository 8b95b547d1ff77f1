"""Built-in digits: exact rescaling, the same set everywhere, nothing outside the box, and learnable."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from scalechannels.data.strokes import (
    BACKGROUND,
    BOX,
    EDGE,
    SEGMENTS,
    TEMPLATES,
    Strokes,
    catmull_rom,
    strokes,
    template,
)


def slow_image(digit: Strokes, scale: float, size: int, centre: tuple[float, float]) -> Tensor:
    """The same picture from the definition: every pixel, every segment, in float64."""
    image = torch.empty(size, size, dtype=torch.float64)
    half_width = float(digit.half_widths[0])

    def step(t: float) -> float:
        t = min(max(t + 0.5, 0.0), 1.0)
        return 6 * t**5 - 15 * t**4 + 10 * t**3

    for row in range(size):
        for column in range(size):
            p = torch.tensor([column - centre[0], row - centre[1]], dtype=torch.float64) / (BOX * scale)
            start, end = digit.segments[0].unbind(1)
            along = end - start
            t = (((p - start) * along).sum(1) / along.square().sum(1).clamp_min(1e-12)).clamp(0, 1)
            d = float((p - start - t[:, None] * along).norm(dim=1).min())
            ink = step((half_width - d) / EDGE) + step((half_width + d) / EDGE) - 1
            grey = 255 * ink / (2 * step(half_width / EDGE) - 1)
            image[row, column] = 2 / math.pi * math.atan(0.02 * (grey - 128))
    return image


@pytest.mark.parametrize(("scale", "size"), [(0.5, 17), (1.0, 28), (1.3, 30), (4.0, 40)])
def test_rendering_equals_the_definition(scale: float, size: int) -> None:
    digit = strokes(10, seed=3)[2:3]
    centre = ((size - 1) / 2 + 0.3, (size - 1) / 2 - 0.6)
    image = digit.render(scale, size, torch.tensor([centre]))
    assert image.shape == (1, 1, size, size)
    assert image.dtype == torch.float32
    assert (image[0, 0] - slow_image(digit, scale, size, centre)).abs().max() < 1e-5


@settings(max_examples=15, deadline=None)
@given(scale=st.floats(0.3, 4), seed=st.integers(0, 1000))
def test_doubling_the_scale_gives_the_same_values_at_corresponding_points(scale: float, seed: int) -> None:
    digits = strokes(10, seed)
    small, large = digits.render(scale, 57), digits.render(2 * scale, 113)
    assert small.max() > 0.5
    assert (small - large[:, :, ::2, ::2]).abs().max() < 1e-5


def test_moving_the_centre_by_whole_pixels_moves_the_image() -> None:
    digits = strokes(10, seed=4)
    middle = torch.full((10, 2), 27.5)
    moved = digits.render(1.0, 56, middle + torch.tensor([5.0, -3.0]))  # 5 to the right, 3 up
    assert (moved[:, :, :-3, 5:] - digits.render(1.0, 56)[:, :, 3:, :-5]).abs().max() < 1e-5


def test_one_scale_each_equals_one_call_each() -> None:
    digits = strokes(6, seed=5)
    scales = torch.tensor([0.5, 0.8, 1.0, 2.2, 4.0, 7.9])
    together = digits.render(scales, 64)
    for index, scale in enumerate(scales):
        assert (together[index] - digits[index : index + 1].render(float(scale), 64)[0]).abs().max() < 1e-5


def test_intensities_follow_mnist_large_scale_and_nothing_leaves_the_box() -> None:
    digits = strokes(500, seed=6)
    images = digits.render(2.0, 72)  # the box is 56 pixels, 8 pixels around it
    assert images.min() == pytest.approx(-0.763, abs=1e-3)
    assert torch.all(images.amax((1, 2, 3)) > 0.7)
    assert images.max() <= 0.7626
    outside = images.clone()
    outside[:, :, 8:64, 8:64] = BACKGROUND
    assert torch.all(outside == torch.tensor(BACKGROUND))
    inked = (images > 0).flatten(1).double().mean(1) * 72**2 / 56**2
    assert 0.02 < inked.min() < inked.max() < 0.4


def test_same_seed_same_set_and_a_smaller_set_is_its_beginning() -> None:
    whole, part = strokes(95, seed=7), strokes(33, seed=7)
    assert torch.allclose(whole.segments[:33], part.segments, rtol=0, atol=1e-12)
    assert torch.equal(whole.half_widths[:33], part.half_widths)
    assert torch.equal(whole.labels[:33], part.labels)


def test_the_set_of_a_seed_is_pinned() -> None:
    digits = strokes(3, seed=0)
    assert digits.labels.tolist() == PINNED_LABELS
    assert digits.segments[0, 0, 0].tolist() == pytest.approx(PINNED_POINT, abs=1e-12)


PINNED_LABELS = [8, 4, 6]
PINNED_POINT = [-0.043771648776600613, -0.011592432592718468]


def test_splits_and_seeds_differ_and_global_randomness_is_untouched() -> None:
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    sets = [strokes(20, seed, split) for seed in (0, 1) for split in ("train", "validation", "test")]
    assert torch.equal(before, torch.random.get_rng_state())
    points = torch.stack([digits.segments.flatten() for digits in sets])
    assert len(torch.unique(points[:, 0])) == len(sets)


def test_every_ten_hold_each_class_once_in_varying_order() -> None:
    blocks = strokes(200, seed=8).labels.view(20, 10)
    assert torch.equal(blocks.sort(1).values, torch.arange(10).expand(20, 10))
    assert len(torch.unique(blocks, dim=0)) > 15


def test_all_ways_of_writing_occur() -> None:
    plain = strokes(600, seed=9, variation=0)
    for label, ways in enumerate(TEMPLATES):
        shapes = plain.segments[plain.labels == label]
        assert len(torch.unique(shapes.flatten(1).mul(1e6).round(), dim=0)) == len(ways)


def test_templates_fill_their_segments_and_curves_pass_through_their_points() -> None:
    weights = catmull_rom(5, torch.arange(5, dtype=torch.float64))
    assert torch.allclose(weights, torch.eye(5, dtype=torch.float64))
    for label, ways in enumerate(TEMPLATES):
        for way in range(len(ways)):
            points, weights = template(label, way)
            ends = weights @ points
            assert ends.shape == (SEGMENTS, 2, 2)
            assert torch.all((ends[:, 1] - ends[:, 0]).norm(dim=1) > 0.02)
            assert torch.allclose(weights.sum(2), torch.ones(SEGMENTS, 2, dtype=torch.float64))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0}, "count must be at least 1; got 0"),
        ({"count": 5, "seed": -1}, r"seed must be at least 0 and below 2\^30"),
        ({"count": 5, "seed": 2**30}, r"seed must be at least 0 and below 2\^30"),
        ({"count": 5, "split": "tset"}, "train, validation, test; got 'tset'"),
        ({"count": 5, "variation": 1.5}, "variation must be in"),
    ],
)
def test_bad_arguments_are_named(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        strokes(**arguments)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, torch.tensor([1.0, -2.0])])
def test_bad_scales_are_refused(scale: float | Tensor) -> None:
    with pytest.raises(ValueError, match="scale must be positive and finite"):
        strokes(2).render(scale)


def test_bad_sizes_centres_and_indices_are_refused() -> None:
    digits = strokes(2)
    with pytest.raises(ValueError, match="size must be at least 1"):
        digits.render(1.0, 0)
    with pytest.raises(ValueError, match=r"centre must have shape \(2, 2\)"):
        digits.render(1.0, 28, torch.zeros(3, 2))
    with pytest.raises(TypeError, match="slice or a tensor"):
        digits[0]  # type: ignore[index]


def test_a_digit_in_a_corner_of_a_large_image() -> None:
    digits = strokes(4, seed=10)
    image = digits.render(1.0, 1000, torch.full((4, 2), 20.0))
    assert (image[:, :, :40, :40] - digits.render(1.0, 40, torch.full((4, 2), 20.0))).abs().max() < 1e-5
    assert torch.all(image[:, :, 40:] == torch.tensor(BACKGROUND))


@pytest.mark.slow
def test_a_small_network_learns_the_digits_but_not_at_once() -> None:
    torch.manual_seed(0)
    train, test = strokes(4000), strokes(2000, split="test")
    images, labels = train.render(1.0, BOX), train.labels
    network = nn.Sequential(
        nn.Conv2d(1, 16, 3, stride=2), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 36, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=6 * 62)
    for _ in range(6):
        for batch in torch.randperm(len(labels)).split(64)[:62]:
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(images[batch]), labels[batch]).backward()
            optimizer.step()
            schedule.step()
    network.eval()
    with torch.no_grad():
        accuracy = (network(test.render(1.0, BOX)).argmax(1) == test.labels).double().mean()
    assert 0.98 <= accuracy < 1
