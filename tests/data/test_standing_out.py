"""What stands out of an image, and the same image with it at another size."""

import pytest
import torch
from helpers.on_ground import square

from scalechannels.data.frames import simulated
from scalechannels.data.standing_out import at_size, standing_out


@pytest.mark.parametrize(
    ("side", "row", "column", "offset"), [(12, 24, 24, 0), (20, 2, 30, 18), (30, 28, 0, 15)]
)
def test_an_object_is_measured_where_it_lies(side: int, row: int, column: int, offset: int) -> None:
    extent, off, centre = standing_out(square(side, 60, row, column))
    assert extent == pytest.approx(side / 60, abs=0.02)
    assert off == pytest.approx(offset / side, abs=0.06)
    assert centre == pytest.approx((row + (side - 1) / 2, column + (side - 1) / 2), abs=0.6)


def test_nothing_stands_out_of_noise_or_of_one_colour() -> None:
    noise = torch.rand(3, 40, 40, generator=torch.Generator().manual_seed(0))
    assert standing_out(noise) is None
    assert standing_out(torch.full((1, 30, 30), 0.4)) is None
    assert standing_out(torch.zeros(1, 1, 1)) is None


@pytest.mark.parametrize("size", [0.5, 1.0, 2.0])
def test_far_off_the_centre_an_object_keeps_its_place_as_far_as_it_is_inside(size: float) -> None:
    """A square of 12 pixels about (7.5, 33.5); of twice the size it would leave the image by four rows."""
    made = at_size(square(12, (48, 52), 2, 28), size)
    assert made.shape == (1, 48, 52)
    found = standing_out(made)
    assert found is not None
    assert found.extent * 52 == pytest.approx(12 * size, abs=2.1)  # its edges are soft
    assert found.centre == pytest.approx((11.5 if size == 2 else 7.5, 33.5), abs=1.1)


def test_what_is_larger_than_the_frame_is_centred() -> None:
    made = at_size(square(12, (48, 52), 6, 28), 5.0)[0]
    assert (made > 0.6).float().mean() > 0.99


@pytest.mark.parametrize("image", [square(12, (48, 52), 20, 16), torch.full((3, 20, 30), 0.3)])
def test_elsewhere_a_frame_is_rescaled_about_its_centre(image: torch.Tensor) -> None:
    """Also where an object is a little off it, or nothing stands out."""
    shape = (image.shape[1], image.shape[2])
    for size in (0.5, 2.0):
        assert torch.equal(at_size(image, size), simulated(image, size, shape))
