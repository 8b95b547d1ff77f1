"""Products of many images with matrices that are zero except near their diagonal, as in smoothing.

The matrix is cut into blocks of a few rows, each without the zeros beside it. That is half of the work or
less, and on a CPU numpy multiplies such small matrices, image by image, at the speed of large ones: they stay
in the cache, and they are too small for the linear algebra library to spread over threads of its own. A GPU
rather has one large product; there the same lines run in torch with a single block.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

BLOCK = 16  # rows: as many floats as the widest registers hold
NEGLIGIBLE = 1e-6  # weights up to this count as zero


class Banded(NamedTuple):
    """One matrix for all images, or one each, to be applied to their rows or to their columns."""

    axis: Literal["rows", "columns"]
    length: int
    blocks: list[tuple[slice, slice, Any]]  # pixels out, pixels in, the weights between them

    @classmethod
    def of(cls, matrices: Tensor, axis: Literal["rows", "columns"], library: Any) -> Banded:
        """From (1, pixels out, pixels in), or (N, ...) for N images, for the arrays of numpy or torch."""
        length = matrices.shape[1]
        blocks = []
        for start in range(0, length, BLOCK if library is np else length):
            out = slice(start, start + BLOCK if library is np else length)
            into = _band(matrices[:, out]) if library is np else slice(None)
            weights = matrices[:, out, into].float()
            weights = (weights if axis == "rows" else weights.mT).contiguous()
            weights = weights[0] if len(weights) == 1 else weights
            blocks.append((out, into, weights.numpy() if library is np else weights))
        return cls(axis, length, blocks)

    def __call__(self, images: Any, memory: Any) -> Any:
        """The product with images (N, rows, columns), written into the beginning of `memory`."""
        library = np if isinstance(images, np.ndarray) else torch
        shape = [*images.shape]
        shape[1 if self.axis == "rows" else 2] = self.length
        result = memory[: math.prod(shape)].reshape(shape)
        for out, into, weights in self.blocks:
            if self.axis == "rows":
                library.matmul(weights, images[:, into], out=result[:, out])
            else:
                library.matmul(images[:, :, into], weights, out=result[:, :, out])
        return result


def _band(matrices: Tensor) -> slice:
    """From the first to the last column with a weight."""
    columns = (matrices.abs() > NEGLIGIBLE).any(0).any(0).nonzero()
    return slice(int(columns[0]), int(columns[-1]) + 1) if len(columns) else slice(0, 1)
