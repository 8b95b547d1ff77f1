"""Turned and stretched images are those that the matrices say, and keep the area of what they show."""

import math

import pytest
import torch
from helpers.tiny_runs import tiny, trained, weights

from scalechannels.training.augment.rotation import Rotation
from scalechannels.training.config import TrainingConfig


def image(height: int = 15, width: int = 15) -> torch.Tensor:
    return torch.rand(1, 2, height, width, generator=torch.Generator().manual_seed(0))


def blob(size: int = 81, spread: float = 6.0) -> torch.Tensor:
    """A Gaussian off the centre, whose transforms have a closed form."""
    return _gaussian(torch.eye(2), size, spread)


def _gaussian(matrix: torch.Tensor, size: int, spread: float) -> torch.Tensor:
    """The blob at c + A (p − c)."""
    axis = torch.arange(size) - (size - 1) / 2
    places = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), -1) @ matrix.T  # (H, W, 2): column, row
    away = places - torch.tensor([10.0, -5.0])
    return torch.exp(-(away**2).sum(-1) / (2 * spread**2))[None, None]


def test_a_quarter_turn_is_that_of_the_pixels_themselves() -> None:
    quarter = torch.tensor([[[0.0, -1.0], [1.0, 0.0]]])
    torch.testing.assert_close(Rotation(90).seen(image(), quarter), image().rot90(1, (2, 3)))


def test_nothing_to_draw_leaves_the_image_also_if_it_is_not_square() -> None:
    shown = image(9, 20)[None]
    torch.testing.assert_close(Rotation(0)(shown), shown)


@pytest.mark.parametrize(("degrees", "stretch"), [(30, 0.0), (0, 0.3), (25, 0.2)])
def test_a_blob_is_where_and_what_the_matrix_says(degrees: float, stretch: float) -> None:
    torch.manual_seed(3)
    rotation = Rotation(degrees, stretch)
    matrix = rotation.drawn(blob())
    expected = _gaussian(matrix[0], 81, 6.0)
    made = rotation.seen(blob(), matrix)
    assert (made - expected).abs().max() < 0.02
    assert (blob() - expected).abs().max() > 0.1  # and it is not the blob of before


def test_a_wide_image_is_turned_and_not_sheared() -> None:
    wide = torch.nn.functional.pad(blob(), (20, 20))
    torch.manual_seed(0)
    matrix = Rotation(30).drawn(wide)
    square = Rotation(30).seen(blob(), matrix)
    torch.testing.assert_close(Rotation(30).seen(wide, matrix)[..., 20:-20], square, atol=1e-4, rtol=0)


def test_areas_stay_and_draws_reach_their_ends_but_not_beyond() -> None:
    torch.manual_seed(0)
    matrices = Rotation(20, 0.3).drawn(torch.zeros(20_000, 1, 4, 4))
    torch.testing.assert_close(torch.linalg.det(matrices), torch.ones(20_000))
    stretches = torch.linalg.svdvals(matrices)[:, 0].log()
    assert 0.295 < float(stretches.max()) <= 0.3001
    angles = torch.atan2(matrices[:, 1, 0] - matrices[:, 0, 1], matrices[:, 0, 0] + matrices[:, 1, 1])
    assert 19.5 < math.degrees(float(angles.abs().max())) <= 20.01


def test_every_image_of_a_step_is_turned_by_itself() -> None:
    torch.manual_seed(0)
    same = blob().expand(3, 1, 81, 81)[None]
    first, second, third = Rotation(30)(same)[0]
    assert not torch.allclose(first, second)
    assert not torch.allclose(second, third)


@pytest.mark.parametrize(("degrees", "stretch"), [(181, 0.0), (-1, 0.0), (10, 1.0)])
def test_what_it_cannot_do_is_said(degrees: float, stretch: float) -> None:
    with pytest.raises(ValueError, match="degrees must be from 0 to 180"):
        Rotation(degrees, stretch)
    with pytest.raises(ValueError, match=r"training\.(rotation|stretch) must be"):
        TrainingConfig(rotation=degrees, stretch=stretch)


@pytest.mark.parametrize("network", ["fovlse", "cnn"])
def test_a_run_learns_from_other_images(tmp_path, network: str) -> None:
    plain = trained(tiny(network), tmp_path / "plain")
    turned = trained(tiny(network, rotation=15.0, stretch=0.1), tmp_path / "turned")
    assert plain.config.name != turned.config.name
    assert any(not torch.equal(one, weights(turned)[name]) for name, one in weights(plain).items())
