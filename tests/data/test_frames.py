"""Frames keep the scale: nothing is resized to fit, the centre stays, and the edges go on."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scalechannels import Foveate, ScaleGrid
from scalechannels.data.frames import framed, reduced, simulated


def ramp(height: int, width: int) -> torch.Tensor:
    """Values that tell where a pixel came from."""
    return torch.arange(height * width, dtype=torch.float32).view(1, height, width)


@settings(max_examples=60, deadline=None)
@given(height=st.integers(1, 12), width=st.integers(1, 12), side=st.integers(1, 12))
def test_every_pixel_of_a_frame_is_one_of_the_image_at_the_same_distance(height, width, side) -> None:
    image, frame = ramp(height, width), framed(ramp(height, width), side)
    assert frame.shape == (1, side, side)
    for row in range(side):
        for column in range(side):
            # The centre of the frame sees the centre of the image, or half a pixel further to its end.
            y = min(max((2 * row - (side - 1) + height) // 2, 0), height - 1)
            x = min(max((2 * column - (side - 1) + width) // 2, 0), width - 1)
            assert frame[0, row, column] == image[0, y, x]


@pytest.mark.parametrize(("height", "width", "side"), [(9, 7, 21), (8, 8, 20), (31, 9, 9)])
def test_a_network_sees_the_same_in_the_frame_as_in_the_image(height: int, width: int, side: int) -> None:
    image = torch.rand(3, height, width)
    foveate = Foveate(ScaleGrid(0.25, 1, ratio=2), 8)
    assert torch.allclose(foveate(framed(image, side)[None]), foveate(image[None]), atol=1e-6)


def test_a_simulated_size_is_that_size_about_the_centre() -> None:
    y, x = torch.meshgrid(torch.arange(41.0) - 20, torch.arange(33.0) - 16, indexing="ij")
    image = torch.exp(-(x**2 + y**2) / (2 * 4.0**2))[None]  # a blob has a closed form at every size
    for size in (0.5, 0.84, 1.0, 1.7, 2.0):
        made = simulated(image, size, 49)
        v, u = torch.meshgrid(torch.arange(49.0) - 24, torch.arange(49.0) - 24, indexing="ij")
        wanted = torch.exp(-(u**2 + v**2) / (2 * (4.0 * size) ** 2))
        assert (made[0] - wanted).abs().max() < (0.08 if size < 1 else 0.02), size


def test_beyond_a_shrunken_image_its_edges_go_on() -> None:
    image = torch.zeros(1, 8, 8)
    image[:, :, 0] = 1.0  # a bright left edge, which a zero continuation would darken
    made = simulated(image, 0.25, 8)
    assert torch.allclose(made[0, :, :2], torch.ones(8, 2), atol=0.05)
    assert float(made[0, :, 6:].max()) < 0.05
    assert torch.allclose(simulated(torch.ones(3, 5, 9), 0.3, 11), torch.ones(3, 11, 11), atol=1e-6)


def test_simulated_values_stay_within_those_of_images() -> None:
    image = (torch.rand(1, 12, 12, generator=torch.Generator().manual_seed(0)) > 0.5).float()
    made = simulated(image, 3.0, 36)  # bicubic overshoots at edges
    assert (float(made.min()), float(made.max())) == (0.0, 1.0)


def test_a_reduction_keeps_the_centre_and_the_mean() -> None:
    y, x = torch.meshgrid(torch.arange(61.0) - 30, torch.arange(47.0) - 23, indexing="ij")
    image = torch.exp(-(x**2 + y**2) / (2 * 9.0**2))[None]
    for factor in (2, 3, 4):
        made = reduced(image, factor)
        assert made.shape == (1, -(-61 // factor), -(-47 // factor))
        assert torch.allclose(made, made.flip(1), atol=1e-5)  # still about its centre
        assert torch.allclose(made, made.flip(2), atol=1e-5)
        assert float(made.sum()) * factor**2 == pytest.approx(float(image.sum()), rel=0.01)
    assert torch.equal(reduced(image, 1), image)
    assert reduced(torch.full((3, 1, 1), 0.3), 5).flatten().tolist() == pytest.approx([0.3] * 3)
    with pytest.raises(ValueError, match="whole number, 1 or more; got 0"):
        reduced(image, 0)
