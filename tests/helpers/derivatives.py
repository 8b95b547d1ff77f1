"""Continuous Gaussians and their derivatives: the kernels whose scaling laws scale-channel networks inherit.

The paper's section 4 shows that filtering rescaled images with one kernel equals filtering one image with
rescaled kernels, L_h(x; s) = M_h(x/s; 1/s), so that a channel that learnt a Gaussian derivative computes a
scale-normalised one. These are the kernels of that statement, as functions of position.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
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
