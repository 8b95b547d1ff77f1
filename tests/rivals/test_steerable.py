"""Scale-steerable networks: the basis, covariance from one scale to the next, the published size."""

import pytest
import torch
from helpers.signals import pattern

from scalechannels.rivals.steerable import (
    ScaleConvolution,
    ScaleSteerableNetwork,
    hermite,
    hermite_basis,
    sesn,
    sesn_scalar,
)

SIDE, LARGER = 41, 81


def test_hermite_polynomials() -> None:
    x = torch.linspace(-2, 2, 9, dtype=torch.float64)
    assert torch.allclose(hermite(3, x), x**3 - 3 * x)
    assert torch.allclose(hermite(4, x), x**4 - 6 * x**2 + 3)


def test_a_function_of_twice_the_scale_is_twice_as_wide_and_weighs_the_same() -> None:
    one = hermite_basis(41, (1.5,), 1.5) * 1.0
    both = hermite_basis(81, (1.5, 3.0), 1.5)
    assert torch.allclose(both[:, 1, ::2, ::2] * 4, one[:, 0], atol=1e-9)  # 1/s² for each pixel of four
    assert torch.allclose(one[:, 0].flatten(1).norm(dim=1), torch.ones(49, dtype=torch.float64))


def test_twice_the_image_moves_one_step_along_the_scales() -> None:
    """Law of a layer, lifting and not, within 3 % of the largest value; filters wide enough not to be cut."""
    torch.manual_seed(0)
    scales = (1.5, 3.0)
    lift = ScaleConvolution(1, 3, scales, 33, 1.3).double()
    deeper = ScaleConvolution(3, 2, scales, 33, 1.3).double()
    with torch.no_grad():
        maps = lift(pattern(2.0).image(SIDE, SIDE)[:, None])
        larger = lift(pattern(4.0).image(LARGER, LARGER)[:, None])
        for one, other in ((maps, larger), (deeper(maps), deeper(larger))):
            before, after = one[:, 0], other[:, 1, :, ::2, ::2]
            assert float((before - after).abs().max() / before.abs().max()) < 0.03
            unlike = other[:, 0, :, ::2, ::2]
            assert float((before - unlike).abs().max() / before.abs().max()) > 0.3


@pytest.mark.parametrize("make", [sesn, sesn_scalar])
def test_the_published_size(make) -> None:
    assert sum(weight.numel() for weight in make(1, 10).parameters()) == 494_549  # "495K"


@pytest.mark.parametrize("scalar", [False, True])
def test_it_learns_from_images_of_other_sizes(scalar: bool) -> None:
    options = {"features": (4, 5, 6), "hidden": 8, "scales": (1.0, 2.0), "size": 7, "dropout": 0.0}
    made = ScaleSteerableNetwork(**options, channels=3, classes=4, scalar=scalar)
    torch.manual_seed(0)
    made(torch.randn(4, 3, 20, 23)).square().sum().backward()
    still = [name for name, weight in made.named_parameters() if not weight.grad.abs().max() > 0]
    assert not still
    assert made.eval()(torch.randn(2, 3, 31, 16)).shape == (2, 4)


def test_a_filter_needs_a_centre() -> None:
    with pytest.raises(ValueError, match="size must be odd, so that a filter has a centre; got 12"):
        ScaleSteerableNetwork(size=12)


def test_images_that_the_layers_halve_away_are_named() -> None:
    network = ScaleSteerableNetwork(features=(3, 4, 5), classes=3, scales=(1.0,), size=5, hidden=6).eval()
    assert network(torch.rand(2, 1, 4, 5)).shape == (2, 3)
    for shape in ((3, 40), (40, 3), (1, 1)):
        with pytest.raises(
            ValueError, match=rf"at least 4x4 pixels for these layers; got {shape[0]}x{shape[1]}"
        ):
            network(torch.rand(2, 1, *shape))
