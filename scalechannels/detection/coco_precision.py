"""Average precision as COCO defines it, computed by pycocotools: the mean over the classes.

Limit: of an image the `MOST` best detections count, where COCO takes 100.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from typing import Any, NamedTuple

from scalechannels.detection.average_precision import Ranked

MOST = 1000
"""Detections of an image that count: there are images with hundreds of objects."""


class Precision(NamedTuple):
    """Average precisions, from 0 to 1."""

    mean: float
    """Over IoUs from 0.5 to 0.95, which COCO calls AP."""
    half: float
    """At an IoU of 0.5."""
    three_quarters: float


def coco_precision(found: Sequence[Ranked], truth: Sequence[Ranked]) -> Precision:
    """Of what was found in some images, beside the objects that are there: one set of each for an image."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    objects = _annotations(truth)
    if not objects:
        raise ValueError("average precision needs at least one object in the images")
    said = _annotations(found)
    if not said:
        return Precision(0.0, 0.0, 0.0)
    with contextlib.redirect_stdout(io.StringIO()):  # it tells how long it took
        coco = COCO()
        coco.dataset = {
            "images": [{"id": number} for number in range(len(truth))],
            "categories": [{"id": label} for label in sorted({one["category_id"] for one in objects})],
            "annotations": [
                {"id": number, "iscrowd": 0, **one} for number, one in enumerate(objects, start=1)
            ],
        }
        coco.createIndex()
        evaluation = COCOeval(coco, coco.loadRes(said), "bbox")
        evaluation.params.maxDets = [1, 10, MOST]
        evaluation.evaluate()
        evaluation.accumulate()
    precision = evaluation.eval["precision"][:, :, :, 0, -1]  # IoUs, recalls, classes; all areas, MOST
    return Precision(*(float(one[one > -1].mean()) for one in (precision, precision[0], precision[5])))


def _annotations(images: Sequence[Ranked]) -> list[dict[str, Any]]:
    lines = []
    for number, image in enumerate(images):
        parts = image.boxes.tolist(), image.labels.tolist(), image.scores.tolist()
        for (x0, y0, x1, y1), label, score in zip(*parts, strict=True):
            width, height = x1 - x0, y1 - y0
            box = {"bbox": [x0, y0, width, height], "area": width * height}
            lines.append({"image_id": number, "category_id": int(label), "score": score, **box})
    return lines
