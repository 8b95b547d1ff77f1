"""The paper's theory, one test for each equation, on signals whose scaling has a closed form.

Notation: the paper's S_s rescales an image by s; channel σ of this library is its channel s = 1/σ. Positions
x are in window pixels from the window's middle, so that (Γf)(x, s) is window pixel x of channel 1/s. Where an
image is interpolated, the tolerance is the interpolation error's bound (`Signal.bilinear_error`) times the
network's Lipschitz constant, which is 1 for the layers below; elsewhere it is rounding or quadrature.
"""

import math
from collections.abc import Sequence

import pytest
import torch
import torch.nn.functional as F
from helpers.derivatives import (
    directional_derivative_kernel,
    gaussian,
    gaussian_derivative,
    gaussian_derivative_kernel,
    hermite,
)
from helpers.signals import Signal, blob, ellipse, pattern
from torch import Tensor, nn

from scalechannels import (
    ConcatScales,
    Foveate,
    LogMeanExpOverScales,
    MaxOverScales,
    MeanOverScales,
    ScaleChannelNetwork,
    ScaleGrid,
    fovavg,
    selected_scale,
)
from scalechannels.scale_space import smooth

SIDE = 301  # odd, so that the origin is a pixel
MIDDLE = (SIDE - 1) / 2
RATIO = 2**0.5


def axis(radius: int) -> Tensor:
    return torch.arange(-radius, radius + 1, dtype=torch.float64)


def windows(signal: Signal, grid: ScaleGrid, n: int, at: Sequence[float] | None = None) -> Tensor:
    """The stack (S, 1, n, n) of an image of this signal, looking at its middle or at `at` from there."""
    centres = None
    if at is not None:
        centres = torch.tensor([[MIDDLE + at[0], MIDDLE + at[1]]], dtype=torch.float64)
    return Foveate(grid, n)(signal.image(SIDE, SIDE), centres)[0]


def unit_lipschitz(weight: Tensor) -> Tensor:
    """Each output's absolute weights sum to 1, so that no error grows in the largest absolute value."""
    return weight / weight.abs().flatten(1).sum(1).view(-1, *[1] * (weight.ndim - 1))


class Layers(nn.Module):
    """φ: two convolutions with biases and non-linearities, Lipschitz constant 1."""

    def __init__(self) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(3)
        self.first, self.second = (
            unit_lipschitz(torch.rand(*shape, generator=random, dtype=torch.float64) - 0.2)
            for shape in ((3, 1, 3, 3), (2, 3, 3, 3))
        )
        self.biases = torch.tensor([0.1, -0.1, 0.05, 0.2, -0.15], dtype=torch.float64)

    def forward(self, images: Tensor) -> Tensor:
        first = F.elu(F.conv2d(images, self.first, self.biases[:3]))
        return F.elu(F.conv2d(first, self.second, self.biases[3:]))  # (N, 2, n − 4, n − 4)


class BlobDetector(nn.Module):
    """Windows (N, 1, n, n) to three responses, zero for objects much smaller or larger than the window's.

    max(0, ⟨template, window⟩ − threshold) with templates −∂²g of mean 0 whose absolute values sum to 1.
    """

    n, threshold, size = 16, 0.04, 2.0

    def __init__(self) -> None:
        super().__init__()
        x = torch.arange(self.n, dtype=torch.float64) - (self.n - 1) / 2
        along, across = (
            -gaussian_derivative_kernel((x, x), self.size, orders) for orders in ((2, 0), (0, 2))
        )
        templates = torch.stack([along, across, along + across])
        self.templates = unit_lipschitz(templates - templates.mean((1, 2), keepdim=True))

    def forward(self, windows: Tensor) -> Tensor:
        return F.relu(torch.einsum("ncyx,kyx->nk", windows, self.templates) - self.threshold)


DETECTABLE = Signal((*ellipse(10.0, 7.0, 0.6).blobs, *blob(8.0, 0.5).blobs))
WIDE_GRID = ScaleGrid(0.25, 128, ratio=RATIO)


# Scaling the image, equations eq-scale-def2 to eq-lambda-scale-invariant


@pytest.mark.parametrize("sigma", [0.5, 2**-0.25, 1.0, 2**0.25, 2.0, 3.0])
def test_a_channel_sees_the_rescaled_image(sigma: float):
    """eq-scale-def2 and eq-phi_s-def: channel s applies φ to (S_s f)(x) = f(x/s), with s = 1/σ."""
    f, n = pattern(6.0), 24
    seen = windows(f, ScaleGrid.of(sigma), n)[0, 0]
    rescaled = f.scaled(1 / sigma).window(1.0, n)
    assert (seen - rescaled).abs().max() <= f.bilinear_error
    inverted = f.scaled(sigma).window(1.0, n)
    if sigma != 1:
        assert (seen - inverted).abs().max() > 3 * f.bilinear_error


def test_scaling_the_image_by_one_step_shifts_the_stack_by_one():
    """eq-scale-covariance, (Γ S_t f)(x, s) = (Γ f)(x, st), at depth 0: the windows themselves."""
    f, grid, n = pattern(12.0), ScaleGrid(0.5, 4, ratio=RATIO), 24
    larger = f.scaled(RATIO)
    before, after = windows(f, grid, n), windows(larger, grid, n)
    bound = f.bilinear_error + larger.bilinear_error
    assert (after[1:] - before[:-1]).abs().max() <= bound
    assert (after - before).abs().max() > 10 * bound
    assert (after[:-1] - before[1:]).abs().max() > 10 * bound  # the shift has a direction


def test_scaling_the_image_by_one_step_shifts_the_features_by_one():
    """eq-scale-covariance, (Γ S_t f)(x, c, s) = (Γ f)(x, c, st), after convolutions and non-linearities."""
    f, grid, n = pattern(12.0), ScaleGrid(0.5, 4, ratio=RATIO), 24
    larger, layers = f.scaled(RATIO), Layers()
    before, after = (layers(windows(signal, grid, n)) for signal in (f, larger))
    bound = f.bilinear_error + larger.bilinear_error
    assert (after[1:] - before[:-1]).abs().max() <= bound
    assert (after - before).abs().max() > 10 * bound


def test_scaling_the_image_by_one_step_shifts_the_channel_logits_by_one():
    """eq-scale-covariance at the last layer of the paper's own network: channel_logits move one place."""
    torch.manual_seed(0)
    net = fovavg(ScaleGrid(0.5, 4, ratio=RATIO)).double().eval()
    f = pattern(6.0)
    before, after = (net.channel_logits(g.image(SIDE, SIDE))[0] for g in (f, f.scaled(RATIO)))  # (S, K)
    shifted = (after[1:] - before[:-1]).abs().max()
    assert shifted < 0.1 * (after - before).abs().max()


@pytest.mark.parametrize("pool", [MaxOverScales(), MeanOverScales(), LogMeanExpOverScales()], ids=repr)
@pytest.mark.parametrize("t", [RATIO, 2.0])
def test_pooling_over_scales_is_invariant(pool: nn.Module, t: float):
    """eq-scale-invariance, (Λ S_t f)(c) = (Λ f)(c), for symmetric poolings (eq-lambda-s-max and -avg).

    The responses vanish at both ends of the grid, so the finite grid behaves as the infinite one, and each
    pooling is 1-Lipschitz, so the bound of one channel is the bound of the output.
    """
    net = ScaleChannelNetwork(BlobDetector(), WIDE_GRID, pool, window=BlobDetector.n)
    f, larger = DETECTABLE, DETECTABLE.scaled(t)
    small_image, large_image = f.image(SIDE, SIDE), larger.image(SIDE, SIDE)
    for image in (small_image, large_image):
        channels = net.channel_logits(image)[0]
        assert channels[[0, 1, -2, -1]].max() == 0
        assert channels.amax(0).min() > 0.1
    bound = f.bilinear_error + larger.bilinear_error
    assert bound < 0.015
    assert (net(large_image) - net(small_image)).abs().max() <= bound
    assert net(small_image).min() > 2 * bound  # an output that says nothing would be invariant too


def test_the_set_of_channel_outputs_does_not_change():
    """eq-phi_maps_scale: {φ_s S_t f} = {φ_s f} as a set, here as sorted responses."""
    net = ScaleChannelNetwork(BlobDetector(), WIDE_GRID, MaxOverScales(), window=BlobDetector.n)
    f, larger = DETECTABLE, DETECTABLE.scaled(2.0)
    before, after = (net.channel_logits(g.image(SIDE, SIDE))[0] for g in (f, larger))
    bound = f.bilinear_error + larger.bilinear_error
    assert (before.sort(0).values - after.sort(0).values).abs().max() <= bound
    assert (before - after).abs().max() > 5 * bound


def test_concatenation_is_not_invariant():
    """eq-lambda-s-conc has no theoretical guarantee: a dense layer over the channels notices the shift."""
    torch.manual_seed(0)
    pool = ConcatScales(len(WIDE_GRID), 3).double()
    net = ScaleChannelNetwork(BlobDetector(), WIDE_GRID, pool, window=BlobDetector.n)
    f, larger = DETECTABLE, DETECTABLE.scaled(2.0)
    bound = f.bilinear_error + larger.bilinear_error
    with torch.no_grad():
        moved = (net(larger.image(SIDE, SIDE)) - net(f.image(SIDE, SIDE))).abs().max()
    assert moved > 2 * bound


def test_pooling_around_a_point_is_invariant_to_scaling_about_that_point():
    """eq-lambda_s-skewed-def, local scale invariance: (Λ_local S_{t,x₀} f)(x₀) = (Λ_local f)(x₀)."""
    net = ScaleChannelNetwork(BlobDetector(), WIDE_GRID, MaxOverScales(), window=BlobDetector.n)
    point, t = (14.0, -23.0), RATIO
    f = DETECTABLE.moved(*point)
    larger = DETECTABLE.scaled(t).moved(*point)  # f scaled about the point
    images = torch.cat([f.image(SIDE, SIDE), larger.image(SIDE, SIDE)])
    centres = torch.tensor([[MIDDLE + point[0], MIDDLE + point[1]]], dtype=torch.float64).expand(2, 2)
    bound = f.bilinear_error + larger.bilinear_error
    there, elsewhere = net(images, centres), net(images)
    assert (there[0] - there[1]).abs().max() <= bound
    assert (elsewhere[0] - elsewhere[1]).abs().max() > 2 * bound


# Scaling and translation together, the integral proof


@pytest.mark.parametrize("delta", [(4, -8), (-4, 4), (8, 0)], ids=str)
def test_a_translation_shifts_each_channel_by_its_own_amount(delta: tuple[int, int]):
    """eq-translation-covariance-scale: (Γ D_δ f)(x, s) = (Γ f)(x − S_s δ, s), δ/σ window pixels."""
    f, grid, n, layers = pattern(4.0), ScaleGrid.of(1, 2, 4), 28, Layers()
    before, after = (layers(windows(signal, grid, n)) for signal in (f, f.moved(*delta)))
    for index, sigma in enumerate(grid):
        rows, columns = (int(shift / sigma) for shift in delta)

        def aligned(rows: int, columns: int, index: int = index) -> float:
            rolled = torch.roll(before[index], (rows, columns), dims=(1, 2))
            inner = (slice(None), slice(8, -8), slice(8, -8))  # away from what is rolled in
            return (after[index] - rolled)[inner].abs().max().item()

        assert aligned(rows, columns) < 1e-10  # pixels meet pixels: only rounding
        if sigma != 1:
            assert aligned(*delta) > 0.01  # the shift of channel 1 does not fit the others


def test_scaling_and_translation_together():
    """The integral proof: h(S_t(x − x₁) + x₂) = f(x) gives (Γh)(x, s) = (Γf)(x + S_s S_t x₁ − S_s x₂, st).

    The statement above the proof has S_t x₂ in place of S_s x₂. That is a slip: it holds only where s = t.
    """
    f, t, n, layers = pattern(12.0), RATIO, 20, Layers()
    x1, x2 = (6.0, -10.0), (-13.5, 8.0)
    h = f.moved(-x1[0], -x1[1]).scaled(t).moved(*x2)
    bound = f.bilinear_error + h.bilinear_error
    for sigma in (0.5, RATIO**-1, 1.0, RATIO, 2.0):
        s = 1 / sigma
        left = layers(windows(h, ScaleGrid.of(sigma), n))

        def right(shift: Sequence[float], s: float = s) -> Tensor:
            """(Γf)(x + shift, st): a shift by window pixels is one by 1/(st) image pixels each."""
            grid = ScaleGrid.of(1 / (s * t))
            return layers(windows(f, grid, n, at=[offset / (s * t) for offset in shift]))

        proved = [s * t * a - s * b for a, b in zip(x1, x2, strict=True)]
        stated = [s * t * a - t * b for a, b in zip(x1, x2, strict=True)]
        assert (left - right(proved)).abs().max() <= bound
        if math.isclose(s, t):
            assert (left - right(stated)).abs().max() <= bound
        else:
            assert (left - right(stated)).abs().max() > 3 * bound


# Scale-space theory


def test_the_scale_space_representation_is_convolution_with_a_gaussian():
    """L(x; σ) = ∫ f(x − u) g(u; σ) du, by summing on the pixels, against covariances that add."""
    f, sigma, side = pattern(4.0), 3.0, 101
    g = gaussian(axis(20), sigma)
    image = f.image(side, side)
    summed = F.conv2d(F.conv2d(image, g.view(1, 1, -1, 1)), g.view(1, 1, 1, -1))
    torch.testing.assert_close(summed, f.smoothed(sigma).image(side - 40, side - 40), rtol=0, atol=1e-9)


def test_gaussian_smoothing_is_a_semigroup():
    """g(·; σ₁) * g(·; σ₂) = g(·; √(σ₁² + σ₂²)): variances add."""
    first, second = gaussian(axis(30), 2.0), gaussian(axis(30), 3.0)
    composed = F.conv1d(first.view(1, 1, -1), second.view(1, 1, -1), padding=30)[0, 0]
    torch.testing.assert_close(composed, gaussian(axis(30), math.sqrt(13.0)), rtol=0, atol=1e-10)


@pytest.mark.parametrize("t", [2, 3])
def test_the_scale_space_representation_is_scale_covariant(t: int):
    """L of S_t f at (t·x; t·σ) equals L of f at (x; σ), with the library's smoothing of images."""
    f, sigma, side, reach = pattern(4.0), 2.5, 201, 25
    original = smooth(f.image(side, side), sigma**2)
    rescaled = smooth(f.scaled(t).image(side, side), (t * sigma) ** 2)
    x, tx = (factor * axis(reach).long() + side // 2 for factor in (1, t))
    left, right = rescaled[0, 0][tx][:, tx], original[0, 0][x][:, x]
    # The discrete Gaussian differs from the continuous one at the order of (pixel / size)² / 8 · σ²/size².
    assert (left - right).abs().max() < 2e-3
    unscaled = smooth(f.scaled(t).image(side, side), sigma**2)[0, 0][tx][:, tx]
    assert (unscaled - right).abs().max() > 0.05


# Scaling the image or the filter


def rescaled_filter(h, s: float, radius: int) -> Tensor:
    """h_s(x) = h(x/s) / s² at the pixels, for a filter h given as a function of two axes."""
    x = axis(round(radius * s)) / s
    return h(x) / s**2


def test_rescaling_the_image_equals_rescaling_the_filter():
    """eq-l_to_m for one layer: L_h(x; s) = M_h(x/s; 1/s), with h_s(x) = h(x/s)/s^N of eq-scaled filters."""
    f, radius, n = pattern(6.0), 9, 29

    def h(x: Tensor) -> Tensor:
        """No Gaussian, no symmetry: a Gaussian window times a polynomial."""
        return (
            gaussian(x, 1.5)[:, None] * gaussian(x, 1.3)[None, :] * (1 + x[:, None] - 0.4 * x[None, :] ** 2)
        )

    for s in (1, 2, 3):
        M = F.conv2d(windows(f, ScaleGrid.of(float(s)), n), h(axis(radius)).flip(0, 1)[None, None])[0, 0]
        side = s * (n - 1) + 1  # the pixels that the window spans
        L = F.conv2d(f.image(side, side), rescaled_filter(h, s, radius).flip(0, 1)[None, None])[0, 0]
        sampled = L[::s, ::s]  # L at s·x
        torch.testing.assert_close(M, sampled, rtol=0, atol=1e-7)
        if s != 1:
            assert (M - sampled * s**2).abs().max() > 0.1  # without the factor 1/s^N it does not hold


def test_rescaling_the_image_equals_rescaling_all_filters_of_several_layers():
    """eq-l_to_m for a network: convolutions, biases and non-linearities commute with the change of scale."""
    f, s, radius, n = pattern(8.0), 2, 7, 47
    random = torch.Generator().manual_seed(1)
    shapes = [(2, 1), (2, 2), (1, 2)]
    coefficients = [torch.randn(*shape, 3, generator=random, dtype=torch.float64) for shape in shapes]
    biases = [torch.randn(shape[0], generator=random, dtype=torch.float64) / 4 for shape in shapes]

    def network(images: Tensor, scale: int) -> Tensor:
        for mix, bias in zip(coefficients, biases, strict=True):

            def h(x: Tensor) -> Tensor:
                derivatives = [
                    gaussian_derivative_kernel((x, x), 1.3, orders) for orders in ((0, 0), (1, 0), (0, 1))
                ]
                return torch.stack(derivatives)

            kernel = torch.einsum("oid,dyx->oiyx", mix, rescaled_filter(h, scale, radius))
            images = torch.tanh(F.conv2d(images, kernel.flip(2, 3), bias))
        return images[0, 0]

    M = network(windows(f, ScaleGrid.of(float(s)), n), 1)  # (n − 6·radius)²
    side = (len(M) - 1) * s + 1 + 6 * radius * s
    L = network(f.image(side, side), s)[::s, ::s]
    assert M.std() > 0.02
    torch.testing.assert_close(M, L, rtol=0, atol=1e-5)


@pytest.mark.parametrize("sigma", [1.0, 2**0.25, 2**0.5, 2.0, 3.0])
def test_a_gaussian_filter_in_all_channels_gives_the_gaussian_scale_space(sigma: float):
    """h = g(·; σ₀) in channel σ = s computes L(s·x; s·σ₀), for any scale, whole or not."""
    f, inner, radius, n = pattern(6.0), 1.5, 8, 25
    kernel = gaussian_derivative_kernel((axis(radius), axis(radius)), inner, (0, 0))
    seen = F.conv2d(windows(f, ScaleGrid.of(sigma), n), kernel[None, None])[0, 0]
    truth = f.smoothed(sigma * inner).window(sigma, len(seen))
    assert (seen - truth).abs().max() <= f.bilinear_error + 1e-6
    assert (seen - f.smoothed(inner).window(sigma, len(seen))).abs().max() > 3e-3 or sigma == 1


# Scale-normalised derivatives


@pytest.mark.parametrize("order", range(6))
@pytest.mark.parametrize("sigma", [0.7, 1.0, 2.3])
def test_gaussian_derivatives_are_hermite_polynomials_times_gaussians(order: int, sigma: float):
    """eq-gauss-der-herm-pol: ∂ⁿ g(x; σ) = (−1)ⁿ σ⁻ⁿ He_n(x/σ) g(x; σ), against n-fold autograd."""
    x = torch.linspace(-4, 4, 33, dtype=torch.float64, requires_grad=True)
    derivative = gaussian(x, sigma)
    for _ in range(order):
        (derivative,) = torch.autograd.grad(derivative.sum(), x, create_graph=True)
    torch.testing.assert_close(gaussian_derivative(x, sigma, order), derivative, rtol=1e-9, atol=1e-9)
    scaled = x / sigma
    formula = (-1) ** order * sigma**-order * hermite(order, scaled) * gaussian(x, sigma)
    torch.testing.assert_close(derivative, formula, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("order", range(6))
def test_the_definition_of_hermite_polynomials(order: int):
    """He_n(x) = (−1)ⁿ e^{x²/2} ∂ⁿ e^{−x²/2}."""
    x = torch.linspace(-3, 3, 25, dtype=torch.float64, requires_grad=True)
    derivative = torch.exp(-(x**2) / 2)
    for _ in range(order):
        (derivative,) = torch.autograd.grad(derivative.sum(), x, create_graph=True)
    torch.testing.assert_close(hermite(order, x), (-1) ** order * torch.exp(x**2 / 2) * derivative)


@pytest.mark.parametrize("orders", [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (2, 3)], ids=str)
@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_gamma_normalised_derivatives(orders: tuple[int, int], gamma: float):
    """∂_ξ^α = σ^(γ|α|) ∂_x^α."""
    x, sigma = axis(6), 1.7
    plain = gaussian_derivative(x, sigma, orders[0])[:, None] * gaussian_derivative(x, sigma, orders[1])
    kernel = gaussian_derivative_kernel((x, x), sigma, orders, gamma=gamma)
    torch.testing.assert_close(kernel, sigma ** (gamma * sum(orders)) * plain)


@pytest.mark.parametrize("orders", [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (1, 2)], ids=str)
@pytest.mark.parametrize("s", [0.5, 2**0.25, 3.0])
def test_a_rescaled_gaussian_derivative_is_scale_normalised(orders: tuple[int, int], s: float):
    """h = C σ^|α| g_{x^α}(·; σ) has h_s(x) = h(x/s)/s^N = C (sσ)^|α| g_{x^α}(x; sσ)."""
    sigma, C, x = 1.4, 0.7, axis(12) / 2
    h_s = C * gaussian_derivative_kernel((x / s, x / s), sigma, orders, gamma=1) / s**2
    expected = C * gaussian_derivative_kernel((x, x), s * sigma, orders, gamma=1)
    torch.testing.assert_close(h_s, expected, rtol=1e-10, atol=1e-14)
    if sum(orders):  # without the normalisation it fails
        plain = C * gaussian_derivative_kernel((x / s, x / s), sigma, orders) / s**2
        assert not torch.allclose(plain, C * gaussian_derivative_kernel((x, x), s * sigma, orders))


def derivative(signal: Signal, sigma: float, n: int, orders: tuple[int, int]) -> Tensor:
    """∂^α of the signal at spacing σ about the origin, (n, n), by autograd."""
    steps = sigma * (torch.arange(n, dtype=torch.float64) - (n - 1) / 2)
    rows, columns = (x.clone().requires_grad_() for x in torch.meshgrid(steps, steps, indexing="ij"))
    value = signal(rows, columns)
    for place, order in ((rows, orders[0]), (columns, orders[1])):
        for _ in range(order):
            (value,) = torch.autograd.grad(value.sum(), place, create_graph=True)
    return value.detach()


@pytest.mark.parametrize("orders", [(1, 0), (0, 1), (2, 0), (1, 1), (0, 2)], ids=str)
@pytest.mark.parametrize("sigma", [1.0, 2**0.5, 2.0, 3.0])
def test_a_gaussian_derivative_in_all_channels_is_scale_normalised(orders: tuple[int, int], sigma: float):
    """One kernel σ₀^|α| g_{x^α}(·; σ₀) on rescaled images gives (sσ₀)^|α| L_{x^α}(·; sσ₀) on the original."""
    f, inner, radius, n = pattern(6.0), 1.5, 9, 27
    kernel = gaussian_derivative_kernel((axis(radius), axis(radius)), inner, orders, gamma=1)
    seen = F.conv2d(windows(f, ScaleGrid.of(sigma), n), kernel.flip(0, 1)[None, None])[0, 0]
    truth = derivative(f.smoothed(sigma * inner), sigma, len(seen), orders)
    normalised = (sigma * inner) ** sum(orders) * truth
    bound = kernel.abs().sum() * f.bilinear_error if sigma % 1 else 1e-5
    assert (seen - normalised).abs().max() <= bound
    if sigma >= 2:
        assert (seen - inner ** sum(orders) * truth).abs().max() > 0.02


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("angle", [0.0, 0.5, 2.1])
def test_a_directional_derivative_in_all_channels_is_scale_normalised(order: int, angle: float):
    """(e·∇)ⁿ is a sum of partial derivatives of one order, so the same factor (sσ₀)ⁿ normalises it."""
    f, inner, radius, sigma, n = pattern(6.0), 1.5, 10, 2.0, 29
    e = (math.cos(angle), math.sin(angle))
    kernel = directional_derivative_kernel((axis(radius), axis(radius)), inner, e, order, gamma=1)
    seen = F.conv2d(windows(f, ScaleGrid.of(sigma), n), kernel.flip(0, 1)[None, None])[0, 0]
    smoothed = f.smoothed(sigma * inner)
    steps = sigma * (torch.arange(len(seen), dtype=torch.float64) - (len(seen) - 1) / 2)
    along = torch.zeros(len(seen), len(seen), dtype=torch.float64, requires_grad=True)
    value = smoothed(steps[:, None] + along * e[0], steps[None, :] + along * e[1])
    for _ in range(order):
        (value,) = torch.autograd.grad(value.sum(), along, create_graph=True)
    normalised = (sigma * inner) ** order * value.detach()
    assert (seen - normalised).abs().max() <= 1e-5
    assert (seen - inner**order * value.detach()).abs().max() > 0.02


@pytest.mark.parametrize("size", [8.0, 8 * RATIO, 16.0])
def test_the_selected_scale_follows_the_objects_size(size: float):
    """Scale selection: for a round blob of size a the normalised Laplacian of size σ₀ wins at σ = a/σ₀."""
    net = ScaleChannelNetwork(BlobDetector(), WIDE_GRID, MaxOverScales(), window=BlobDetector.n)
    (selected,) = selected_scale(net, blob(size).image(SIDE, SIDE))
    assert selected == pytest.approx(size / BlobDetector.size, rel=1e-6)
