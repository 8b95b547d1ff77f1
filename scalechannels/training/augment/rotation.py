"""training.rotation and training.stretch: every image is turned and stretched about its centre.

Few objects are seen in few attitudes; turned and stretched ones stand for those that are missing. A stretch
by e^r along a random direction comes with a shrinking by e^-r across it, so that no area changes: training
images keep the size that they have, which is what scale-channel networks are tested on.

Law: the image at p is that of before at c + A (p − c), c the centre, det A = 1. Limits: up to bilinear
interpolation; what comes in from outside the image is its border or its reflection, and what lies in a corner
may leave it.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from scalechannels.sampling import PADDING, Outside


class Rotation(nn.Module):
    """Images (R, B, C, H, W) to turned and stretched ones, others each time.

    degrees    the largest angle, in either direction
    stretch    the largest r
    outside    what continues an image
    """

    def __init__(self, degrees: float, stretch: float = 0.0, *, outside: Outside = "border") -> None:
        super().__init__()
        if not 0 <= degrees <= 180 or not 0 <= stretch < 1:
            raise ValueError(
                f"degrees must be from 0 to 180, and stretch at least 0 and below 1; got {degrees} and "
                f"{stretch}"
            )
        self.degrees, self.stretch, self.outside = degrees, stretch, outside

    def forward(self, images: Tensor, *_: Tensor) -> Tensor:
        one_by_one = images.flatten(0, 1)  # (R·B, C, H, W)
        return self.seen(one_by_one, self.drawn(one_by_one)).view_as(images)

    def drawn(self, images: Tensor) -> Tensor:
        """A matrix for each image: (N, 2, 2), for columns and rows."""
        draws = 2 * torch.rand(3, len(images), device=images.device) - 1
        angle = draws[0] * math.radians(self.degrees)
        # In polar coordinates: the length of the stretch is even, its direction is any.
        stretch, direction = self.stretch * draws[1], math.pi * draws[2]
        return _turned(angle) @ _stretched(stretch * direction.cos(), stretch * direction.sin())

    def seen(self, images: Tensor, matrices: Tensor) -> Tensor:
        """Images (N, C, H, W) as they are seen through matrices (N, 2, 2) about their centres."""
        height, width = (max(side - 1, 1) for side in images.shape[2:])
        # grid_sample counts from −1 to 1 along each side, whatever its length. The numbers come from Python,
        # since a captured CUDA graph must not copy a tensor from the host.
        (xx, xy), (yx, yy) = (row.unbind(1) for row in matrices.unbind(1))
        scaled = torch.stack([xx, xy * (height / width), yx * (width / height), yy], 1).unflatten(1, (2, 2))
        grid = F.affine_grid(F.pad(scaled, (0, 1)), list(images.shape), align_corners=True)
        shown = F.grid_sample(images.float(), grid, padding_mode=PADDING[self.outside], align_corners=True)
        return shown.to(images.dtype)


def _turned(angle: Tensor) -> Tensor:
    """Rotations (N, 2, 2) by angles (N,)."""
    cosine, sine = angle.cos(), angle.sin()
    return torch.stack([cosine, -sine, sine, cosine], 1).unflatten(1, (2, 2))


def _stretched(along: Tensor, aslant: Tensor) -> Tensor:
    """The exponentials (N, 2, 2) of [[along, aslant], [aslant, −along]]: their determinant is 1."""
    length = (along.square() + aslant.square()).sqrt()
    even, odd = length.cosh(), torch.where(length > 1e-6, length.sinh() / length.clamp_min(1e-6), 1.0)
    parts = [even + odd * along, odd * aslant, odd * aslant, even - odd * along]
    return torch.stack(parts, 1).unflatten(1, (2, 2))
