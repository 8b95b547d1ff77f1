"""Gaussian scale space: the kernels whose scaling laws scale-channel networks inherit.

The paper's section 4 shows that filtering rescaled images with one kernel equals filtering one image with
rescaled kernels, L_h(x; s) = M_h(x/s; 1/s), so that a channel that learnt a Gaussian derivative computes a
scale-normalised one. These are the kernels of that statement: continuous ones as functions of position, and
the discrete Gaussian for smoothing images.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def gaussian(x: Tensor, sigma: float) -> Tensor:
    """The normalised 1-D Gaussian g(x; σ) at the positions x."""
    if not sigma > 0:
        raise ValueError(f"sigma must be positive; got {sigma}")
    return torch.exp(-(x**2) / (2 * sigma**2)) / (math.sqrt(2 * math.pi) * sigma)


def hermite(order: int, x: Tensor) -> Tensor:
    """The probabilists' Hermite polynomial He_n(x), by He_{n+1} = x·He_n − n·He_{n−1}."""
    if order < 0:
        raise ValueError(f"order must be at least 0; got {order}")
    previous, current = torch.zeros_like(x), torch.ones_like(x)
    for n in range(order):
        previous, current = current, x * current - n * previous
    return current


def gaussian_derivative(x: Tensor, sigma: float, order: int) -> Tensor:
    """∂ₓⁿ g(x; σ) = (−1)ⁿ σ⁻ⁿ He_n(x/σ) g(x; σ) at the positions x."""
    factor = gaussian(x, sigma)
    return (-1 / sigma) ** order * hermite(order, x / sigma) * factor


def gaussian_derivative_kernel(
    x: Sequence[Tensor], sigma: float, orders: Sequence[int], *, gamma: float = 0.0
) -> Tensor:
    """The N-D partial derivative σ^(γ|α|) ∂^α g on the product of the axes x; γ = 1 is scale-normalised.

    With γ = 1 the kernels of all scales are rescaled copies of one another with constant L₁ norm, which is
    what a kernel shared between scale channels amounts to.
    """
    if len(x) != len(orders):
        raise ValueError(f"orders must hold one for each axis; got {len(orders)} for {len(x)} axes")
    kernel = torch.ones((), dtype=x[0].dtype, device=x[0].device)
    for axis, order in zip(x, orders, strict=True):
        kernel = kernel[..., None] * gaussian_derivative(axis, sigma, order)
    return kernel * sigma ** (gamma * sum(orders))  # one axis of the result for each axis in x


def directional_derivative_kernel(
    x: Sequence[Tensor], sigma: float, direction: Sequence[float], order: int, *, gamma: float = 0.0
) -> Tensor:
    """σ^(γn) (e·∇)ⁿ g in two dimensions, for the unit vector e along `direction`."""
    if len(x) != 2 or len(direction) != 2:
        raise ValueError(f"x and direction must have two axes; got {len(x)} and {len(direction)}")
    norm = math.hypot(*direction)
    if norm == 0:
        raise ValueError("the direction must not be the zero vector")
    first, second = (component / norm for component in direction)
    terms = [
        math.comb(order, k)
        * first**k
        * second ** (order - k)
        * gaussian_derivative_kernel(x, sigma, (k, order - k), gamma=gamma)
        for k in range(order + 1)
    ]
    return torch.stack(terms).sum(0)


def discrete_gaussian_kernel(
    variance: float, *, radius: int | None = None, dtype: torch.dtype = torch.float64
) -> Tensor:
    """The discrete analogue of the Gaussian, T(n; t) = e⁻ᵗ I_n(t) for n = −radius … radius, summing to 1.

    Unlike the sampled Gaussian it has exactly the variance t, and smoothing by t₁ then t₂ equals smoothing
    by t₁ + t₂. It is the inverse Fourier transform of exp(t (cos θ − 1)); that integrand is periodic and
    smooth, so the sum over equidistant θ is exact to rounding. The cut-off tail is returned to the kernel
    in proportion, which with the default radius moves no weight by more than 1e-9.
    """
    if variance < 0 or not math.isfinite(variance):
        raise ValueError(f"variance must be finite and at least 0; got {variance}")
    enough = math.ceil(7 * math.sqrt(variance) + 4) if variance > 0 else 0
    radius = enough if radius is None else radius
    wide = discrete_gaussian_kernels(torch.tensor([variance], dtype=torch.float64), max(radius, enough))[0]
    middle = len(wide) // 2
    kernel = wide[middle - radius : middle + radius + 1]
    return (kernel / kernel.sum()).to(dtype)


def discrete_gaussian_kernels(variances: Tensor, radius: int) -> Tensor:
    """The kernels of several variances (S,) at once, all of one radius, in float64: (S, 2·radius + 1)."""
    points = 4 * radius + 16
    kind: dict[str, Any] = {"dtype": torch.float64, "device": variances.device}
    theta = torch.arange(points, **kind) * (2 * math.pi / points)
    n = torch.arange(-radius, radius + 1, **kind)
    spectrum = torch.exp(variances.double()[:, None] * (torch.cos(theta) - 1))  # (S, points)
    kernels = (spectrum @ torch.cos(theta[:, None] * n) / points).clamp_min(0)
    return kernels / kernels.sum(1, keepdim=True)


def smooth(images: Tensor, variance: float) -> Tensor:
    """Images (…, H, W) smoothed by the discrete Gaussian of this variance, mirrored at the border."""
    kernel = discrete_gaussian_kernel(variance, dtype=images.dtype).to(images.device)
    for axis in (-2, -1):
        images = _convolve(images.movedim(axis, -1), kernel).movedim(-1, axis)
    return images


def _convolve(rows: Tensor, kernel: Tensor) -> Tensor:
    flat = rows.reshape(-1, 1, rows.shape[-1])
    radius = len(kernel) // 2
    while radius > 0 and radius >= flat.shape[-1]:  # F.pad mirrors at most once; trim what is beyond
        kernel = kernel[1:-1] / kernel[1:-1].sum()
        radius -= 1
    padded = F.pad(flat, (radius, radius), mode="reflect") if radius else flat
    return F.conv1d(padded, kernel.view(1, 1, -1)).reshape(rows.shape)
