"""Which errors the shipped detector of digits makes, and whether other rules of inference mend them.

    python -m benchmarks.detection_errors [--scenes 48] [--out FILE]

In scenes of *validation* digits (see `benchmarks.detection_scenes`), at a probability of 1/2: objects that
are found, that have no box, a box of an IoU below 1/2, or another class; and boxes that are of no object.
Then average precision by pycocotools, with other rules for the same peaks:

iou, inside      which boxes are of one object (see `suppress`)
smaller, larger  boxes of 0.96 and 1.04 times their side
looked again     the class and its probability are the mean over seven windows about each box: the one that
                 it fits, and others a pixel beside it or an eighth of an octave smaller and larger
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.detection_scenes import BACKGROUNDS, MOST, TAIL, as_found, made
from benchmarks.detection_table import Scenes, coco_precision
from scalechannels import Detector, Foveate, ScaleGrid
from scalechannels.data.scenes import Scene
from scalechannels.detection.boxes import overlap
from scalechannels.detection.detector import Rules
from scalechannels.detection.measuring import ranked
from scalechannels.detection.peaks import Peaks
from scalechannels.files import json_text, write_text

RULES = {
    "as shipped": Rules(TAIL),
    "iou 0.2": Rules(TAIL, iou=0.2),
    "iou 0.4": Rules(TAIL, iou=0.4),
    "iou 0.5": Rules(TAIL, iou=0.5),
    "inside 0.5": Rules(TAIL, inside=0.5),
    "inside 0.8": Rules(TAIL, inside=0.8),
    "smaller": Rules(TAIL, pixels=0.96 * 28),
    "larger": Rules(TAIL, pixels=1.04 * 28),
}
AGAIN = "looked again"
STEP = 2**0.125
MOVES = {1.0: [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)], STEP: [(0, 0)], 1 / STEP: [(0, 0)]}
"""The windows that look again, by their scales: rows and columns beside the box's middle, in their pixels."""


def again(detector: Detector, image: Tensor, found: list[list[float]]) -> list[list[float]]:
    """The same boxes, with the class and the probability that the windows of `MOVES` give."""
    foveate, result = detector.network.foveate, []
    for x0, y0, x1, y1, *_ in found:
        sigma, middle = (x1 - x0) / foveate.window, torch.tensor([(y0 + y1) / 2, (x0 + x1) / 2])
        windows = []
        for factor, moves in MOVES.items():
            look = Foveate(ScaleGrid.of(sigma * factor), foveate.window, antialias=foveate.antialias)
            centres = middle + sigma * torch.tensor(moves, dtype=middle.dtype)
            windows.append(look(image.expand(len(moves), -1, -1, -1), centres)[:, 0])
        logits = detector.network.backbone(torch.cat(windows))
        probability, label = detector.probabilities(logits).mean(0).max(0)
        result.append([x0, y0, x1, y1, float(label), float(probability)])
    return sorted(result, key=lambda line: -line[5])


def errors(found: list[list[float]], scene: Scene) -> Counter[str]:
    """How each object of a scene fares at a probability of 1/2, and how many boxes are of none."""
    lines = torch.tensor([line for line in found if line[5] >= 0.5], dtype=torch.float64).view(-1, 6)
    shared = overlap(scene.boxes.double(), lines[:, :4])  # (N, M)
    counts, used = Counter[str](objects=len(scene.labels)), set()
    for row, label in zip(shared, scene.labels.tolist(), strict=True):
        if len(row) == 0 or float(row.max()) < 0.1:
            counts["missed"] += 1
            continue
        best = int(row.argmax())
        used.add(best)
        right = "right" if int(lines[best, 4]) == label else "another class"
        counts["box off" if float(row[best]) < 0.5 else right] += 1
    counts["of no object"] = len(lines) - len(used)
    return counts


@torch.no_grad()
def looked(background: str, scenes: int) -> dict[str, Any]:
    network = Detector.from_pretrained("digit-detector").network.eval()
    detectors = {name: Detector(network, rules=rules) for name, rules in RULES.items()}
    found: dict[str, Scenes] = {name: {} for name in (*RULES, AGAIN)}
    truth: Scenes = {}
    counts: Counter[str] = Counter()
    for number, one in made("validation", background, scenes):
        peaks: Peaks = detectors["as shipped"].peaks(one.image)
        for name, detector in detectors.items():
            said = ranked(detector._detections(peaks, one.image.shape))
            found[name][number] = {"found": as_found(*said)[:MOST]}
        shipped = found["as shipped"][number]["found"]
        found[AGAIN][number] = {"found": again(detectors["as shipped"], one.image, shipped)}
        counts += errors(shipped, one)
        truth[number] = {"boxes": one.boxes.tolist(), "labels": one.labels.tolist()}
    numbers = sorted(truth)
    halves = [numbers[: scenes // 2], numbers[scenes // 2 :]]
    shown = found["as shipped"]
    return {
        "errors": dict(counts),
        "average_precision": {name: round(coco_precision(one, truth), 4) for name, one in found.items()},
        "halves": [
            round(coco_precision({n: shown[n] for n in half}, {n: truth[n] for n in half}), 4)
            for half in halves
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenes", type=int, default=48, help="scenes of each background")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/detection_errors.json"))
    chosen = parser.parse_args()
    result = {name: looked(name, chosen.scenes) for name in BACKGROUNDS}
    write_text(chosen.out, json_text(result) + "\n")
    print(json_text(result))


if __name__ == "__main__":
    main()
