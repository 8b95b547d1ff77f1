"""Equalised blur: every channel sees as much detail, counted in its window's pixels."""

import pytest
import torch
from helpers.signals import pattern
from torch import Tensor

from scalechannels import Foveate, ScaleGrid
from scalechannels.scale_space import smooth


def measured_variance(foveate: Foveate, side: int) -> Tensor:
    """The variance of every channel's sampling kernel in squared window pixels: (S,).

    A kernel of mean p and variance v turns the image x² into p² + v, so the surplus over the squared position
    is the variance itself.
    """
    places = torch.arange(side, dtype=torch.float64) - (side - 1) / 2
    images = torch.stack([places, places**2])[None, :, :, None].expand(1, 2, side, side)
    first, second = foveate(images)[0].unbind(1)  # (S, n, n) each
    scales = torch.tensor(foveate.grid.factors, dtype=torch.float64)
    return (second - first**2).mean((1, 2)) / scales**2


@pytest.mark.parametrize("antialias", [False, True], ids=["bilinear", "antialias"])
def test_equalised_blur_gives_every_channel_the_same_variance(antialias: bool):
    grid, target = ScaleGrid(0.5, 4, ratio=2**0.25), 0.8
    before = measured_variance(Foveate(grid, 28, antialias=antialias), 400)
    after = measured_variance(Foveate(grid, 28, antialias=antialias, blur=target), 400)
    one = grid.index(1.0)
    assert before[one].abs() < 1e-10  # a plain crop: sharp
    assert before[one + 1] > 0.08  # and its neighbour is not, which is what the paper noticed
    assert before.max() < target
    # Interpolation blur differs from pixel to pixel, and what is added follows its mean near the window.
    torch.testing.assert_close(after, torch.full_like(after, target), rtol=0.03, atol=0)
    assert (after[one] - after[one + 1]).abs() < 0.1 * (before[one] - before[one + 1]).abs()


def test_equalised_blur_leaves_channels_that_are_already_beyond_it():
    grid = ScaleGrid.of(0.5, 1, 2)
    plain = measured_variance(Foveate(grid, 8), 100)
    after = measured_variance(Foveate(grid, 8, blur=0.4), 100)
    assert plain[0] > 0.4  # σ = 1/2 magnifies the interpolation triangle: about 4/6 squared window pixels
    torch.testing.assert_close(after[0], plain[0], rtol=0, atol=1e-9)
    torch.testing.assert_close(after[1:], torch.full_like(after[1:], 0.4), rtol=0, atol=0.02)


def test_equalised_blur_is_the_discrete_gaussian_of_a_plain_crop():
    """σ = 1 is a plain crop, so its window is the image smoothed by exactly the target."""
    images = pattern(2.0).image(60, 60)
    seen = Foveate(ScaleGrid.of(1.0), 10, blur=0.5)(images)[0, 0, 0]
    torch.testing.assert_close(seen, smooth(images, 0.5)[0, 0, 25:35, 25:35], rtol=0, atol=1e-9)


def test_equalised_blur_of_one_image_does_not_depend_on_the_others():
    """A whole centre needs more added blur than a half one; each image gets its own."""
    images = torch.randn(2, 1, 30, 30, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    centres = torch.tensor([[14.0, 15.0], [14.5, 14.25]], dtype=torch.float64)
    foveate = Foveate(ScaleGrid.of(0.7, 1.0, 2.0), 7, blur=0.5)
    together = foveate(images, centres)
    for index in range(2):
        alone = foveate(images[index : index + 1], centres[index : index + 1])
        torch.testing.assert_close(together[index : index + 1], alone, rtol=0, atol=1e-12)
