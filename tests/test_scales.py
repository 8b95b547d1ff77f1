"""ScaleGrid: exact numbers of scales, exact values, frozen, and clear about bad input."""

import copy
import math
import pickle
import re
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scalechannels import ScaleGrid
from scalechannels.scales import QUARTER_OCTAVE


def test_the_papers_grid_has_exactly_17_scales_with_exact_octaves():
    grid = ScaleGrid(0.5, 8, ratio=2**0.25)
    assert len(grid) == 17
    assert grid.factors[::4] == (0.5, 1.0, 2.0, 4.0, 8.0)
    assert (grid.minimum, grid.maximum) == (0.5, 8)
    for low, high in zip(grid.factors, grid.factors[1:], strict=False):
        assert high / low == pytest.approx(2**0.25, rel=1e-14)


@given(
    steps=st.integers(0, 60),
    low=st.floats(1e-3, 1e3),
    ratio=st.sampled_from([2**0.25, 2 ** (1 / 3), 2**0.5, 1.05, 1.1, 2, 3.7]),
)
@settings(deadline=None, max_examples=200)
def test_the_number_of_scales_has_no_off_by_one(steps: int, low: float, ratio: float):
    high = low * ratio**steps
    grid = ScaleGrid(low, high, ratio=ratio)
    assert len(grid) == steps + 1
    assert grid.minimum == low
    assert grid.maximum == pytest.approx(high, rel=1e-12)
    assert list(grid) == sorted(set(grid))


def test_a_grid_is_a_sequence_and_a_value():
    grid = ScaleGrid(1, 4, ratio=2)
    assert list(grid) == [1.0, 2.0, 4.0]
    assert grid == ScaleGrid.of(1, 2, 4)
    assert grid != ScaleGrid.of(1, 2)
    assert hash(grid) == hash(ScaleGrid.of(1, 2, 4))
    assert grid[1] == 2
    assert grid[1:] == ScaleGrid.of(2, 4)
    assert 4 in grid
    assert grid.index(4) == 2
    assert repr(grid) == "ScaleGrid.of(1, 2, 4)"
    torch.testing.assert_close(grid.scales, torch.tensor([1.0, 2.0, 4.0]))


def test_a_single_scale_is_a_floating_grid_too():
    grid = ScaleGrid(2, 2, ratio=2)
    assert len(grid) == 1
    assert grid.scales.dtype == torch.get_default_dtype()


def test_a_grid_is_frozen_and_survives_copying():
    grid = ScaleGrid(0.5, 8, ratio=2**0.25)
    with pytest.raises(FrozenInstanceError, match="factors"):
        grid.factors = (1.0,)
    assert copy.deepcopy(grid) == grid
    assert pickle.loads(pickle.dumps(grid)) == grid


def test_a_grid_from_sizes_holds_the_training_size_and_a_margin_on_both_sides():
    grid = ScaleGrid.from_sizes(training=28, deployment=(14, 112), window=28, ratio=2, margin=2)
    # Sizes 14, 28, 56, 112 in a window of 28 are the scales 1/2 … 4; two more at each end.
    assert grid.factors == pytest.approx((0.125, 0.25, 0.5, 1, 2, 4, 8, 16), rel=1e-12)
    assert ScaleGrid.from_sizes(28, (14, 112), window=28, ratio=2, margin=0).factors == pytest.approx(
        (0.5, 1, 2, 4)
    )
    assert ScaleGrid.from_sizes(56, (14, 20), window=28, ratio=2, margin=0).maximum == pytest.approx(2)


@given(st.floats(2, 200), st.floats(2, 200), st.floats(1, 10), st.integers(0, 3))
@settings(deadline=None, max_examples=50)
def test_a_grid_from_sizes_covers_them(training: float, low: float, span: float, margin: int):
    grid = ScaleGrid.from_sizes(training, (low, low * span), window=32, margin=margin)
    step = QUARTER_OCTAVE**margin
    assert grid.minimum * step <= min(training, low) / 32 * (1 + 1e-6)
    assert grid.maximum / step >= max(training, low * span) / 32 * (1 - 1e-6)
    assert any(math.isclose(scale, training / 32, rel_tol=1e-9) for scale in grid)


@pytest.mark.parametrize(
    "numbers",
    [
        np.array([1, 2, 4]),
        np.array([1, 2, 4], dtype=np.float16),
        torch.tensor([1, 2, 4]),
        torch.tensor([1.0, 2.0, 4.0], requires_grad=True),
        [np.array(1), torch.tensor(2, dtype=torch.bfloat16), Fraction(4)],
    ],
)
def test_numbers_of_numpy_and_torch_are_numbers(numbers):
    low, _, high = numbers
    for grid in (ScaleGrid.of(*numbers), ScaleGrid(low, high, ratio=numbers[1])):
        assert grid.factors == (1.0, 2.0, 4.0)
        assert {type(factor) for factor in grid} == {float}


@pytest.mark.parametrize("number", [np.int64, np.float64, torch.tensor])
def test_sizes_of_numpy_and_torch_lose_nothing(number):
    grid = ScaleGrid.from_sizes(
        number(200), (number(50), number(800)), window=number(56), ratio=number(2), margin=number(1)
    )
    assert grid == ScaleGrid.from_sizes(200, (50, 800), window=56, ratio=2, margin=1)
    assert {type(factor) for factor in grid} == {float}
    assert len(ScaleGrid.from_sizes(28, np.array([14, 56]), ratio=2, margin=0)) == 3


@pytest.mark.parametrize(
    ("arguments", "ratio", "message"),
    [
        ((2, 1), 2, r"minimum must not exceed maximum; got 2.* > 1"),
        ((1, 4), 1, r"must exceed 1.*got 1"),
        ((1, 4), 0.5, r"must exceed 1.*got 0.5"),
        ((1, 4), math.nan, r"must exceed 1.*got nan"),
        ((1, 4), math.inf, r"must exceed 1.*got inf"),
        ((0, 4), 2, r"positive and finite; got 0"),
        ((-1, 4), 2, r"positive and finite; got -1"),
        ((1, math.inf), 2, r"positive and finite.*inf"),
        ((1, math.nan), 2, r"positive and finite.*nan"),
        (
            (1, 5),
            2,
            "scale, 5, is not the smallest, 1, times a whole power of the ratio 2; take 4 or 8 as the",
        ),
    ],
)
def test_bad_ranges_say_what_was_given_and_what_is_accepted(arguments, ratio, message):
    with pytest.raises(ValueError, match=message):
        ScaleGrid(*arguments, ratio=ratio)


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ((), "at least one scale"),
        ((0, 1), r"positive and finite; got \(0, 1\)"),
        ((1, -2), r"positive and finite; got \(1, -2\)"),
        ((2, 1), r"strictly ascending; got \(2, 1\)"),
        ((1, 1), r"strictly ascending; got \(1, 1\)"),
        (("1", 2), "positive and finite"),
        ((True, 2), "positive and finite"),
        ((np.True_, 2), "positive and finite"),
        ((torch.tensor(True), 2), "positive and finite"),
        ((np.float64("nan"), 2), "positive and finite"),
        ((torch.tensor(math.inf),), "positive and finite"),
        ((np.str_("1"),), "positive and finite"),
        ((1j,), "positive and finite"),
        ((10**400,), "positive and finite"),
        ((np.array([1.0, 2.0]),), "positive and finite"),
        ((torch.ones(1),), "positive and finite"),
        ((None,), "positive and finite"),
    ],
)
def test_bad_factors_are_named(factors, message):
    with pytest.raises(ValueError, match=message):
        ScaleGrid.of(*factors)


@pytest.mark.parametrize(
    ("training", "deployment", "options", "message"),
    [
        (0, (14, 28), {}, "positive numbers of pixels; got 0"),
        (28, (28, 14), {}, r"from low to high; got \(28, 14\)"),
        (28, (14, 28), {"margin": -1}, "margin whole and >= 0"),
        (28, (14, 28), {"window": 0}, "window must be >= 1"),
        (28, (14, 28), {"ratio": 1}, "ratio > 1"),
        (28, (14, 28), {"margin": 1.5}, "margin whole and >= 0"),
        (28, (14, math.nan), {}, "positive numbers of pixels"),
        (True, (14, 28), {}, "positive numbers of pixels; got True"),
        (28, (np.True_, 28), {}, "positive numbers of pixels"),
    ],
)
def test_bad_sizes_are_named(training, deployment, options, message):
    with pytest.raises(ValueError, match=message):
        ScaleGrid.from_sizes(training, deployment, **options)


def test_the_nearest_maxima_that_an_error_names_are_accepted() -> None:
    with pytest.raises(ValueError, match="as the largest") as caught:
        ScaleGrid(0.5, 90.5097, ratio=2**0.25)
    named = re.findall(r"[\d.]+", str(caught.value).split("take")[1])
    assert [len(ScaleGrid(0.5, float(maximum), ratio=2**0.25)) for maximum in named] == [31, 32]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ScaleGrid(1, 2, ratio=1 + 1e-12), "may have 1024 scales; got"),
        (lambda: ScaleGrid(1e-300, 1e300, ratio=2), "so far apart; got 1e-300 to 1e\\+300"),
        (lambda: ScaleGrid(1, 1e300, ratio=1e200), "take 1e\\+200 or inf"),
        (lambda: ScaleGrid.of(*range(1, 2000)), "may have 1024 scales; got 2e\\+03"),
        (lambda: ScaleGrid.from_sizes(28, (1e-300, 1e300)), "may have 1024 scales; got"),
        (lambda: ScaleGrid.from_sizes(28, (14, 112), margin=10**9), "may have 1024 scales; got 2e\\+09"),
        (lambda: ScaleGrid.from_sizes(28, (28, 28), ratio=1e300), "positive and finite"),
    ],
)
def test_absurd_grids_are_refused_before_they_are_made(make, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()
