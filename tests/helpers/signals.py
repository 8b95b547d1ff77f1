"""Ideal signals: functions on the plane whose rescaling and translation are known in closed form.

A signal is a sum of anisotropic Gaussians. It can be sampled anywhere, scaled and moved without any
interpolation, and its second derivatives are bounded in closed form, so a test knows the exact answer and how
far bilinear interpolation may lie from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Blob:
    """height · exp(−½ uᵀ P u) with u the offset from (row, column) and P the precision matrix."""

    height: float
    row: float
    column: float
    precision: tuple[float, float, float]  # P_rr, P_rc, P_cc


@dataclass(frozen=True)
class Signal:
    """A sum of blobs; the origin is the point about which images are scaled."""

    blobs: tuple[Blob, ...]

    def __call__(self, row: Tensor, column: Tensor) -> Tensor:
        total = torch.zeros(torch.broadcast_shapes(row.shape, column.shape), dtype=torch.float64)
        for blob in self.blobs:
            u, v = row - blob.row, column - blob.column
            rr, rc, cc = blob.precision
            total = total + blob.height * torch.exp(-(rr * u * u + 2 * rc * u * v + cc * v * v) / 2)
        return total

    def scaled(self, t: float) -> Signal:
        """S_t f: x ↦ f(x / t)."""
        return Signal(
            tuple(
                Blob(
                    blob.height,
                    blob.row * t,
                    blob.column * t,
                    tuple(value / t**2 for value in blob.precision),  # type: ignore[arg-type]
                )
                for blob in self.blobs
            )
        )

    def moved(self, row: float, column: float) -> Signal:
        """D_δ f: x ↦ f(x − δ)."""
        return Signal(
            tuple(
                Blob(blob.height, blob.row + row, blob.column + column, blob.precision) for blob in self.blobs
            )
        )

    def smoothed(self, sigma: float) -> Signal:
        """f * g(·; σ): covariances add, and the volume under each blob stays."""
        blobs = []
        for blob in self.blobs:
            rr, rc, cc = blob.precision
            precision = torch.tensor([[rr, rc], [rc, cc]], dtype=torch.float64)
            covariance = precision.inverse()
            wider = covariance + sigma**2 * torch.eye(2, dtype=torch.float64)
            height = blob.height * float((covariance.det() / wider.det()).sqrt())
            (rr, rc), (_, cc) = wider.inverse().tolist()
            blobs.append(Blob(height, blob.row, blob.column, (rr, rc, cc)))
        return Signal(tuple(blobs))

    def image(self, height: int, width: int) -> Tensor:
        """The signal at the pixel centres of an image with its origin in the middle: (1, 1, H, W)."""
        rows, columns = (torch.arange(side, dtype=torch.float64) - (side - 1) / 2 for side in (height, width))
        return self(rows[:, None], columns[None, :])[None, None]

    def window(self, sigma: float, n: int, centre: tuple[float, float] = (0.0, 0.0)) -> Tensor:
        """What channel σ should see: (n, n) samples at spacing σ about the centre, without any image."""
        steps = sigma * (torch.arange(n, dtype=torch.float64) - (n - 1) / 2)
        return self(centre[0] + steps[:, None], centre[1] + steps[None, :])

    @property
    def bilinear_error(self) -> float:
        """An upper bound for |bilinear interpolation of the image − signal|.

        Linear interpolation at spacing 1 errs by at most 1/8 of the largest second derivative; two axes, one
        after the other, add up. For a Gaussian |∂²_e| <= height · eᵀPe, with equality in its middle, because
        (eᵀPu)² <= (eᵀPe)(uᵀPu) and |r² − 1|·exp(−r²/2) <= 1.
        """
        return sum(abs(blob.height) * (blob.precision[0] + blob.precision[2]) for blob in self.blobs) / 8


def blob(size: float, height: float = 1.0, row: float = 0.0, column: float = 0.0) -> Signal:
    """One round Gaussian of standard deviation `size`."""
    return Signal((Blob(height, row, column, (size**-2, 0.0, size**-2)),))


def ellipse(
    long: float, short: float, angle: float, height: float = 1.0, row: float = 0.0, column: float = 0.0
) -> Signal:
    """A Gaussian of two standard deviations, its long axis at `angle` from the rows' axis."""
    c, s = math.cos(angle), math.sin(angle)
    p, q = long**-2, short**-2
    return Signal(
        (Blob(height, row, column, (c * c * p + s * s * q, c * s * (p - q), s * s * p + c * c * q)),)
    )


def pattern(size: float) -> Signal:
    """An object of about 8·size pixels without any symmetry: no flip, swap or shift goes unnoticed."""
    parts = (
        ellipse(2.4, 1.0, 0.4, 1.0, row=-1.0, column=0.5),
        ellipse(1.6, 1.1, 1.9, -0.7, row=1.5, column=1.8),
        blob(1.0, 0.6, row=1.0, column=-2.2),
    )
    return Signal(tuple(part for signal in parts for part in signal.blobs)).scaled(size)
