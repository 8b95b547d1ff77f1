"""The report on a detector: how well it finds objects at many sizes, its threshold, and its errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from torch import Tensor

from scalechannels.data.boxes.labelled import LabelledImage
from scalechannels.detection.average_precision import right
from scalechannels.detection.measuring import Measured
from scalechannels.report.boxes_measured import Outcome
from scalechannels.report.page import render
from scalechannels.report.theme import FIRST, LINE, SECOND, SOFT, bare, blank, named, size_axis

SHOWN, SIDE = 6, 120
"""Pictures of each kind of error, and the pixels along each."""
THRESHOLDS = torch.linspace(0.02, 0.98, 49, dtype=torch.float64)


def boxes_page(result: Mapping[str, Any], errors: Mapping[str, Sequence[tuple[Tensor, str]]]) -> str:
    """The whole page. `errors`: a kind of error → pictures of the worst ones with a line on each."""
    return render(
        "boxes.html",
        result=result,
        curve=precision_against_size(result["sizes"], result["against"]),
        rows=[
            [f"{one['size']:g}", *(f"{one[key]:.3f}" for key in ("ap", "ap50", "ap75")), one["images"],
             one["objects"], one["seconds_a_megapixel"]]
            for one in result["sizes"]
        ],
        beside=beside(result),
        thresholds=against_threshold(result["thresholds"], result["threshold"]),
        errors=errors,
    )  # fmt: skip


def beside(result: Mapping[str, Any]) -> list[list[str]]:
    """Rows of the table with another detector: both average precisions at each size, and what they cost."""
    other = result["against"]
    if not other:
        return []
    both = result, other
    rows = [
        [f"AP at size {pair[0]['size']:g}", *(f"{one['ap50']:.3f}" for one in pair)]
        for pair in zip(*(one["sizes"] for one in both), strict=True)
    ]
    for name, text in (("negatives", "held-out images without objects"), ("textures", "made-up textures")):
        each = [one["false_alarms"][name]["a_megapixel"] for one in both]
        if None not in each:
            rows.append([f"False alarms a megapixel, {text}", *(f"{one:.2f}" for one in each)])
    rows.append(["Default threshold", *(f"{one['threshold']:g}" for one in both)])
    rows.append(["Seconds a megapixel", *(f"{one['own']['seconds_a_megapixel']:g}" for one in both)])
    rows.append(["Seconds of training", *(f"{one['seconds']:.0f}" for one in both)])
    return rows


def precision_against_size(
    sizes: Sequence[Mapping[str, float]], other: Mapping[str, Any] | None = None
) -> Figure:
    """other   what the report says of another detector, whose curve is dashed"""
    figure = blank(7.2, 3.6)
    axes = figure.subplots()
    tested = [one["size"] for one in sizes]
    size_axis(axes, tested, "size of the objects, 1 is that of your images", "average precision")
    axes.set_ylim(0, 1.04)
    axes.grid(axis="y", color=LINE, linewidth=1)
    for key, colour, name in (("ap50", FIRST, "IoU 0.5"), ("ap75", SECOND, "IoU 0.75")):
        axes.plot(tested, [one[key] for one in sizes], color=colour, marker="o", linewidth=2, label=name)
        if other:
            dashed = [one[key] for one in other["sizes"]]
            axes.plot(
                tested, dashed, color=colour, linestyle="--", linewidth=1.5, label=f"{other['name']}, {name}"
            )
    axes.legend(frameon=False, labelcolor=SOFT, loc="best")
    return figure


def against_threshold(rows: Sequence[Mapping[str, float]], chosen: float) -> Figure:
    figure = blank(7.2, 3.4)
    axes = figure.subplots()
    at = [one["threshold"] for one in rows]
    for key, colour in (("recall", FIRST), ("precision", SECOND)):
        axes.plot(at, [one[key] for one in rows], color=colour, linewidth=2, label=key)
    axes.axvline(chosen, color=SOFT, linewidth=1, linestyle=(0, (1, 3)))
    axes.set_ylim(0, 1.04)
    named(axes, f"threshold; the dotted line is the default, {chosen:g}", "share")
    bare(axes)
    axes.legend(frameon=False, labelcolor=SOFT, loc="best")
    return figure


def thresholds(measured: Sequence[Measured]) -> list[dict[str, float]]:
    """Precision and recall, all sizes together, at many thresholds."""
    ranked = [one.ranked() for one in measured]
    scores, hits = (torch.cat(part) for part in zip(*ranked, strict=True))
    objects = sum(one.objects for one in measured)
    rows = []
    for least in THRESHOLDS.tolist():
        kept = hits[scores >= least]
        precision = float(kept.double().mean()) if len(kept) else 1.0
        recall = float(kept.sum()) / max(objects, 1)
        rows.append({"threshold": round(least, 3), "precision": precision, "recall": recall})
    return rows


def worst(tested: Outcome, grey: bool) -> dict[str, list[tuple[Tensor, str]]]:
    """Pictures of the false alarms with the highest probabilities, and of objects that were missed."""
    wrong: list[tuple[float, LabelledImage, list[float]]] = []
    missed: list[tuple[float, LabelledImage, list[float]]] = []
    for measured in (tested.own, tested.quiet):
        for image, found, truth in zip(measured.images, measured.found, measured.truth, strict=True):
            sure = found.scores >= tested.threshold
            hits = right(found, truth)
            for score, box in zip(found.scores[sure & ~hits], found.boxes[sure & ~hits], strict=True):
                wrong.append((-float(score), image, box.tolist()))
            kept = type(found)(found.boxes[sure], found.labels[sure], found.scores[sure])
            taken = right(truth._replace(scores=torch.ones(len(truth.labels))), kept)
            missed += [(0.0, image, box) for box in truth.boxes[~taken].tolist()]
    pictures = {}
    for name, cases in (("False alarms", wrong), ("Missed objects", missed)):
        cases.sort(key=lambda case: case[0])
        pictures[name] = [
            (crop(image.read(grey), box), image.path.name + (f", {-score:.2f}" if score else ""))
            for score, image, box in cases[:SHOWN]
        ]
    return pictures


def crop(picture: Tensor, box: Sequence[float]) -> Tensor:
    """A square of twice the box's longer side about it, (3, SIDE, SIDE)."""
    x0, y0, x1, y1 = box
    half = max(x1 - x0, y1 - y0, 4)
    middle = (y0 + y1) / 2, (x0 + x1) / 2
    spans = [
        slice(max(0, int(at - half)), max(1, min(side, int(at + half) + 1)))
        for at, side in zip(middle, picture.shape[1:], strict=True)
    ]
    part = picture[:, spans[0], spans[1]].expand(3, -1, -1)
    return F.interpolate(part[None], (SIDE, SIDE), mode="bilinear", antialias=True)[0]
