"""Scale-space kernels against known truth: scipy's Bessel functions, moments, sums, and each other."""

import math

import pytest
import scipy.special
import torch
from helpers.derivatives import (
    directional_derivative_kernel,
    gaussian,
    gaussian_derivative,
    gaussian_derivative_kernel,
    hermite,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from scalechannels.scale_space import discrete_gaussian_kernel, discrete_gaussian_kernels, smooth

X = torch.arange(-40, 41, dtype=torch.float64) / 4


@pytest.mark.parametrize("sigma", [0.6, 1.0, 2.5])
def test_the_gaussian_has_unit_mass_and_its_variance(sigma: float):
    x = torch.linspace(-30, 30, 6001, dtype=torch.float64)
    g = gaussian(x, sigma) * 0.01
    assert g.sum().item() == pytest.approx(1, abs=1e-9)
    assert (g * x**2).sum().item() == pytest.approx(sigma**2, rel=1e-9)


@pytest.mark.parametrize("order", range(7))
def test_hermite_polynomials_equal_scipys(order: int):
    expected = torch.from_numpy(scipy.special.eval_hermitenorm(order, X.numpy()))
    torch.testing.assert_close(hermite(order, X), expected)


def test_the_first_hermite_polynomials_by_hand():
    torch.testing.assert_close(hermite(0, X), torch.ones_like(X))
    torch.testing.assert_close(hermite(1, X), X)
    torch.testing.assert_close(hermite(2, X), X**2 - 1)
    torch.testing.assert_close(hermite(3, X), X**3 - 3 * X)


@pytest.mark.parametrize("variance", [0.05, 0.5, 1.0, 3.7, 40.0])
def test_the_discrete_gaussian_is_the_bessel_kernel(variance: float):
    kernel = discrete_gaussian_kernel(variance)
    n = torch.arange(-(len(kernel) // 2), len(kernel) // 2 + 1)
    expected = torch.from_numpy(scipy.special.ive(n.abs().numpy(), variance))
    torch.testing.assert_close(kernel, expected, rtol=0, atol=1e-9)
    assert kernel.sum().item() == pytest.approx(1, abs=1e-12)
    assert (kernel * n**2).sum().item() == pytest.approx(variance, rel=1e-6)


def test_the_sampled_gaussian_differs_from_the_discrete_one():
    """Convention: at small scales a sampled Gaussian has neither unit mass nor the right variance."""
    kernel = discrete_gaussian_kernel(0.25)
    n = torch.arange(-(len(kernel) // 2), len(kernel) // 2 + 1, dtype=torch.float64)
    sampled = gaussian(n, 0.5)
    sampled = sampled / sampled.sum()
    assert abs((sampled * n**2).sum().item() - 0.25) > 0.03
    assert (kernel * n**2).sum().item() == pytest.approx(0.25, rel=1e-7)


@given(first=st.floats(0.01, 6), second=st.floats(0.01, 6))
@settings(deadline=None, max_examples=25)
def test_the_discrete_gaussian_is_a_semigroup(first: float, second: float):
    a, b = discrete_gaussian_kernel(first, radius=30), discrete_gaussian_kernel(second, radius=30)
    composed = torch.nn.functional.conv1d(a.view(1, 1, -1), b.view(1, 1, -1), padding=30)[0, 0]
    torch.testing.assert_close(
        composed, discrete_gaussian_kernel(first + second, radius=30), rtol=0, atol=1e-9
    )


def test_variance_zero_is_the_identity_and_a_given_radius_is_kept():
    assert discrete_gaussian_kernel(0.0).tolist() == [1.0]
    kernel = discrete_gaussian_kernel(4.0, radius=2, dtype=torch.float32)
    assert (len(kernel), kernel.dtype) == (5, torch.float32)
    assert kernel.sum().item() == pytest.approx(1)
    many = discrete_gaussian_kernels(torch.tensor([0.0, 1.0, 4.0], dtype=torch.float64), 20)
    torch.testing.assert_close(many[2], discrete_gaussian_kernel(4.0, radius=20))
    assert many[0, 20] == pytest.approx(1)


def test_smoothing_an_impulse_gives_the_kernel_and_keeps_the_mean():
    image = torch.zeros(2, 3, 41, 33, dtype=torch.float64)
    image[..., 20, 16] = 1
    kernel = discrete_gaussian_kernel(1.5)
    radius = len(kernel) // 2
    seen = smooth(image, 1.5)[1, 2]
    torch.testing.assert_close(seen[20 - radius : 21 + radius, 16], kernel * kernel.max())
    assert seen.sum().item() == pytest.approx(1)


def test_smoothing_mirrors_at_the_border_even_where_the_image_is_small():
    constant = torch.full((1, 3, 2), 0.4, dtype=torch.float64)
    torch.testing.assert_close(smooth(constant, 5.0), constant)
    assert smooth(torch.ones(1, 1), 2.0).tolist() == [[1.0]]


def test_derivative_kernels_of_a_2d_polynomial():
    """∂^α g integrated against a monomial: the derivative's moment, (−1)^|α| α! at the matching power."""
    x = torch.linspace(-12, 12, 481, dtype=torch.float64)
    for orders in ((1, 0), (0, 1), (2, 1), (0, 3)):
        kernel = gaussian_derivative_kernel((x, x), 1.1, orders) * 0.05**2
        moment = (kernel * x[:, None] ** orders[0] * x[None, :] ** orders[1]).sum().item()
        expected = (-1) ** sum(orders) * math.factorial(orders[0]) * math.factorial(orders[1])
        assert moment == pytest.approx(expected, rel=1e-8)


def test_normalised_kernels_of_all_scales_have_the_same_l1_norm():
    x = torch.linspace(-40, 40, 1601, dtype=torch.float64)
    norms = [gaussian_derivative_kernel((x,), sigma, (2,), gamma=1).abs().sum() for sigma in (1.0, 2.0, 4.0)]
    torch.testing.assert_close(norms[1:], norms[:1] * 2, rtol=1e-3, atol=0)


def test_directional_derivatives_along_the_axes_are_partial_ones():
    for order in (1, 2, 3):
        for direction, orders in (((1, 0), (order, 0)), ((0, 2), (0, order))):
            torch.testing.assert_close(
                directional_derivative_kernel((X, X), 1.2, direction, order, gamma=1),
                gaussian_derivative_kernel((X, X), 1.2, orders, gamma=1),
            )


def test_a_directional_derivative_is_a_rotated_partial_one():
    """Along (3, 4)/5 at the point p it equals the partial derivative at p seen in turned axes."""
    kernel = directional_derivative_kernel((X, X), 1.5, (3, 4), 2)
    along, across = 0.6 * X[:, None] + 0.8 * X[None, :], -0.8 * X[:, None] + 0.6 * X[None, :]
    expected = gaussian_derivative(along, 1.5, 2) * gaussian(across, 1.5)
    torch.testing.assert_close(kernel, expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gaussian(X, 0), "sigma must be positive; got 0"),
        (lambda: gaussian(X, -1.0), "sigma must be positive; got -1.0"),
        (lambda: gaussian_derivative(X, 0.0, 2), "sigma must be positive; got 0.0"),
        (lambda: gaussian_derivative(X, 1.0, -1), "order must be at least 0; got -1"),
        (lambda: gaussian_derivative_kernel((X, X), 1.0, (1,)), "got 1 for 2 axes"),
        (lambda: directional_derivative_kernel((X, X), 1.0, (0, 0), 1), "must not be the zero vector"),
        (lambda: directional_derivative_kernel((X,), 1.0, (1, 0), 1), "x and direction must have two axes"),
        (lambda: discrete_gaussian_kernel(-0.1), "variance must be finite and at least 0; got -0.1"),
        (lambda: smooth(torch.ones(3, 3), math.nan), "variance must be finite and at least 0; got nan"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
