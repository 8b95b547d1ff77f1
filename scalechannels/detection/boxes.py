"""Boxes: how much they overlap, and which of them are of one object.

A box is x0, y0, x1, y1 in pixel-centre coordinates.
"""

from __future__ import annotations

import torch
from torch import Tensor


def intersections(first: Tensor, second: Tensor) -> Tensor:
    """Shared areas of boxes (N, 4) and (M, 4): (N, M)."""
    low = torch.maximum(first[:, None, :2], second[None, :, :2])
    high = torch.minimum(first[:, None, 2:], second[None, :, 2:])
    return (high - low).clamp_min(0).prod(2)


def areas(boxes: Tensor) -> Tensor:
    return (boxes[:, 2:] - boxes[:, :2]).clamp_min(0).prod(1)


def overlap(first: Tensor, second: Tensor) -> Tensor:
    """Intersection over union of boxes (N, 4) and (M, 4): (N, M)."""
    shared = intersections(first, second)
    return shared / (areas(first)[:, None] + areas(second)[None] - shared).clamp_min(1e-12)


def suppress(boxes: Tensor, scores: Tensor, *, iou: float = 0.3, inside: float = 0.6) -> Tensor:
    """Non-maximum suppression: indices of the boxes that no better one overlaps, the best first.

    Boxes are of one object above an IoU of `iou`, or with more than `inside` of the smaller in the larger.
    """
    device, boxes, scores = boxes.device, boxes.cpu(), scores.cpu()  # they are looked at one by one
    order = scores.argsort(descending=True, stable=True)
    boxes = boxes[order]
    own, alive = areas(boxes), torch.ones(len(order), dtype=torch.bool, device="cpu")
    for index in range(len(order)):
        if not alive[index]:
            continue
        later = boxes[index + 1 :]
        shared = intersections(boxes[index : index + 1], later)[0]
        union, smaller = own[index] + own[index + 1 :] - shared, own[index + 1 :].minimum(own[index])
        same = (shared > iou * union) | (shared > inside * smaller)
        alive[index + 1 :] &= ~same
    return order[alive].to(device)
