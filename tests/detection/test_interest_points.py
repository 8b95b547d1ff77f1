"""Points of interest on signals whose blobs have a known place and size."""

import pytest
import torch
from helpers.signals import blob, ellipse

from scalechannels.detection.interest_points import _smoothed, interest_points, normalised, parabola
from scalechannels.scale_space import smooth


@pytest.mark.parametrize("size", [2.0, 3.3, 5.0, 8.0, 12.0, 20.0])
def test_a_gaussian_blob_is_found_at_its_place_with_its_size(size: float) -> None:
    image = blob(size, row=3.3, column=-7.2).image(301, 261)[0]
    found = interest_points(image, threshold=0.02)
    assert len(found.sigmas) == 1
    assert found.sigmas[0] == pytest.approx(size, rel=0.1)
    assert torch.allclose(found.centres[0], torch.tensor([153.3, 122.8]).double(), atol=0.03 * size + 0.05)
    assert found.strengths[0] == pytest.approx(1 / 2, rel=0.07)


def test_scaling_the_image_scales_the_points() -> None:
    signal = ellipse(5.0, 3.0, 0.4, row=4.0, column=6.0)
    before, after = (
        interest_points(s.image(401, 401)[0], threshold=0.1) for s in (signal, signal.scaled(2.0))
    )
    assert len(before.sigmas) == len(after.sigmas) > 0
    assert torch.allclose(after.sigmas, 2 * before.sigmas, rtol=0.05)
    assert torch.allclose(after.centres - 200, 2 * (before.centres - 200), atol=0.6)


def test_bright_blobs_by_their_strength_inside_the_range() -> None:
    image = (
        blob(4.0, 1.0, -40, -40).image(201, 201)
        + blob(4.0, -0.8, 40, 40).image(201, 201)
        + blob(10.0, 0.6, 40, -40).image(201, 201)
    )[0]
    for picture, expected in ((image, [(60, 60), (140, 60)]), (-image, [(140, 140)])):
        found = interest_points(picture, threshold=0.01, largest=20)
        strongest = found.centres[: len(expected)].round().long().tolist()
        assert [tuple(place) for place in strongest] == expected
        assert bool((found.strengths.diff() <= 0).all())
    assert len(interest_points(image, largest=6, threshold=0.1).sigmas) == 1
    assert len(interest_points(image, smallest=6, threshold=0.1).sigmas) == 1


@pytest.mark.parametrize("shape", [(1, 1), (1, 30), (5, 5), (16, 300)])
def test_small_and_empty_images_have_no_points_and_no_errors(shape: tuple[int, int]) -> None:
    found = interest_points(torch.zeros(1, *shape))
    assert found.centres.shape == (0, 2)
    assert found.sigmas.shape == found.strengths.shape == (0,)


def test_the_normalised_laplacian_of_a_parabola_is_exact() -> None:
    x = torch.arange(9, dtype=torch.float64) - 4
    image = (x[:, None] ** 2 + 3 * x[None] ** 2 + x[:, None] * x[None])[None]  # L_xx = 2, L_yy = 6, L_xy = 1
    assert normalised(image, torch.tensor([2.0]))[0, 4, 4] == pytest.approx(-4 * 8)


def test_the_parabola_finds_its_maximum() -> None:
    low, here, high = (-((torch.tensor([x]) - 0.3) ** 2) for x in (-1.0, 0.0, 1.0))
    assert parabola(low, here, high) == pytest.approx(0.3)
    flat = torch.ones(1)
    assert parabola(flat, flat, flat) == 0


def test_what_is_given_wrongly_is_named() -> None:
    image = torch.zeros(1, 9, 9)
    with pytest.raises(ValueError, match=r"the image must be grey, \(1, H, W\)"):
        interest_points(image.repeat(3, 1, 1))
    with pytest.raises(ValueError, match="scales must be positive and finite"):
        interest_points(image, smallest=0)


def test_the_fast_smoothing_is_that_of_scale_space() -> None:
    image = torch.randn(1, 40, 33, generator=torch.Generator().manual_seed(0))
    for variance in (0.0, 0.4, 2.0, 300.0):
        assert torch.allclose(_smoothed(image, variance), smooth(image, variance), atol=1e-3)
