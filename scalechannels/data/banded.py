"""Products of many images with matrices that are zero except near their diagonal, as those that smooth.

A matrix is split into blocks of a few pixels out, without the zeros outside the band: half of the work or
less, and on a CPU numpy multiplies such small matrices, image by image, at the speed of large ones: they stay
in the cache, and they are too small for its linear algebra to spread over threads. A GPU rather has one large
product; there the same lines run in torch with a single block.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

# Pixels out of a block. Of columns, which lie side by side in memory, as many as the widest registers hold.
# Of rows any number does: fewer are less work outside the band, but more products.
BLOCK = {"rows": 12, "columns": 16}
NEGLIGIBLE = 1e-6  # smaller weights count as zero


class Banded(NamedTuple):
    """One matrix for all images, or one each, to be applied to their rows or to their columns."""

    axis: Literal["rows", "columns"]
    length: int
    blocks: list[tuple[slice, slice, Any]]  # pixels out, pixels in, the weights between them

    @classmethod
    def of(cls, matrices: Tensor, axis: Literal["rows", "columns"], library: Any) -> Banded:
        """From (1, pixels out, pixels in), or (N, ...) for N images, for the arrays of numpy or torch."""
        length = matrices.shape[1]
        weights: Any = matrices.float() if axis == "rows" else matrices.float().mT
        weights = weights[0] if len(weights) == 1 else weights
        if library is torch:
            return cls(axis, length, [(slice(None), slice(None), weights)])
        weights = weights.numpy()
        used: Any = (matrices.numpy() > NEGLIGIBLE).any(0) | (matrices.numpy() < -NEGLIGIBLE).any(0)
        blocks = []
        for start in range(0, length, BLOCK[axis]):
            out = slice(start, start + BLOCK[axis])
            columns = used[out].any(0).nonzero()[0]
            into = slice(columns[0], columns[-1] + 1) if len(columns) else slice(1)
            part = weights[..., out, into] if axis == "rows" else weights[..., into, out]
            blocks.append((out, into, np.ascontiguousarray(part)))
        return cls(axis, length, blocks)

    def __call__(self, images: Any, memory: Any) -> Any:
        """The product with images (N, rows, columns), written into the beginning of `memory`."""
        library: Any = np if isinstance(images, np.ndarray) else torch
        shape = [*images.shape]
        shape[1 if self.axis == "rows" else 2] = self.length
        result = memory[: math.prod(shape)].reshape(shape)
        for out, into, weights in self.blocks:
            if self.axis == "rows":
                library.matmul(weights, images[:, into], out=result[:, out])
            else:
                library.matmul(images[:, :, into], weights, out=result[:, :, out])
        return result
