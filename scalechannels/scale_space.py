"""Gaussian scale space on a pixel grid: the discrete Gaussian, and smoothing with it."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


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
    exact = torch.tensor([variance], dtype=torch.float64, device="cpu")  # other devices may not have the type
    wide = discrete_gaussian_kernels(exact, max(radius, enough))[0]
    middle = len(wide) // 2
    kernel = wide[middle - radius : middle + radius + 1]
    return (kernel / kernel.sum()).to(dtype)


def discrete_gaussian_kernels(variances: Tensor, radius: int) -> Tensor:
    """The kernels of several variances (S,) at once, all of one radius, in their type: (S, 2·radius + 1)."""
    points = 4 * radius + 16
    kind: dict[str, Any] = {"dtype": variances.dtype, "device": variances.device}
    theta = torch.arange(points, **kind) * (2 * math.pi / points)
    n = torch.arange(-radius, radius + 1, **kind)
    spectrum = torch.exp(variances[:, None] * (torch.cos(theta) - 1))  # (S, points)
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
