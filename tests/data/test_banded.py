"""Banded products against plain ones."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest
import torch

from scalechannels.data.banded import BLOCK, Banded

LIBRARIES = {"numpy": np, "torch": torch}


def band(count: int, length: int, width: int, reach: int = 3) -> torch.Tensor:
    """Random matrices that are zero further than `reach` from their diagonal."""
    weights = torch.randn(
        count, length, width, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    at, into = torch.arange(length)[:, None] * width / length, torch.arange(width)
    return weights * ((at - into).abs() <= reach)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("axis", ["rows", "columns"])
@pytest.mark.parametrize("matrices", [1, 5])
@pytest.mark.parametrize(("length", "width"), [(40, 40), (70, 20), (1, 1), (16, 33)])
def test_equals_the_plain_product(
    library: str, axis: Literal["rows", "columns"], matrices: int, length: int, width: int
) -> None:
    matrix = band(matrices, length, width)
    images = torch.randn(5, width, width, generator=torch.Generator().manual_seed(1))
    expected = matrix.float() @ images if axis == "rows" else images @ matrix.float().mT
    array: Any = images.numpy() if library == "numpy" else images
    memory: Any = LIBRARIES[library].empty(5 * 80 * 80, dtype=LIBRARIES[library].float32)
    made = Banded.of(matrix, axis, LIBRARIES[library])(array, memory)
    np.testing.assert_allclose(np.asarray(made), expected.numpy(), atol=1e-5)
    made[:] = 7
    assert memory[0] == 7  # the result lies in the memory that was given


@pytest.mark.parametrize("axis", ["rows", "columns"])
def test_on_a_cpu_the_zeros_beside_the_band_are_left_out_and_on_a_gpu_there_is_one_product(
    axis: Literal["rows", "columns"],
) -> None:
    matrix = band(2, 100, 100)
    blocks = Banded.of(matrix, axis, np).blocks
    assert len(blocks) == math.ceil(100 / BLOCK[axis])
    for _, _, weights in blocks:
        out, into = weights.shape[1:] if axis == "rows" else weights.shape[:0:-1]
        assert out <= BLOCK[axis]
        assert into <= BLOCK[axis] + 6
    assert len(Banded.of(matrix, axis, torch).blocks) == 1


def test_rows_without_a_weight_become_zero() -> None:
    matrix = torch.zeros(1, 40, 30, dtype=torch.float64)
    matrix[0, 3, 4] = 1
    memory = np.full(2 * 40 * 30, np.nan, np.float32)
    made = Banded.of(matrix, "rows", np)(np.ones((2, 30, 30), np.float32), memory)
    assert made[:, 3].min() == 1
    assert made.sum() == 60
