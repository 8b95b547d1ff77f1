"""`strongest_places` for a GPU, in Triton: five kernels, and nothing between them but the maps of each layer.

A convolution is a product of matrices whose rows are read where they lie: with the features last, the three
pixels of a patch's row are neighbours in memory. The dense layer, dropout, the classifier and the maximum
over a block of places are one kernel, so codes and logits never leave the processor.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 128
"""Places of one program."""


def strongest_places(
    canvases: Tensor,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    strides: Sequence[int],
    places: Tensor,
    seed: Tensor,
    dropout: float,
    per_place: bool,
) -> tuple[Tensor, Tensor]:
    """See `strongest.plain_strongest_places`; canvases have one channel, feature counts are powers of two."""
    R, B = canvases.shape[:2]
    kind = canvases.dtype
    maps = canvases.flatten(0, 1)  # (R·B, height, width, 1)
    for weight, bias, stride in zip(weights[:-2], biases[:-2], strides, strict=True):
        N, height, width, C = maps.shape
        h, w, features = (height - 3) // stride + 1, (width - 3) // stride + 1, weight.shape[2]
        columns = 16 if C == 1 else triton.next_power_of_2(3 * C)
        out = torch.empty(N, h, w, features, dtype=kind, device=maps.device)
        _convolve[(triton.cdiv(h * w, BLOCK), N)](
            maps, _rows(weight, 1 if C == 1 else 3, columns, kind), bias, out,
            h * w, width, height * width * C, w, B,
            C, features, stride, columns, BLOCK, num_warps=4,
        )  # fmt: skip
        maps = out
    N, height, width, C = maps.shape
    dense, classifier = weights[-2:]
    hidden, K = classifier.shape[1:]
    side = int((dense.shape[1] // C) ** 0.5)
    wide, classes = max(16, triton.next_power_of_2(hidden)), max(16, triton.next_power_of_2(K))
    blocks, threshold = triton.cdiv(len(places), BLOCK), int(dropout * 2**32)
    best = torch.empty(N, blocks, classes, device=maps.device)
    where = torch.empty(N, blocks, classes, dtype=torch.long, device=maps.device)
    columns = triton.next_power_of_2(side * C)
    dense_rows = torch.nn.functional.pad(_rows(dense, side, columns, kind), (0, wide - hidden))
    classifier = torch.nn.functional.pad(classifier, (0, classes - K, 0, wide - hidden)).to(kind).contiguous()
    _classify[(blocks, N)](
        maps, dense_rows, biases[-2], classifier, biases[-1], places, seed, best, where,
        len(places), width - side + 1, width, height * width * C, B, blocks,
        threshold, 1 / (1 - dropout), int(per_place),
        C, side, columns, hidden, wide, K, classes, BLOCK, num_warps=8,
    )  # fmt: skip
    chosen = best.argmax(1, keepdim=True)  # (N, 1, classes)
    found = where.gather(1, chosen)[:, 0, :K].contiguous()  # (N, K)
    mask = torch.empty(N, K, hidden, dtype=torch.bool, device=maps.device)
    _write_kept[(N * K,)](found, seed, mask, threshold, int(per_place), K, hidden, wide, num_warps=1)
    return found.view(R, B, K), mask.view(R, B, K, hidden)


def _rows(weight: Tensor, rows: int, columns: int, kind: torch.dtype) -> Tensor:
    """A weight (R, rows·c, F) with each row's c columns filled up with zeros: (R, rows, columns, F)."""
    weight = weight.to(kind).unflatten(1, (rows, -1))
    return torch.nn.functional.pad(weight, (0, 0, 0, columns - weight.shape[2])).contiguous()


@triton.jit
def _convolve(
    maps, weight, bias, out, count, width, image, out_width, per_run,
    C: tl.constexpr, F: tl.constexpr, STRIDE: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """ReLU of a 3x3 convolution at BLOCK places of one image; `image` is the number of its values."""
    number = tl.program_id(1).to(tl.int64)
    run = number // per_run
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    corner = (place // out_width * width + place % out_width) * (STRIDE * C)
    column, feature = tl.arange(0, COLUMNS), tl.arange(0, F)
    maps += number * image
    total = tl.zeros([BLOCK, F], tl.float32)
    if C == 1:  # too narrow for a product of its own for each row: all nine pixels at once
        offset = column // 3 * width + column % 3
        wanted = inside[:, None] & (column < 9)[None, :]
        patch = tl.load(maps + corner[:, None] + offset[None, :], mask=wanted, other=0.0)
        kernel = tl.load(weight + (run * COLUMNS + column[:, None]) * F + feature[None, :])
        total = tl.dot(patch, kernel, total, input_precision="ieee")
    else:
        wanted = inside[:, None] & (column < 3 * C)[None, :]
        for row in tl.static_range(3):
            offset = row * width * C + column
            patch = tl.load(maps + corner[:, None] + offset[None, :], mask=wanted, other=0.0)
            kernel = tl.load(weight + ((run * 3 + row) * COLUMNS + column[:, None]) * F + feature[None, :])
            total = tl.dot(patch, kernel, total, input_precision="ieee")
    total = tl.maximum(total + tl.load(bias + run * F + feature)[None, :], 0.0)
    target = out + (number * count + place[:, None]) * F + feature[None, :]
    tl.store(target, total.to(out.dtype.element_ty), mask=inside[:, None])


@triton.jit
def _mixed(state):
    """`strongest._mixed`, in 32 bits."""
    state = (state ^ (state >> 16)) * 0x85EBCA6B
    state = (state ^ (state >> 13)) * 0xC2B2AE35
    return state ^ (state >> 16)


@triton.jit
def _kept(seed, image, place, feature, threshold, per_place):
    """`strongest.kept`, of places times `per_place`, 1 or 0."""
    state = _mixed((tl.load(seed) + image * 0x9E3779B1).to(tl.uint32))
    state += (place * per_place).to(tl.uint32) * 0x85EBCA77 + feature.to(tl.uint32) * 0xC2B2AE3D
    return _mixed(state) >= threshold


@triton.jit
def _write_kept(
    found, seed, mask, threshold, per_place, K: tl.constexpr, HIDDEN: tl.constexpr, WIDE: tl.constexpr
):  # fmt: skip
    """What dropout keeps of the codes at a place that was found."""
    number = tl.program_id(0)
    feature = tl.arange(0, WIDE)
    keep = _kept(seed, (number // K).to(tl.int64), tl.load(found + number), feature, threshold, per_place)
    tl.store(mask + number * HIDDEN + feature, keep, mask=feature < HIDDEN)


@triton.jit
def _classify(
    maps, dense, dense_bias, classifier, bias, places, seed, best, where,
    count, out_width, width, image, per_run, blocks, threshold, gain, per_place,
    C: tl.constexpr, SIDE: tl.constexpr, COLUMNS: tl.constexpr, HIDDEN: tl.constexpr, WIDE: tl.constexpr,
    K: tl.constexpr, CLASSES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Each class's largest logit among BLOCK places of one image, and which of them has it."""
    number = tl.program_id(1).to(tl.int64)
    run = number // per_run
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < count
    place = tl.load(places + index, mask=inside, other=0).to(tl.int32)
    corner = (place // out_width * width + place % out_width) * C
    column, feature, label = tl.arange(0, COLUMNS), tl.arange(0, WIDE), tl.arange(0, CLASSES)
    maps += number * image
    codes = tl.zeros([BLOCK, WIDE], tl.float32)
    wanted = inside[:, None] & (column < SIDE * C)[None, :]
    for row in tl.static_range(SIDE):
        patch = tl.load(maps + corner[:, None] + (row * width * C + column)[None, :], mask=wanted, other=0.0)
        kernel = tl.load(dense + ((run * SIDE + row) * COLUMNS + column[:, None]) * WIDE + feature[None, :])
        codes = tl.dot(patch, kernel, codes, input_precision="ieee")
    real = feature < HIDDEN
    codes += tl.load(dense_bias + run * HIDDEN + feature, mask=real, other=0.0)[None, :]
    keep = _kept(seed, number, place[:, None], feature[None, :], threshold, per_place)
    codes = tl.where(keep, tl.maximum(codes, 0.0) * gain, 0.0)
    kernel = tl.load(classifier + (run * WIDE + feature[:, None]) * CLASSES + label[None, :])
    logits = tl.dot(codes.to(kernel.dtype), kernel, input_precision="ieee")
    logits += tl.load(bias + run * K + label, mask=label < K, other=0.0)[None, :]
    logits = tl.where(inside[:, None], logits, float("-inf"))
    target = (number * blocks + tl.program_id(0)) * CLASSES + label
    tl.store(best + target, tl.max(logits, 0))
    tl.store(where + target, tl.load(places + tl.program_id(0) * BLOCK + tl.argmax(logits, 0)))
