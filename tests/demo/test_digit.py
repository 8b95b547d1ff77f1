"""A drawing and a picture become the same digit, of MNIST's form, however large, dark or placed they are."""

import io
import math

import numpy as np
import pytest
import torch
from helpers.pictures import tiff
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from scalechannels.data.pictures import UnreadableImageError
from scalechannels.demo.digit import EXTENT, PEN, SIDE, NoDigitError, digit_from_picture, digit_from_strokes
from scalechannels.demo.looks import example

SEVEN = [[(0.2, 0.1), (0.8, 0.1), (0.45, 0.9)], [(0.35, 0.5), (0.7, 0.5)]]


def extent(digit: torch.Tensor) -> tuple[int, int]:
    rows, columns = ((digit > 64).any(axis).nonzero()[:, 0] for axis in (1, 0))
    return int(rows[-1] - rows[0]) + 1, int(columns[-1] - columns[0]) + 1


def centre(digit: torch.Tensor) -> tuple[float, float]:
    weights = digit.double() / digit.double().sum()
    places = torch.arange(SIDE).double()
    return float((weights.sum(1) * places).sum()), float((weights.sum(0) * places).sum())


def file_of(values: np.ndarray, kind: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(values).save(buffer, format=kind, **options)
    return buffer.getvalue()


def photo(side: int = 300, ink: int = 255, paper: int = 0, at: tuple[int, int] = (40, 60), zoom: float = 200):
    picture = Image.new("L", (side, side), paper)
    pen = ImageDraw.Draw(picture)
    for stroke in SEVEN:
        pen.line([(at[0] + zoom * x, at[1] + zoom * y) for x, y in stroke], fill=ink, width=round(zoom / 10))
    return np.array(picture)


def test_a_digit_has_mnists_form():
    digit = digit_from_strokes(SEVEN)
    assert digit.dtype == torch.uint8
    assert digit.shape == (28, 28)
    assert max(extent(digit)) in (EXTENT, EXTENT + 1)
    assert centre(digit) == pytest.approx((13.5, 13.5), abs=0.1)
    assert digit.max() == 255
    assert digit[0].max() == digit[:, -1].max() == 0
    soft = ((digit > 0) & (digit < 255)).float().mean()
    assert 0.03 < soft < 0.3  # edges are grey, as MNIST's are


@pytest.mark.parametrize("points", [[(0, 0), (0, 1)], [(0, 0), (0, 0.3), (0, 0.3), (0, 1)], [(0, 1), (0, 0)]])
def test_a_bar_is_a_round_ended_line_of_the_pens_width(points: list):
    ink = digit_from_strokes([points]).double().sum() / 255
    assert ink == pytest.approx(PEN * (EXTENT - PEN) + math.pi * (PEN / 2) ** 2, rel=0.01)


@settings(max_examples=20, deadline=None)
@given(
    zoom=st.floats(0.01, 1000),
    x=st.floats(-1000, 1000),
    y=st.floats(-1000, 1000),
)
def test_where_and_how_large_one_draws_does_not_matter(zoom: float, x: float, y: float):
    moved = [[(x + zoom * a, y + zoom * b) for a, b in stroke] for stroke in SEVEN]
    difference = digit_from_strokes(moved).int() - digit_from_strokes(SEVEN).int()
    assert difference.abs().float().mean() < 3  # rounding moves an edge here and there by a fine pixel


def test_a_dot_is_a_dot_and_nothing_is_an_error():
    for points in ([(0.3, 0.3)], [(0, 0), (5e-324, 0)]):  # the least number cannot be blown up
        assert 2 <= max(extent(digit_from_strokes([points]))) <= 4
    for nothing in ([], [[]]):
        with pytest.raises(NoDigitError, match="nothing is drawn yet"):
            digit_from_strokes(nothing)


def test_examples_have_mnists_amount_of_ink():
    """MNIST's mean is 33.8: a pen that is too wide or too thin would be new to the networks."""
    digits = torch.stack([digit_from_strokes(example(number)["strokes"]) for number in range(100)])
    assert float(digits.float().mean()) == pytest.approx(33.8, abs=3)


def test_examples_are_of_the_class_that_is_asked_for_and_differ():
    for label in range(10):
        assert example(5, label)["label"] == label
    assert example(5, 3) == example(5, 3)
    assert example(5, 3) != example(6, 3)
    assert {example(number)["label"] for number in range(60)} == set(range(10))
    for number, label in ((-1, None), (2**20, None), (0, 10), (0, -1)):
        with pytest.raises(ValueError, match="got"):
            example(number, label)
    points = [point for stroke in example(8, 8)["strokes"] for point in stroke]
    assert all(0 < side < 1 for point in points for side in point)


def test_a_picture_gives_the_digit_that_the_drawing_gives():
    drawn = digit_from_strokes(SEVEN).float()
    taken = digit_from_picture(file_of(photo())).float()
    assert max(extent(taken)) == EXTENT
    assert centre(taken) == pytest.approx((13.5, 13.5), abs=0.6)
    assert torch.corrcoef(torch.stack((drawn.flatten(), taken.flatten())))[0, 1] > 0.85


@pytest.mark.parametrize(
    "options",
    [
        {"ink": 20, "paper": 230},
        {"ink": 160, "paper": 90},
        {"at": (5, 10)},
        {"zoom": 120.0},
        {"side": 900, "zoom": 700.0},
    ],
    ids=str,
)
def test_paper_place_and_size_do_not_matter(options: dict):
    expected = digit_from_picture(file_of(photo())).float()
    taken = digit_from_picture(file_of(photo(**options))).float()
    assert (taken - expected).abs().mean() < 12


def test_uneven_paper_is_no_ink():
    noise = np.random.default_rng(0).integers(-18, 18, (300, 300))
    clean = digit_from_picture(file_of(photo(ink=30, paper=200))).float()
    noisy = digit_from_picture(file_of((photo(ink=30, paper=200) + noise).clip(0, 255).astype(np.uint8)))
    assert (noisy.float() - clean).abs().mean() < 12


def test_every_kind_of_file_is_read():
    expected = digit_from_picture(file_of(photo())).float()
    grey = photo()
    deep = (grey.astype(np.uint16)) * 257
    colour = np.stack([grey] * 3, 2)
    alpha = np.concatenate([255 - colour, grey[..., None]], 2)  # black ink on nothing
    palette, cmyk = io.BytesIO(), io.BytesIO()
    Image.fromarray(grey).convert("P").save(palette, "PNG")
    Image.fromarray(colour).convert("CMYK").save(cmyk, "TIFF")
    for file in (
        file_of(grey, "JPEG", quality=95),
        file_of(deep),
        file_of(colour),
        file_of(alpha),
        palette.getvalue(),
        cmyk.getvalue(),
    ):
        assert (digit_from_picture(file).float() - expected).abs().mean() < 8


def test_a_picture_in_lab_is_read():
    """It was the one request that was answered with an error of the server."""
    lightness = np.pad(photo()[..., None], ((0, 0), (0, 0), (0, 2)))  # and no colour
    taken = digit_from_picture(tiff(lightness, photometric=8)).float()
    assert (taken - digit_from_picture(file_of(photo())).float()).abs().mean() < 8


@pytest.mark.parametrize("side", [1, 2, 50])
def test_a_picture_without_an_object_says_so(side: int):
    with pytest.raises(NoDigitError, match="no digit"):
        digit_from_picture(file_of(np.full((side, side), 77, np.uint8)))


def test_one_pixel_in_the_middle_is_an_object():
    tiny = np.zeros((3, 3), np.uint8)
    tiny[1, 1] = 255
    assert math.isfinite(float(digit_from_picture(file_of(tiny)).float().mean()))


@pytest.mark.parametrize("file", [b"", b"no image at all", file_of(photo())[:200]])
def test_what_is_no_image_is_named(file: bytes):
    with pytest.raises(UnreadableImageError, match=r"empty|damaged, or not an image"):
        digit_from_picture(file)


def test_a_bomb_is_refused_before_it_unpacks():
    bomb = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(bomb, "PNG")
    assert len(bomb.getvalue()) < 100_000
    with pytest.raises(UnreadableImageError, match="more than 24,000,000") as caught:
        digit_from_picture(bomb.getvalue())
    assert "--max-pixels" not in str(caught.value)
