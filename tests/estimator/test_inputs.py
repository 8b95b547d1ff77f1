"""No silent wrong answer: arrays of another type, range, colour or form than those of `fit` are refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers.bars import bars
from PIL import Image

IMAGES, LABELS = bars()
FLOATS = IMAGES / 255
COLOUR = np.repeat(IMAGES[..., None], 3, axis=3)
Quick = Callable[..., Any]


@pytest.mark.parametrize(
    ("fitted", "asked", "says"),
    [
        (IMAGES, FLOATS, "image 0 of X has values of type float, but fit had uint8, from 0 to 255: convert"),
        (FLOATS, IMAGES, "image 0 of X has values of type uint8, but fit had float, from 0 to 1: convert"),
        (IMAGES, IMAGES.astype(int), "values of type int64, but fit had uint8"),
        (FLOATS, FLOATS * 255, "values of X must be from 0 to 1, as those of type float are; image 0 has"),
        (FLOATS, FLOATS - 0.5, "values of X must be from 0 to 1.* has -0.5 to 0.5"),
        (FLOATS.astype(np.float32), 2 * FLOATS, "values of X must be from 0 to 1"),
        (IMAGES, COLOUR, "image 0 of X is colour, but fit had grey images"),
        (COLOUR, IMAGES, "image 0 of X is grey, but fit had colour images"),
        (IMAGES, IMAGES[0], r"but fit had images and not flat rows: give one image as X\[None\]"),
        (IMAGES, IMAGES.reshape(16, -1), "but fit had images and not flat rows"),
        (IMAGES.reshape(16, -1), IMAGES[:, :8, :8].reshape(16, -1), "64 features, but .* expecting 256"),
        (
            COLOUR,
            COLOUR[0],
            "is ambiguous: grey images of 3 pixels across, or one colour image.*need 8 pixels or more",
        ),
        (COLOUR, COLOUR.transpose(0, 3, 1, 2), "colours come last"),
        (COLOUR, COLOUR[..., [0, 1, 2, 0]], "put what is transparent on a background"),
        (IMAGES, [*IMAGES[:3], FLOATS[3]], "image 3 of X has values of type float, but fit had uint8"),
        (IMAGES, [*IMAGES[:3], IMAGES[3, 0]], "X must be"),
        (IMAGES, IMAGES[:0], "0 sample"),
        (IMAGES, IMAGES[None, None], r"X must be .* got the shape \(1, 1, 16, 16, 16\)"),
        (IMAGES, np.zeros((2, 0, 5), np.uint8), r"must be \(H, W\) or \(H, W, 3\); got the shape \(0, 5\)"),
        (IMAGES, [np.full((9, 9), "a")] * 2, "values of type str"),
    ],
)
def test_what_differs_from_fit_is_refused(quick: Quick, fitted: Any, asked: Any, says: str) -> None:
    classifier = quick(epochs=1).fit(fitted, LABELS)
    with pytest.raises(ValueError, match=says):
        classifier.predict(asked)


@pytest.mark.parametrize("mode", ["P", "YCbCr", "HSV", "CMYK"])
def test_pictures_whose_numbers_are_no_colours_are_refused(quick: Quick, mode: str) -> None:
    """The numbers of a palette's colours are of the type of grey values, those of a hue of that of red."""
    pictures = [Image.fromarray(image).convert("RGB").convert(mode) for image in IMAGES]
    with pytest.raises(ValueError, match=rf"image 0 of X is .* mode {mode}, .*: give image.convert\('RGB'\)"):
        quick(epochs=1).fit(pictures, LABELS)


def with_one(value: float) -> np.ndarray:
    damaged = FLOATS.copy()
    damaged[4, 3, 2] = value
    return damaged


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (IMAGES.astype(np.int64), r"which values of type int64 are black and white: give value_range"),
        (16 * FLOATS, r"must be from 0 to 1, as those of type float are; image 0 has .* give value_range"),
        ([*IMAGES[:15], FLOATS[15]], "X has images of the types float, uint8; give all in one"),
        ([*IMAGES[:15], COLOUR[15]], "X has grey and colour images"),
        (with_one(np.nan), "NaN"),
        (list(with_one(np.inf)), r"image 4 of X has values that are NaN or infinite"),
        ([[1, 2], [3]], "X must be .* it is no array"),
    ],
)
def test_what_nothing_can_be_learnt_from_is_refused(quick: Quick, given: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        quick(epochs=1).fit(given, LABELS[: len(given)])


@pytest.mark.parametrize(
    ("labels", "options", "says"),
    [
        (LABELS[:5], {}, "inconsistent numbers of samples"),
        (["a"] * 16, {}, "y must have two or more classes; got 1 class, 'a'"),
        (["a"] * 15 + ["b"], {}, "class 'b' has 1 image to train on; .* or validation_fraction=0"),
        (np.linspace(0, 1, 16), {}, "continuous"),
        (LABELS, {"validation_fraction": 1.0}, "validation_fraction must be 0 or more and below 1; got 1.0"),
        (LABELS, {"value_range": (1, 1)}, r"value_range must be \(low, high\) with low < high"),
        (LABELS, {"value_range": (0, 100)}, "must be from 0 to 100, as value_range says; image 0 has"),
    ],
)
def test_labels_and_parameters_that_do_not_fit(quick: Quick, labels: Any, options: dict, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        quick(epochs=1, **options).fit(IMAGES, labels)
    single = quick(epochs=1, validation_fraction=0).fit(IMAGES, ["a"] * 15 + ["b"])
    assert single.classes_.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "value_range"),
    [
        (IMAGES.astype(np.uint16) * 257, None),
        (IMAGES.astype(np.float32) / 255, None),
        (FLOATS, None),
        (IMAGES / 255 * 16, (0, 16)),
        (IMAGES.astype(int) - 100, (-100, 155)),
        (IMAGES, (0, 255)),
    ],
)
def test_the_range_is_what_is_meant(quick: Quick, given: Any, value_range: Any) -> None:
    """The same picture, however its values are written."""
    expected = quick().fit(IMAGES, LABELS)
    classifier = quick(value_range=value_range).fit(given, LABELS)
    assert np.allclose(classifier.predict_proba(given), expected.predict_proba(IMAGES), atol=2e-3)
    low, high = classifier.value_range_
    assert (given.min() - low) / (high - low) == pytest.approx(0, abs=1e-6)
    if value_range is not None:  # then the type may differ: what the numbers mean was said
        other = given.astype(np.float64)
        assert np.allclose(classifier.predict_proba(other), classifier.predict_proba(given), atol=1e-6)


def test_one_bit_is_black_and_white(quick: Quick) -> None:
    drawn = IMAGES > 50
    expected = quick().fit(drawn.astype(np.uint8) * 255, LABELS).predict_proba(drawn.astype(np.uint8) * 255)
    assert np.allclose(quick().fit(drawn, LABELS).predict_proba(drawn), expected, atol=1e-5)


def test_a_second_fit_forgets_the_first(quick: Quick) -> None:
    classifier = quick(epochs=1).fit(IMAGES.reshape(16, -1), LABELS).fit(COLOUR / 255, [1, 2] * 8)
    assert not hasattr(classifier, "n_features_in_")
    assert classifier.classes_.tolist() == [1, 2]
    assert classifier.value_range_ == (0, 1)
    assert classifier.predict(COLOUR / 255).shape == (16,)
