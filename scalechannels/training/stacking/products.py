"""Convolutions and dense layers of R runs as batched matrix products, made for layers too small for a GPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

PIECES, PIECE_ROWS = 512, 128
"""A weight's gradient is summed over at most so many pieces of at least so many rows."""


def patches(maps: Tensor, side: int, stride: int) -> tuple[Tensor, tuple[int, int]]:
    """All side x side patches of maps (R, N, H, W, C) as rows (R, N·h·w, columns), and (h, w).

    A row holds a patch, features last, up to a multiple of 8 columns; what is beyond the patch means nothing.
    """
    R, N, H, W, C = maps.shape
    h, w = (H - side) // stride + 1, (W - side) // stride + 1
    columns = -(-side * side * C // 8) * 8
    if columns > side * side * C:  # one gather with whole rows, instead of many narrow slices
        column = torch.arange(columns, device=maps.device) % (side * side * C)
        within = (column // (side * C) * W + column // C % side) * C + column % C
        row, place = torch.arange(h, device=maps.device), torch.arange(w, device=maps.device)
        corner = (row[:, None] * W + place) * stride * C  # (h, w)
        index = (corner[:, :, None] + within).flatten()  # (h·w·columns,)
        return maps.flatten(2)[:, :, index].view(R, N * h * w, columns), (h, w)
    last = (stride * (h - 1) + 1, stride * (w - 1) + 1)
    pieces = [
        maps[:, :, y : y + last[0] : stride, x : x + last[1] : stride]
        for y in range(side)
        for x in range(side)
    ]
    return torch.cat(pieces, dim=-1).view(R, N * h * w, columns), (h, w)


class _Product(torch.autograd.Function):
    """A batched matrix product whose weight has its gradient computed in pieces.

    That gradient is a sum over all M rows into a tiny matrix, which one matrix product leaves to a few of a
    GPU's processors; as many products and a sum, in float32, it fills them.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(rows, weight)
        return torch.bmm(rows, weight)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor]:
        rows, weight = ctx.saved_tensors
        of_rows = torch.bmm(gradient, weight.mT) if ctx.needs_input_grad[0] else None  # the first have none
        R, M = rows.shape[:2]
        most = max(1, min(PIECES // R, M // PIECE_ROWS))
        pieces = max(count for count in range(1, most + 1) if M % count == 0)
        rows, gradient = (t.reshape(R * pieces, M // pieces, -1) for t in (rows, gradient))
        summed = torch.bmm(rows.mT, gradient).unflatten(0, (R, pieces)).sum(1, dtype=torch.float32)
        return of_rows, summed.to(weight.dtype)  # (R, M, in), (R, in, out)


product = _Product.apply
"""Rows (R, M, in) by weight (R, in, out)."""
