"""Gaussian derivative networks: exact on polynomials, and covariant from σ to 2σ within stated bounds."""

import math

import pytest
import torch
from helpers.signals import pattern

from scalechannels.rivals.gaussian_derivatives import (
    Derivatives,
    GaussianDerivativeNetwork,
    derivative_kernel,
    filter_matrix,
    gaussder,
)
from scalechannels.scales import ScaleGrid

SMALL = {"features": (4, 6), "scales": (1.0, 2.0, 4.0)}
SIDE, LARGER = 41, 81


def network(**options):
    """Small, with random weights and without the biases of the classes, which no image changes."""
    torch.manual_seed(0)
    made = GaussianDerivativeNetwork(**{**SMALL, **options}).double().eval()
    torch.nn.init.zeros_(made.combined[-1].bias)
    return made


@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("sigma", [0.7, 1.0, 2.5])
def test_a_kernel_differentiates_polynomials_exactly(order: int, sigma: float) -> None:
    kernel = derivative_kernel(sigma, order)
    x = torch.arange(len(kernel), dtype=torch.float64) - len(kernel) // 2
    expected = math.factorial(order) * sigma**order
    assert float((kernel * x**order).sum()) == pytest.approx(expected, rel=1e-6)
    for lower in range(order):
        assert abs(float((kernel * x**lower).sum())) < 1e-9


def test_the_matrix_is_the_correlation_with_mirrored_pixels() -> None:
    values, kernel = torch.randn(15, dtype=torch.float64), derivative_kernel(1.0, 1)
    radius = len(kernel) // 2
    padded = torch.nn.functional.pad(values[None, None], (radius, radius), mode="reflect")
    expected = torch.nn.functional.conv1d(padded, kernel[None, None])[0, 0]
    assert torch.allclose(filter_matrix(1.0, 1, 15) @ values, expected)


def test_a_filter_wider_than_the_image_stays_a_mean() -> None:
    assert torch.allclose(filter_matrix(30.0, 0, 9).sum(1), torch.ones(9, dtype=torch.float64))


def test_the_derivatives_are_along_the_axes_that_their_orders_say() -> None:
    rows, columns = torch.meshgrid(torch.arange(21.0), torch.arange(31.0), indexing="ij")
    derive = Derivatives([1.0], 2)
    found = derive((3 * rows + 0.5 * columns**2).double()[None, None])[0, 0].mT  # (D, H, W)
    at = dict(zip(derive.pairs, found[:, 10, 15].tolist(), strict=True))
    wanted = {(1, 0): 3.0, (0, 1): 15.0, (0, 2): 1.0, (2, 0): 0.0, (1, 1): 0.0}
    assert at == pytest.approx(wanted, abs=1e-4)


def test_twice_the_image_at_twice_the_scale_gives_the_same_derivatives() -> None:
    """Law, within 3 % of the largest value at σ = 1, and less at larger σ, where pixels matter less."""
    image, larger = pattern(3.0).image(SIDE, SIDE), pattern(6.0).image(LARGER, LARGER)
    one, other = Derivatives([1.0], 2)(image), Derivatives([2.0], 2)(larger)[..., ::2, ::2]
    assert float((one - other).abs().max() / one.abs().max()) < 0.03
    unlike = Derivatives([1.0], 2)(larger)[..., ::2, ::2]
    assert float((one - unlike).abs().max() / one.abs().max()) > 0.3


@pytest.mark.parametrize(
    ("options", "bound"),
    [
        ({}, 0.04),
        ({"order": 3}, 0.04),
        ({"residual": True, "smoothed": True}, 0.02),
        ({"reading": "max"}, 0.12),  # the strongest pixel is not on the coarser grid
    ],
)
def test_channels_move_along_the_scales_with_the_image(options, bound: float) -> None:
    """Law: channel 2σ of the image twice as large says what channel σ said, within a share of the range."""
    made = network(**options)
    with torch.no_grad():
        before = made.channel_logits(pattern(3.0).image(SIDE, SIDE))[0]  # (S, K)
        after = made.channel_logits(pattern(6.0).image(LARGER, LARGER))[0]
    span = float(before.max() - before.min())
    assert float((before[:-1] - after[1:]).abs().max()) < bound * span
    assert float((before - after).abs().max()) > 0.3 * span


def test_the_centre_is_read_from_the_whole_map() -> None:
    """The shortcut of the last layer gives what the whole map has in its middle, for even and odd sides."""
    made, whole = network(), network(reading="max")
    for side in (20, 21):
        image = pattern(2.0).image(side, side)
        with torch.no_grad():
            maps = whole.maps(image)
            middle = maps[..., (side - 1) // 2 : side // 2 + 1, (side - 1) // 2 : side // 2 + 1].mean(
                (-2, -1)
            )
            assert torch.allclose(made.channel_logits(image), middle.movedim(0, 1))


def test_a_residual_layer_adds_to_what_it_was_given() -> None:
    """A layer that learnt nothing passes on what it was given; without the skip, nothing comes through."""
    image = pattern(2.0).image(SIDE, SIDE)
    for residual in (True, False):
        made = network(residual=residual, features=(4, 4))
        torch.nn.init.zeros_(made.combined[1].weight)
        alone = network(features=(4,), growth=1.0)
        alone.combined[0], alone.combined[1] = made.combined[0], made.combined[2]
        alone.derivatives[0], alone.derivatives[1] = made.derivatives[0], made.derivatives[2]
        with torch.no_grad():
            found, same = made.channel_logits(image), alone.channel_logits(image)
        assert torch.allclose(found, same if residual else torch.zeros_like(same))


def test_dropped_scale_channels_leave_the_pool() -> None:
    image = pattern(2.0).image(SIDE, SIDE).expand(60, -1, -1, -1)[..., 13:28, 13:28]
    for pool in ("mean", "max", "logmeanexp"):
        made = network(pool=pool, drop=0.5)
        with torch.no_grad():
            plain = made(image)
            assert plain.std(0).max() < 1e-9  # nothing is dropped in testing
            made.drop, made.training = 0.5, True
            for norm in made.norms:
                norm.eval()
            learning = made.logits(image)
        one = made.channel_logits(image[:1])[0].detach()  # (S, K)
        assert learning.std(0).max() > 0.1 * (one.max(0).values - one.min(0).values).max()
        assert (learning <= one.max(0).values + 1e-9).all()
        assert (learning >= one.min(0).values - 1e-9).all()


def test_weights_are_shared_by_all_scales_and_learn() -> None:
    few, many = GaussianDerivativeNetwork(), gaussder(1, 10, ScaleGrid(0.5, 8, ratio=2**0.25))
    counts = [sum(weight.numel() for weight in made.parameters()) for made in (few, many)]
    assert counts == [20_178, 20_178]  # 5·(8 + 8·16 + 16·24 + 24·32 + 32·64 + 64·10), batch norm, K biases
    made = GaussianDerivativeNetwork(**SMALL, channels=3, classes=4)
    made(torch.randn(2, 3, 17, 12)).square().sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().max() > 0 for weight in made.parameters())
    assert made.eval()(torch.randn(2, 3, 17, 12)).shape == (2, 4)


def test_products_with_zeros_are_not_counted_as_cost() -> None:
    made = GaussianDerivativeNetwork(scales=(1.0,), features=(), order=1, reading="max")
    side, taps = 40, 2 * 5 + 1  # the discrete Gaussian of σ = 1, and two pixels more for its difference
    # Order 0 and 1 along the rows, then (1, 0) and (0, 1) along the columns; the border folds a few taps.
    needed = side * side * (taps + taps + 1 + taps + 1 + taps)
    counted = 4 * side**3
    assert counted + made.correction(side, side) == pytest.approx(needed, rel=0.12)


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="order must be 1, 2 or 3; got 4"):
        GaussianDerivativeNetwork(order=4)
    with pytest.raises(ValueError, match="pool must be one of mean, max, logmeanexp"):
        GaussianDerivativeNetwork(pool="median")  # type: ignore[arg-type]
