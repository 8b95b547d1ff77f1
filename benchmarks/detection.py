"""What makes a detector of digits find sizes that it never saw: one thing changed at a time.

    python -m benchmarks.detection [--scenes 24] [--seeds 3] [--split test] [--rows shipped …]
        [--photographs FOLDER] [--networks FOLDER] [--out FILE]

Every network has the same layers and learns from the same digits of size 1, in as many steps on as many
canvases. Rows:

all scales, fine      trained on windows of many scales, of which only those that fit a digit count as it;
                      slid over an image pyramid of factor 2^(1/4): what `scalechannels detect` does
all scales, octaves   the same network on a pyramid of factor 2
one scale, fine       trained on windows of scale 1 alone: nothing teaches it to reject parts of large digits
one scale, octaves    the same network on a pyramid of factor 2
interest              the first network, at points of interest only
swmax                 trained on whole images with one digit or none, by the maximum over space and scale.
                      Nothing told it where in its window a digit is, so its boxes are first fitted to two
                      validation scenes: one shift and one factor
shipped               the network that comes with the package: the first one, which then saw photographs and
                      printed digits too

`benchmarks.detection_established` adds one that people use, `benchmarks.detection_table` makes the table.
Networks that the folder has are not trained again, and scenes that the file has are not looked at again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import scalechannels
from benchmarks.detection_scenes import (
    CANVASES,
    STEPS,
    TAIL,
    Found,
    Method,
    as_found,
    look,
    made,
    training_told,
)
from scalechannels import MaxOverScales, ScaleChannelNetwork, ScaleGrid
from scalechannels.data.scenes import Scene
from scalechannels.detection.detector import Detector
from scalechannels.detection.found import Detection
from scalechannels.detection.peaks import Peaks
from scalechannels.detection.training import CLASSES, EACH, GRID, digits_of_one_size, save, train

OCTAVES = ScaleGrid(0.5, 4, ratio=2.0)
ROWS = {  # the network, and the scales at which it is slid
    "all scales, fine": ("detector", GRID),
    "all scales, octaves": ("detector", OCTAVES),
    "one scale, fine": ("pyramid", GRID),
    "one scale, octaves": ("pyramid", OCTAVES),
    "swmax": ("swmax", GRID),
}
SHIPPED = "shipped"


class Fitted(Detector):
    """A detector whose boxes are moved and resized by constants, as fits best."""

    shift, factor = torch.zeros(2, dtype=torch.float64), 1.0

    def peaks(self, image: Tensor) -> Peaks:
        found = super().peaks(image)
        centres = found.centres + self.shift * found.sigmas[:, None]
        return found._replace(centres=centres, sigmas=found.sigmas * self.factor)

    def fit(self, scenes: list[Scene]) -> None:
        """From the best peak inside each object: the medians of its shift and of its size."""
        shifts, factors = [], []
        for one in scenes:
            found = self.peaks(one.image)
            best = self.odds_of(found.logits)
            for centre, size in zip(one.centres, one.sizes, strict=True):
                inside = ((found.centres - centre).abs() < 14 * size).all(1).nonzero()[:, 0]
                if len(inside):
                    index = inside[best[inside].argmax()]
                    shifts.append((centre - found.centres[index]) / found.sigmas[index])
                    factors.append(size / found.sigmas[index])
        if shifts:
            self.shift = torch.stack(shifts).median(0).values
            self.factor = float(torch.stack(factors).median())


def network(folder: Path, kind: Any, seed: int, steps: int) -> tuple[ScaleChannelNetwork, dict[str, Any]]:
    """A trained network, made where it is missing, and how it was trained."""
    place = folder / f"{kind}-seed{seed}-{steps}"
    told = place / "trained.json"
    if not told.exists():
        start = time.perf_counter()
        save(train(kind, digits_of_one_size(), steps=steps, seed=seed), place)
        seen = {"windows": CANVASES * EACH} if kind != "swmax" else {"images": CANVASES}
        told.write_text(json.dumps(training_told(steps, seen, start, torch.device("cpu"))))
    loaded = scalechannels.load(place)
    assert isinstance(loaded, ScaleChannelNetwork)
    return loaded, json.loads(told.read_text())


def method(find: Any) -> Method:
    def found(image: Tensor) -> Found:
        objects: list[Detection] = find(image)
        boxes = torch.tensor([one.box for one in objects], dtype=torch.float64).view(-1, 4)
        labels = torch.tensor([one.label for one in objects], dtype=torch.int64)
        return as_found(boxes, labels, torch.tensor([one.probability for one in objects]))

    return found


def methods(
    folder: Path, seed: int, steps: int, wanted: Sequence[str]
) -> tuple[dict[str, Method], dict[str, Any]]:
    """The rows of one seed, and how their networks were trained; there is one shipped network, seed 0."""
    rows: dict[str, Method] = {}
    about: dict[str, Any] = {}
    if SHIPPED in wanted and seed == 0:
        detector = Detector.from_pretrained("digit-detector")
        rows[SHIPPED] = method(detector.with_threshold(TAIL))
        about[SHIPPED] = {"shipped": scalechannels.__version__}
    for row, (kind, grid) in ROWS.items():
        if row not in wanted:
            continue
        trained, about[row] = network(folder, kind, seed, steps)
        slid = ScaleChannelNetwork(trained.backbone, grid, MaxOverScales()).eval()
        detector = Fitted(slid, background=CLASSES, threshold=TAIL)
        if kind == "swmax":
            detector.fit([one for _, one in made("validation", "plain", 2)])
        rows[row] = method(detector)
        if row == "all scales, fine":
            rows["interest"], about["interest"] = method(detector.at_interest_points), about[row]
    return rows, about


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenes", type=int, default=24, help="scenes of each background")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--split", choices=("test", "validation"), default="test")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--rows", nargs="+", choices=(*ROWS, SHIPPED), default=[*ROWS, SHIPPED])
    parser.add_argument("--photographs", type=Path, help="their folder, for a third background")
    parser.add_argument("--networks", type=Path, default=Path("runs/detection"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/detection.jsonl"))
    chosen = parser.parse_args()
    for seed in range(chosen.seeds):
        rows, about = methods(chosen.networks, seed, chosen.steps, chosen.rows)
        look(rows, about, chosen.split, chosen.scenes, chosen.out, seed, chosen.photographs)


if __name__ == "__main__":
    main()
