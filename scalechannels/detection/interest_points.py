"""Points of interest: where an image has a blob, and of what size, by classical scale-space theory.

A bright blob of standard deviation a is a maximum, over position and scale, of the scale-normalised Laplacian
−σ²·∇²L, at its middle and at σ = a, where L is the image smoothed by a Gaussian of standard deviation σ.
Detection can look there first, and foveate then.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from scalechannels.sampling import most_digits, require_images
from scalechannels.scale_space import discrete_gaussian_kernel, smooth

LEVELS = 4  # scales in an octave
COARSEST = 1.6  # standard deviation, in pixels of an octave's image, of its first level
FEWEST = 8  # pixels along the shorter side below which no further octave is looked at


class InterestPoints(NamedTuple):
    """Blobs, the strongest first."""

    centres: Tensor  # (N, 2) float64 (see `most_digits`), rows and columns in pixel-centre coordinates
    sigmas: Tensor  # (N,), standard deviations in pixels
    strengths: Tensor  # (N,) the scale-normalised Laplacian there


@torch.no_grad()
def interest_points(
    image: Tensor, *, smallest: float = COARSEST, largest: float | None = None, threshold: float = 0.05
) -> InterestPoints:
    """The bright blobs of an image (1, H, W), of standard deviations from `smallest` to `largest` pixels.

    threshold  what the Laplacian has to exceed; a Gaussian blob of height h has h/2, whatever its size

    Law: scaling the image scales the points. Limit: between the sampled scales and pixels the maximum is
    interpolated by parabolas; images are halved from octave to octave, which costs a little accuracy.
    """
    if image.ndim != 3 or image.shape[0] != 1:
        raise ValueError(f"the image must be grey, (1, H, W); got the shape {tuple(image.shape)}")
    require_images(image[None])
    largest = min(image.shape[1:]) / 4 if largest is None else largest
    if not 0 < smallest < math.inf or not largest < math.inf:
        raise ValueError(f"scales must be positive and finite; got {smallest} and {largest}")
    found: list[Tensor] = []
    picture, spacing = image, 1  # every octave has half the pixels along a side
    inner = 0.0  # variance of the smoothing so far, in the octave's own pixels
    base = min(smallest, COARSEST) / 2 ** (1 / LEVELS)  # one level before the first: a peak needs neighbours
    while base * spacing <= largest and min(picture.shape[1:]) >= min(FEWEST, *image.shape[1:]):
        sigmas = [base * 2 ** (level / LEVELS) for level in range(LEVELS + 2)]
        levels = []
        for sigma in sigmas:
            picture = _smoothed(picture, max(sigma**2 - inner, 0.0))
            inner = sigma**2
            levels.append(picture)
        octave = _peaks(torch.cat(levels), torch.tensor(sigmas), threshold)
        octave[:, :3] *= spacing
        found.append(octave)
        # The next octave starts one doubling later, at every second pixel of the level with twice the blur.
        picture, inner, spacing = levels[LEVELS][:, ::2, ::2], sigmas[LEVELS] ** 2 / 4, spacing * 2
        base = sigmas[LEVELS] / 2
    points = torch.cat(found) if found else image.new_empty(0, 4, dtype=most_digits(image.device))
    points = points[(points[:, 2] >= smallest) & (points[:, 2] <= largest)]
    points = points[points[:, 3].argsort(descending=True, stable=True)]
    return InterestPoints(points[:, :2], points[:, 2], points[:, 3])


def _smoothed(picture: Tensor, variance: float) -> Tensor:
    """As `smooth`, with a kernel that ends at four standard deviations, and by sums of shifted images."""
    radius = math.ceil(4 * math.sqrt(variance)) + 1
    if variance == 0 or radius >= min(picture.shape[1:]):
        return smooth(picture, variance)
    kernel = discrete_gaussian_kernel(variance, radius=radius).tolist()
    for axis, padding in ((1, (0, 0, radius, radius)), (2, (radius, radius, 0, 0))):
        padded, size = F.pad(picture, padding, mode="reflect"), picture.shape[axis]
        picture = padded.narrow(axis, radius, size) * kernel[radius]
        for by in range(1, radius + 1):  # the kernel is symmetric
            both = padded.narrow(axis, radius - by, size) + padded.narrow(axis, radius + by, size)
            picture.add_(both, alpha=kernel[radius + by])
    return picture


def normalised(levels: Tensor, sigmas: Tensor) -> Tensor:
    """The scale-normalised Laplacian of smoothed images (L, H, W), positive at bright blobs."""
    return -(sigmas.to(levels)[:, None, None] ** 2) * (_second(levels, 1) + _second(levels, 2))


def _second(levels: Tensor, axis: int) -> Tensor:
    """Second derivative to fourth order: the plain differences of second order would favour coarse scales."""
    padding = (0, 0, 2, 2) if axis == 1 else (2, 2, 0, 0)
    padded = F.pad(levels[:, None], padding, mode="replicate")[:, 0]
    far, near, _, next_, last = (padded.narrow(axis, by, levels.shape[axis]) for by in range(5))
    return (-far + 16 * near - 30 * levels + 16 * next_ - last) / 12


def _peaks(levels: Tensor, sigmas: Tensor, threshold: float) -> Tensor:
    """Maxima over position and scale of one octave: (N, 4) of row, column, σ and strength."""
    values, kind = normalised(levels, sigmas), most_digits(levels.device)
    inside = values[1:-1]  # (LEVELS, H, W): those with a finer and a coarser neighbour
    around = _highest_around(values)
    level, row, column = ((inside >= around) & (inside > threshold)).nonzero().unbind(1)
    level = level + 1
    here = values[level, row, column].to(kind)
    height, width = values.shape[1:]
    finer, coarser = values[level - 1, row, column], values[level + 1, row, column]
    above, below = (values[level, (row + by).clamp(0, height - 1), column] for by in (-1, 1))
    left, right = (values[level, row, (column + by).clamp(0, width - 1)] for by in (-1, 1))
    offsets = [
        parabola(low.to(kind), here, high.to(kind))
        for low, high in ((finer, coarser), (above, below), (left, right))
    ]
    sigma = sigmas[0].to(here) * 2 ** ((level + offsets[0]) / LEVELS)
    return torch.stack((row + offsets[1], column + offsets[2], sigma, here), 1)


def _highest_around(values: Tensor) -> Tensor:
    """The maximum over 3x3x3 neighbours, for the inner levels. (Ten times as fast as max_pool3d on a CPU.)"""
    values = F.pad(values[:, None], (1, 1, 1, 1), value=-math.inf)[:, 0]
    for axis in (1, 2, 0):
        inner = values.shape[axis] - 2
        first, second, third = (values.narrow(axis, by, inner) for by in range(3))
        values = torch.maximum(torch.maximum(first, second), third)
    return values  # (LEVELS, H, W)


def parabola(low: Tensor, here: Tensor, high: Tensor) -> Tensor:
    """Where the parabola through three neighbours has its maximum, from the middle one: −1/2 to 1/2."""
    bend = low - 2 * here + high
    return torch.where(bend < 0, (low - high) / (2 * bend).clamp_max(-1e-30), 0.0).clamp(-0.5, 0.5)
