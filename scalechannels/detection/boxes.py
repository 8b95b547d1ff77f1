"""Boxes: how much they overlap, which of them are of one object, and how good a set of detections is.

A box is x0, y0, x1, y1 in pixel-centre coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

OVERLAP = 0.3
"""IoU from which two boxes are of one object, so that the better one alone is kept."""
INSIDE = 0.6
"""The share of the smaller box inside the larger one from which they are of one object."""


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


def suppress(boxes: Tensor, scores: Tensor, *, iou: float = OVERLAP, inside: float = INSIDE) -> Tensor:
    """Non-maximum suppression: indices of the boxes that no better one overlaps, the best first."""
    order = scores.argsort(descending=True, stable=True)
    boxes = boxes[order]
    own, alive = areas(boxes), torch.ones(len(order), dtype=torch.bool, device="cpu")  # looked at one by one
    for index in range(len(order)):
        if not alive[index]:
            continue
        later = boxes[index + 1 :]
        shared = intersections(boxes[index : index + 1], later)[0]
        union, smaller = own[index] + own[index + 1 :] - shared, own[index + 1 :].minimum(own[index])
        same = (shared > iou * union) | (shared > inside * smaller)
        alive[index + 1 :] &= ~same.to(alive.device)
    return order[alive.to(order.device)]


class Ranked(NamedTuple):
    """Boxes of one image with their classes; those that were found have scores too."""

    boxes: Tensor  # (N, 4)
    labels: Tensor  # (N,)
    scores: Tensor  # (N,)


def average_precision(
    found: Sequence[Ranked], truth: Sequence[Ranked], *, iou: float = 0.5, classes: bool = True
) -> float:
    """The area under the curve of precision over recall, all images' detections in one ranking.

    A detection is right if it overlaps, by at least `iou`, an object that no better detection has taken, and,
    with `classes`, names its class. Precision at a recall is the best one at that recall or beyond.
    """
    if len(found) != len(truth):
        raise ValueError(f"one set of detections for each image: got {len(found)} for {len(truth)} images")
    objects = sum(len(image.labels) for image in truth)
    if objects == 0:
        raise ValueError("average precision needs at least one object in the images")
    scores = torch.cat([image.scores.double() for image in found])
    hits = torch.cat([right(*pair, iou=iou, classes=classes) for pair in zip(found, truth, strict=True)])
    hits = hits[scores.argsort(descending=True, stable=True)].double()
    if len(hits) == 0:
        return 0.0
    recall = hits.cumsum(0) / objects
    precision = hits.cumsum(0) / torch.arange(1, len(hits) + 1)
    best = precision.flip(0).cummax(0).values.flip(0)
    gained = torch.diff(recall, prepend=torch.zeros(1, dtype=recall.dtype))
    return float((best * gained).sum())


def right(found: Ranked, truth: Ranked, *, iou: float = 0.5, classes: bool = True) -> Tensor:
    """Which detections of an image are right: (N,) bool."""
    shared = overlap(found.boxes.double(), truth.boxes.double())  # (N, M)
    if classes:
        shared = shared * (found.labels[:, None] == truth.labels[None])
    free = torch.ones(len(truth.labels), dtype=torch.bool)
    hits = torch.zeros(len(found.labels), dtype=torch.bool)
    for index in found.scores.argsort(descending=True, stable=True).tolist():
        candidates = torch.where(free, shared[index], -1.0)
        if len(candidates) and float(candidates.max()) >= iou:
            free[candidates.argmax()] = False
            hits[index] = True
    return hits
