"""Foveate: equal to the reference everywhere, true to ideal signals, and its conventions pinned."""

import math
import re
from typing import get_args

import pytest
import torch
import torch.nn.functional as F
from helpers import reference
from helpers.signals import blob, pattern
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from scalechannels import Foveate, ScaleGrid
from scalechannels.sampling import PADDING, Outside, resample

GRID = ScaleGrid.of(0.5, 1, 2**0.25, 3.7)
OUTSIDE = get_args(Outside)


def random_images(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def coordinates(height: int, width: int) -> Tensor:
    """An image that holds its own coordinates: channel 0 the rows, channel 1 the columns."""
    rows, columns = (torch.arange(side, dtype=torch.float64) for side in (height, width))
    return torch.stack(torch.meshgrid(rows, columns, indexing="ij"))[None]  # (1, 2, H, W)


# The reference


@pytest.mark.parametrize("outside", OUTSIDE)
@pytest.mark.parametrize("antialias", [False, True], ids=["bilinear", "antialias"])
@pytest.mark.parametrize("size", [(9, 9), (8, 8), (12, 7), (5, 14), (3, 2), (1, 6), (1, 1)], ids=str)
def test_windows_equal_the_reference(size: tuple[int, int], antialias: bool, outside: str):
    images = random_images(1, 2, *size)
    options = {"outside": outside, "antialias": antialias, "fill": 0.3}
    expected = reference.foveate(images, GRID, 5, **options)
    torch.testing.assert_close(Foveate(GRID, 5, **options)(images), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("outside", OUTSIDE)
@pytest.mark.parametrize("antialias", [False, True], ids=["bilinear", "antialias"])
def test_windows_around_given_centres_equal_the_reference(antialias: bool, outside: str):
    images = random_images(3, 1, 8, 11)
    centres = torch.tensor([[2.25, 7.5], [-1.5, 12.0], [3.5, 5.0]], dtype=torch.float64)
    options = {"outside": outside, "antialias": antialias, "fill": -0.2}
    expected = reference.foveate(images, GRID, 4, centres=centres, **options)
    torch.testing.assert_close(Foveate(GRID, 4, **options)(images, centres), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", [{"antialias": True}, {"blur": 0.8}, {"antialias": True, "blur": 0.5}])
@pytest.mark.parametrize("size", [(90, 85), (81, 104)], ids=str)
@pytest.mark.parametrize("outside", OUTSIDE)
def test_pixels_that_no_window_reaches_are_not_looked_at(options, outside: str, size: tuple[int, int]):
    """They cost nothing, and what is in them does not matter: zero times infinity would."""
    images, grid = random_images(2, 1, *size), ScaleGrid.of(0.7, 2.5)
    foveate = Foveate(grid, 5, outside=outside, fill=0.3, **options)
    if "blur" not in options:
        expected = reference.foveate(images, grid, 5, outside=outside, fill=0.3, **options)
        torch.testing.assert_close(foveate(images), expected, rtol=0, atol=1e-12)
    beyond = images.clone()
    beyond[:, :, 0], beyond[:, :, -1] = math.inf, math.nan
    torch.testing.assert_close(foveate(beyond), foveate(images), rtol=0, atol=0)
    around = torch.tensor([[side - 1 for side in size]], dtype=torch.float64).expand(2, 2) / 2
    torch.testing.assert_close(foveate(images), foveate(images, around), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "options", [{"antialias": True}, {"blur": 1.0}, {"antialias": True, "blur": 2.0}], ids=str
)
@pytest.mark.parametrize("outside", OUTSIDE)
def test_channels_multiplied_octave_by_octave_are_those_multiplied_at_once(
    options, outside: str, monkeypatch
):
    """Fine channels see the middle of the image alone, but not where centres are given."""
    torch.manual_seed(0)
    foveate = Foveate(ScaleGrid(0.25, 8, ratio=2**0.5), 7, outside=outside, **options)
    image = torch.randn(1, 2, 61, 90, dtype=torch.float64)
    ways = ({}, {"centres": torch.tensor([[3.0, 80.0]], dtype=torch.float64)})
    octaves = [foveate(image, **way) for way in ways]
    monkeypatch.setattr("scalechannels.sampling._parts", lambda *_: [(slice(None), None)])
    for windows, way in zip(octaves, ways, strict=True):
        torch.testing.assert_close(windows, foveate(image, **way), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 2**-7)], ids=str
)
@pytest.mark.parametrize("antialias", [False, True], ids=["bilinear", "antialias"])
def test_every_type_equals_the_reference_to_its_own_precision(
    dtype: torch.dtype, tolerance: float, antialias: bool
):
    images = random_images(2, 3, 20, 17, dtype=dtype)
    stack = Foveate(GRID, 4, antialias=antialias)(images)
    assert stack.dtype == dtype
    expected = reference.foveate(images, GRID, 4, antialias=antialias)
    error = (stack.double() - expected).abs().max() / expected.abs().max()
    assert error <= tolerance


def test_half_precision_modules_keep_exact_coordinates():
    """A bfloat16 coordinate near 100 is off by half a pixel; `.to(bfloat16)` must not reach the lattice."""
    images = random_images(1, 1, 200, 200, dtype=torch.bfloat16)
    foveate = Foveate(ScaleGrid.of(2**0.25, 6.727), 28)
    before = foveate(images)
    torch.testing.assert_close(foveate.to(torch.bfloat16)(images), before, rtol=0, atol=0)


@given(
    height=st.integers(1, 14),
    width=st.integers(1, 14),
    channels=st.integers(1, 3),
    window=st.integers(1, 5),
    sigma=st.floats(0.2, 9),
    outside=st.sampled_from(OUTSIDE),
    antialias=st.booleans(),
)
@settings(deadline=None, max_examples=60)
def test_any_size_scale_and_channels_equal_the_reference(
    height: int, width: int, channels: int, window: int, sigma: float, outside: str, antialias: bool
):
    images = random_images(1, channels, height, width)
    grid = ScaleGrid.of(sigma)
    options = {"outside": outside, "antialias": antialias, "fill": 0.7}
    stack = Foveate(grid, window, **options)(images)
    assert stack.shape == (1, 1, channels, window, window)
    torch.testing.assert_close(stack, reference.foveate(images, grid, window, **options), rtol=0, atol=1e-10)


@given(sigma=st.floats(0.2, 9), row=st.floats(-30, 30), column=st.floats(-30, 30))
@settings(deadline=None, max_examples=30)
def test_a_constant_image_stays_constant(sigma: float, row: float, column: float):
    centres = torch.tensor([[row, column]], dtype=torch.float64)
    for antialias in (False, True):
        for blur in (None, 0.5):
            foveate = Foveate(ScaleGrid.of(sigma), 6, antialias=antialias, blur=blur)
            stack = foveate(torch.full((1, 1, 9, 7), 0.6, dtype=torch.float64), centres)
            torch.testing.assert_close(stack, torch.full_like(stack, 0.6), rtol=0, atol=1e-12)


# Ideal signals


@pytest.mark.parametrize("sigma", [0.5, 2**-0.25, 1.0, 2**0.25, 2.0, 3.3])
def test_a_blob_of_size_sigma_times_a_in_channel_sigma_equals_size_a_in_channel_1(sigma: float):
    """The two windows differ by no more than the two interpolation errors, Σ |f''| / 8 of each image."""
    small, n = blob(8.0, row=2.0, column=-3.0), 28
    large = small.scaled(sigma)
    seen = Foveate(ScaleGrid.of(sigma), n)(large.image(150, 141))[0, 0, 0]
    plain = Foveate(ScaleGrid.of(1.0), n)(small.image(150, 141))[0, 0, 0]
    bound = large.bilinear_error + small.bilinear_error
    assert bound < 0.021  # of a blob of height 1
    assert (seen - plain).abs().max() <= bound
    assert (seen - small.window(1.0, n)).abs().max() <= large.bilinear_error


def test_the_bound_of_the_interpolation_error_is_sharp():
    """In the middle of four pixels at a blob's top the error reaches 97 % of the bound, so it is tight."""
    signal = blob(8.0)
    window = Foveate(ScaleGrid.of(1.0), 1)(signal.image(40, 40))  # the centre lies between the pixels
    error = (window - signal.window(1.0, 1)).abs().item()
    assert 0.97 * signal.bilinear_error < error <= signal.bilinear_error


# Conventions


@pytest.mark.parametrize("size", [(40, 40), (41, 38), (35, 53)], ids=str)
@pytest.mark.parametrize("n", [7, 8])
def test_convention_output_pixel_j_looks_at_c_plus_sigma_times_j_minus_half_n_minus_1(size, n: int):
    """Read from an image of coordinates, which bilinear interpolation reproduces exactly."""
    grid = ScaleGrid.of(0.5, 1, 2**0.5, 4)
    stack = Foveate(grid, n)(coordinates(*size))[0]  # (S, 2, n, n)
    for sigma, (rows, columns) in zip(grid, stack, strict=True):
        steps = sigma * (torch.arange(n, dtype=torch.float64) - (n - 1) / 2)
        for seen, axis in ((rows, 0), (columns.T, 1)):
            expected = ((size[axis] - 1) / 2 + steps)[:, None].expand(n, n)
            torch.testing.assert_close(seen, expected, rtol=0, atol=1e-11)


def test_convention_scale_1_is_the_plain_central_crop_where_h_minus_n_is_even():
    images = random_images(2, 3, 12, 17)
    even = Foveate(ScaleGrid.of(1.0), 6)(images[..., :16])[:, 0]
    torch.testing.assert_close(even, images[:, :, 3:9, 5:11], rtol=0, atol=1e-13)
    odd = Foveate(ScaleGrid.of(1.0), 6)(images)[:, 0]  # 17 − 6 is odd: half way between two crops
    halfway = (images[:, :, 3:9, 5:11] + images[:, :, 3:9, 6:12]) / 2
    torch.testing.assert_close(odd, halfway, rtol=0, atol=1e-13)


def test_convention_resizing_to_a_rounded_size_and_cropping_differs():
    """Rounding H/σ changes the scale, and rounding the crop moves the centre: both are visible."""
    images = pattern(4.0).image(112, 112)
    sigma, n = 2**0.75, 28
    ours = Foveate(ScaleGrid.of(sigma), n)(images)[0, 0, 0]
    side = round(112 / sigma)
    resized = F.interpolate(images, size=(side, side), mode="bilinear", align_corners=False)
    start = (side - n) // 2
    cropped = resized[0, 0, start : start + n, start : start + n]
    truth = pattern(4.0).window(sigma, n)
    bound = pattern(4.0).bilinear_error
    assert (ours - truth).abs().max() <= bound
    assert (cropped - truth).abs().max() > 1.5 * bound


def test_convention_aligning_corners_differs():
    """With align_corners=True the image would be stretched so that corner pixels, not pixel areas, meet."""
    images, n = coordinates(31, 31), 7
    ours = Foveate(ScaleGrid.of(31 / n), n)(images)[0, 0]  # the window that covers the image
    areas = F.interpolate(images, size=(n, n), mode="bilinear", align_corners=False)[0]
    corners = F.interpolate(images, size=(n, n), mode="bilinear", align_corners=True)[0]
    torch.testing.assert_close(ours, areas, rtol=0, atol=1e-12)
    assert (ours - corners).abs().max() > 1.5


def test_convention_centres_are_rows_and_columns_in_pixel_coordinates():
    images = random_images(2, 1, 9, 13)
    centres = torch.tensor([[3.0, 8.0], [6.0, 2.0]], dtype=torch.float64)
    stack = Foveate(ScaleGrid.of(1.0), 3)(images, centres)[:, 0]
    torch.testing.assert_close(stack[0], images[0, :, 2:5, 7:10], rtol=0, atol=1e-12)
    torch.testing.assert_close(stack[1], images[1, :, 5:8, 1:4], rtol=0, atol=1e-12)
    whole = torch.tensor([[4, 6], [4, 6]])  # whole numbers are welcome
    default = Foveate(GRID, 3)(images)
    torch.testing.assert_close(Foveate(GRID, 3)(images, whole), default, rtol=0, atol=1e-12)


@pytest.mark.parametrize("antialias", [False, True], ids=["bilinear", "antialias"])
def test_convention_outside_the_image(antialias: bool):
    """One row 1 2 3 4 seen with two pixels to spare on each side."""
    row = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64).expand(1, 1, 4, 4)

    def seen(outside: str, fill: float = 0.0) -> list[float]:
        foveate = Foveate(ScaleGrid.of(1.0), 8, outside=outside, fill=fill, antialias=antialias)
        return [round(value, 10) for value in foveate(row)[0, 0, 0, 4].tolist()]

    assert seen("border") == [1, 1, 1, 2, 3, 4, 4, 4]
    assert seen("reflect") == [3, 2, 1, 2, 3, 4, 3, 2]
    assert seen("constant") == [0, 0, 1, 2, 3, 4, 0, 0]
    assert seen("constant", fill=9.0) == [9, 9, 1, 2, 3, 4, 9, 9]
    padded = F.pad(row, (2, 2, 0, 0), mode="reflect")[0, 0, 0].tolist()
    assert seen("reflect") == padded  # the edge pixel is not repeated


def test_convention_antialiasing_differs_from_bilinear_on_a_fine_texture():
    """A checkerboard seen from afar: single pixels of it by bilinear sampling, its mean by the triangle."""
    board = (torch.arange(65)[:, None] + torch.arange(65)) % 2
    grid, images = ScaleGrid.of(4.0), board.double()[None, None]
    assert (Foveate(grid, 7)(images) - 0.5).abs().min() == 0.5  # every sample hits a pixel: black or white
    assert (Foveate(grid, 7, antialias=True)(images) - 0.5).abs().max() < 1e-12


def test_convention_antialiasing_equals_bilinear_up_to_scale_1():
    images = random_images(1, 1, 20, 20)
    grid = ScaleGrid.of(0.5, 0.8, 1.0)
    torch.testing.assert_close(
        Foveate(grid, 9, antialias=True)(images), Foveate(grid, 9)(images), rtol=0, atol=1e-12
    )


# Gradients, compilation, export


@pytest.mark.parametrize("outside", OUTSIDE)
@pytest.mark.parametrize("options", [{}, {"antialias": True}, {"blur": 0.5}], ids=str)
def test_gradients_of_images_and_centres(options, outside: str):
    """Against finite differences. The centres lie off the pixels, where interpolation has a kink."""
    foveate = Foveate(ScaleGrid.of(0.55, 1.13, 2.31), 3, outside=outside, fill=0.4, **options)
    images = random_images(2, 1, 6, 5).requires_grad_()
    centres = torch.tensor([[2.307, 2.191], [3.023, 1.717]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(foveate, (images, centres), atol=1e-6)


def test_autocast_does_not_touch_the_lattice():
    images = random_images(1, 1, 50, 50, dtype=torch.float32)
    for antialias in (False, True):
        foveate = Foveate(GRID, 12, antialias=antialias)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            inside = foveate(images)
        torch.testing.assert_close(inside, foveate(images), rtol=0, atol=0)


@pytest.mark.parametrize("options", [{}, {"outside": "reflect"}, {"antialias": True, "blur": 0.6}], ids=str)
def test_export_keeps_batch_height_and_width_dynamic(options):
    foveate = Foveate(GRID, 6, **options).eval()
    sizes = dict.fromkeys((0, 2, 3), torch.export.Dim.DYNAMIC)
    program = torch.export.export(foveate, (torch.randn(2, 1, 20, 24),), dynamic_shapes=(sizes,))
    for shape in ((2, 1, 20, 24), (5, 1, 33, 18), (3, 1, 4, 50)):
        images = torch.randn(*shape)
        torch.testing.assert_close(program.module()(images), foveate(images), rtol=0, atol=1e-6)


# Bad input


@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        (torch.randn(28, 28), ValueError, r"must have the shape \(B, C, H, W\); got \(28, 28\)"),
        (torch.randn(1, 28, 28), ValueError, r"must have the shape.*\(1, 28, 28\)"),
        (torch.zeros(1, 1, 8, 8, dtype=torch.uint8), TypeError, "must be floating; got torch.uint8. Convert"),
        (torch.randn(0, 1, 8, 8), ValueError, r"not be empty; got \(0, 1, 8, 8\)"),
        (torch.randn(1, 1, 0, 8), ValueError, r"not be empty"),
        (torch.randn(1, 1, 8, 8).numpy(), TypeError, r"torch.Tensor \(B, C, H, W\); got ndarray"),
    ],
)
def test_bad_images_say_what_was_given_and_what_is_accepted(images, error, message):
    with pytest.raises(error, match=message):
        Foveate(GRID, 4)(images)


@pytest.mark.parametrize("shape", [(2,), (3, 2), (2, 3), (2, 2, 1)], ids=str)
def test_bad_centres_are_named(shape):
    with pytest.raises(ValueError, match=r"centres must be \(2, 2\), .*; got"):
        Foveate(GRID, 4)(torch.randn(2, 1, 8, 8), torch.zeros(shape))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"window": 0}, ValueError, "window must be a whole number of at least 1; got 0"),
        ({"window": 2.5}, ValueError, "whole number of at least 1; got 2.5"),
        ({"outside": "zeros"}, ValueError, re.escape(f"one of {get_args(Outside)}; got 'zeros'")),
        *(
            ({"blur": blur}, ValueError, f"blur must be None or positive, .* up to 784, .*; got {blur}")
            for blur in (0.0, 785.0)
        ),
        ({"blur": math.inf}, ValueError, "got inf"),
        ({"grid": [1, 2, 4]}, TypeError, r"must be a ScaleGrid, such as ScaleGrid.of\(1, 2, 4\); got list"),
    ],
)
def test_bad_arguments_say_what_was_given_and_what_is_accepted(arguments, error, message):
    with pytest.raises(error, match=message):
        Foveate(**{"grid": GRID, **arguments})


def test_resample_gives_any_rectangle_of_samples():
    """The whole image, for sliding windows: samples at spacing σ about the centre, more columns than rows."""
    images = coordinates(21, 33)
    rows, columns = resample(images, ScaleGrid.of(2.0), (9, 15))[0, 0]
    torch.testing.assert_close(rows[:, 0], 10 + 2 * torch.arange(-4.0, 5.0, dtype=torch.float64))
    torch.testing.assert_close(columns[0], 16 + 2 * torch.arange(-7.0, 8.0, dtype=torch.float64))


def test_a_convention_that_grid_sample_does_not_know_goes_the_weighted_way(monkeypatch) -> None:
    """So that one more is one more way for `inside` to bring a pixel back."""
    image = random_images(1, 2, 9, 12)
    expected = Foveate(GRID, 7, outside="reflect")(image)
    monkeypatch.delitem(PADDING, "reflect")
    torch.testing.assert_close(Foveate(GRID, 7, outside="reflect")(image), expected)
