"""Which detections are right, and average precision with all classes in one ranking.

Reports and tables have pycocotools' average precision (`coco_precision`), which ranks each class by itself
and reads precision at 101 recalls. This one needs PyTorch alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from scalechannels.detection.boxes import overlap


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
