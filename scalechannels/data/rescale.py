"""Rescaling of images by any factor about their centre: the one home of the data's resampling conventions.

An image (n x n) becomes (m x m) by y = A x Aᵀ with one m x n matrix per factor, so a set of images is
rescaled by matrix products. Nothing is rounded: "resize to round(s n) pixels, then pad or crop" would move
the centre by up to half a pixel and change the factor by up to 1/(2 s n), differently at each s.

Conventions, each of them an open choice that a test shows the effect of:
- Centre: output pixel j takes the input at (n-1)/2 + (j - (m-1)/2)/s, in pixel-centre coordinates.
- Kernel: Keys' cubic convolution with a = -1/2, the one member of the family that is exact for quadratics.
- Anti-aliasing: below s = 1 the kernel is widened by 1/s, so that it averages what falls into one output
  pixel instead of skipping pixels. At and above 1 nothing changes.
- Weights sum to one for every output pixel, counted over the image and its continuation.
- Continuation: "zero" (a black background without end), "reflect" (mirrored about the centre of the edge
  pixel, which is not repeated, as `F.pad` does it), or "border" (the edge pixel is repeated).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor

from scalechannels.data.image_set import require_one_of
from scalechannels.sampling import inside

Continuation = Literal["zero", "reflect", "border"]
KERNEL_RADIUS = 2  # of Keys' cubic, in pixels of the coarser of the two grids


def keys_cubic(x: Tensor) -> Tensor:
    """Keys' cubic convolution kernel with a = -1/2 at the positions x."""
    x = x.abs()
    inner = (1.5 * x - 2.5) * x * x + 1
    outer = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return torch.where(x < 1, inner, torch.where(x < 2, outer, torch.zeros_like(x)))


def rescaling_matrices(
    scales: Tensor,
    input_size: int,
    output_size: int,
    *,
    continuation: Continuation = "zero",
    antialias: bool = True,
    offsets: Tensor | None = None,
) -> Tensor:
    """The matrix A of each factor in `scales` (S,), on their device: float64 (S, output_size, input_size).

    offsets   (S,): by how many output pixels the centre of the input lies after that of the output
    """
    require_one_of(Continuation, continuation=continuation)
    if input_size < 1 or output_size < 1:
        raise ValueError(f"sizes must be at least 1 pixel; got {input_size} and {output_size}")
    smallest = require_scales(scales)
    kind: dict[str, Any] = {"dtype": torch.float64, "device": scales.device}
    s = scales.double()[:, None]  # (S, 1)
    pixels = torch.arange(output_size, **kind) - (output_size - 1) / 2
    if offsets is not None:
        pixels = pixels - offsets.to(**kind)[:, None]
    u = (input_size - 1) / 2 + pixels / s  # (S, m) where each output pixel looks
    width = (1 / s).clamp_min(1) if antialias else torch.ones_like(s)  # (S, 1)
    reach = math.ceil(KERNEL_RADIUS * (max(1.0, 1 / smallest) if antialias else 1.0))

    # The pixels that an output pixel may take from; weights are counted over the image's continuation too.
    steps = torch.arange(-reach, reach + 2, **kind)
    near = keys_cubic(((u - u.floor())[..., None] - steps) / width[..., None])  # (S, m, steps)
    total = near.sum(-1, keepdim=True)
    if continuation == "zero":
        positions = torch.arange(input_size, **kind)
        return keys_cubic((u[..., None] - positions) / width[..., None]) / total  # (S, m, n)
    positions = inside((u.floor()[..., None] + steps).long(), input_size, continuation)
    return near.new_zeros(*u.shape, input_size).scatter_add_(2, positions, near / total)


def rescale(
    images: Tensor,
    scales: float | Tensor,
    output_size: int | None = None,
    *,
    continuation: Continuation = "zero",
    antialias: bool = True,
    offsets: Tensor | None = None,
) -> Tensor:
    """Square images (N, ..., n, n) rescaled by one factor or by one each, as float32 (N, ..., m, m).

    m is n by default. The result is cropped or continued about the centre, or about a point `offsets` (N, 2)
    rows and columns from it; over- and undershoot of the kernel is kept, so values may leave the range of the
    input by some 10 %.
    """
    if images.ndim < 3 or images.shape[-1] != images.shape[-2]:
        raise ValueError(f"images must be square, (N, ..., n, n); got the shape {tuple(images.shape)}")
    factors = as_scales(scales, len(images), images.device)
    size, between = images.shape[-1], images.shape[1:-2]

    def matrices(along: Tensor | None) -> Tensor:
        every = factors if along is None else factors.expand(len(images))
        made = rescaling_matrices(
            every, size, output_size or size, continuation=continuation, antialias=antialias, offsets=along
        ).float()
        return made.view(len(every), *(1 for _ in between), *made.shape[1:])

    rows = matrices(None if offsets is None else offsets[:, 0])
    columns = rows if offsets is None else matrices(offsets[:, 1])
    with full_precision():
        return rows @ images.float() @ columns.mT


def rescaled_bytes(
    images: Tensor,
    scales: float | Tensor,
    output_size: int | None = None,
    *,
    continuation: Continuation = "zero",
    offsets: Tensor | None = None,
    chunk: int | None = None,
) -> Tensor:
    """Images of bytes as `rescale` makes them, over- and undershoot clipped: float32 from 0 to 1.

    Made `chunk` images at a time, which bounds the memory: few on a CPU, many on a GPU.
    """
    if images.ndim < 3 or images.shape[-1] != images.shape[-2]:
        raise ValueError(f"images must be square, (N, ..., n, n); got the shape {tuple(images.shape)}")
    factors = as_scales(scales, len(images), images.device)
    size = output_size or images.shape[-1]
    result = torch.empty((*images.shape[:-2], size, size), device=images.device)
    step = chunk or (128 if images.device.type == "cpu" else 1024)
    for start in range(0, len(images), step):
        part = slice(start, start + step)
        own = factors[part] if len(factors) == len(images) > 1 else factors[0]
        moved = None if offsets is None else offsets[part]
        made = rescale(images[part], own, size, continuation=continuation, offsets=moved)
        result[part] = made.clamp_(0, 255).div_(255)
    return result


def as_scales(scales: float | Tensor, count: int, device: torch.device | str) -> Tensor:
    """One factor for all images as (1,), or one each as (count,), in float64 on the device; all positive."""
    factors = torch.as_tensor(scales, dtype=torch.float64).to(device)
    if factors.ndim == 0:
        factors = factors[None]
    elif factors.shape != (count,):
        raise ValueError(
            f"scales must be one, or one for each of {count} images; got the shape {tuple(factors.shape)}"
        )
    require_scales(factors)
    return factors


def require_scales(scales: Tensor) -> float:
    """The smallest of the factors, after a check that all of them are positive and finite."""
    if not len(scales):
        return 1.0
    smallest, largest = float(scales.min()), float(scales.max())
    if not (smallest > 0 and math.isfinite(largest)):
        raise ValueError(f"scale factors must be positive and finite; got {smallest} to {largest}")
    return smallest


@contextmanager
def full_precision() -> Iterator[None]:
    """Float32 matrix products keep all their bits in the block.

    Training code often allows TF32, which rounds factors to 10 bits: a GPU would be off by a grey level.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
