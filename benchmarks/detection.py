"""How well objects are found over a scale range of 8 by a network that learnt them at one size.

    python -m benchmarks.detection [--scenes 12] [--split test] [--baselines FOLDER] [--output FILE]

Scenes of 1024 x 1024 with 10 to 20 MNIST digits of sizes 1/2 to 4 (log-uniform), on plain and noisy
background; the digits are those of MNIST's test set, or with --split validation the last 10,000 for training,
on which the detector was chosen. Average precision at IoU 0.5, the class being right; in the same run:

everywhere    the shipped detector, every point looked at
interest      the same network at points of interest only: time and recall against `everywhere`
swmax         a SWMax network, trained on whole images by the maximum over space and scale, its peaks taken as
              objects: the same scales and the same suppression. Nothing told it where in its window
              an object is, so its boxes are first fitted to two validation scenes: one shift and one factor
pyramid       a plain CNN trained on windows of one scale, slid over an image pyramid of factor 2
fine_pyramid  the same CNN on a pyramid as fine as the detector's scales

The baselines have the detector's layers and learn from the same digits; they are trained into --baselines
where they are not there yet (some minutes each).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import scalechannels
from benchmarks.average_precision import Ranked, average_precision, right
from benchmarks.measure import environment, options, write
from scalechannels import MaxOverScales, ScaleChannelNetwork, ScaleGrid
from scalechannels.data.scenes import MnistObjects, Scene, scene
from scalechannels.data.sources import load_mnist
from scalechannels.detection.detector import Detection, Detector, Peaks
from scalechannels.detection.training import CLASSES, GRID, digits_of_one_size, save, train

SIDE, SIZES = 1024, (0.5, 4.0)
BACKGROUNDS = ("plain", "noisy")
TAIL = 0.02  # detections of so little probability still count: the curve needs its end
STEPS = {"swmax": 3000, "pyramid": 1500}  # of training
OCTAVES = ScaleGrid(0.5, 4, ratio=2.0)
Method = Callable[[Tensor], list[Detection]]


def scenes(split: str, background: Any, count: int) -> list[Scene]:
    mnist = load_mnist()
    if split == "test":
        objects, first = MnistObjects(mnist.test_images, mnist.test_labels), 5000
    else:
        objects, first = MnistObjects(mnist.train_images[50_000:], mnist.train_labels[50_000:]), 1000
    return [
        scene(
            10 + number % 11, first + number,
            height=SIDE, width=SIDE, sizes=SIZES, background=background, objects=objects,
        )
        for number in range(count)
    ]  # fmt: skip


class Fitted(Detector):
    """A detector whose boxes are moved and resized by constants, as fits best."""

    shift, factor = torch.zeros(2, dtype=torch.float64), 1.0

    def peaks(self, image: Tensor) -> Peaks:
        found = super().peaks(image)
        centres = found.centres + self.shift * found.sigmas[:, None]
        return found._replace(centres=centres, sigmas=found.sigmas * self.factor)

    def fit(self, made: list[Scene]) -> Fitted:
        """From the best peak inside each object: the medians of its shift and of its size."""
        shifts, factors = [], []
        for one in made:
            found = self.peaks(one.image)
            best = self._objectness(found.logits)
            for centre, size in zip(one.centres, one.sizes, strict=True):
                inside = ((found.centres - centre).abs() < 14 * size).all(1).nonzero()[:, 0]
                if len(inside):
                    index = inside[best[inside].argmax()]
                    shifts.append((centre - found.centres[index]) / found.sigmas[index])
                    factors.append(size / found.sigmas[index])
        if shifts:
            self.shift = torch.stack(shifts).median(0).values
            self.factor = float(torch.stack(factors).median())
        return self


def baseline(folder: Path, kind: Any, steps: int) -> ScaleChannelNetwork:
    """A trained baseline, made where it is missing."""
    place = folder / kind
    if not (place / "config.json").exists():
        save(train(kind, digits_of_one_size(), steps=steps), place)
    network = scalechannels.load(place)
    assert isinstance(network, ScaleChannelNetwork)
    return network


def methods(folder: Path, network: str) -> dict[str, Method]:
    shipped = scalechannels.load(network)
    assert isinstance(shipped, ScaleChannelNetwork)
    detector = Detector(shipped, background=CLASSES, threshold=TAIL)
    found: dict[str, Method] = {"everywhere": detector, "interest": detector.at_interest_points}
    for name, kind, grid in (
        ("swmax", "swmax", GRID),
        ("pyramid", "pyramid", OCTAVES),
        ("fine_pyramid", "pyramid", GRID),
    ):
        backbone = baseline(folder, kind, STEPS[kind]).backbone
        slid = ScaleChannelNetwork(backbone, grid, MaxOverScales()).eval()
        own = Fitted(slid, background=CLASSES, threshold=TAIL)
        found[name] = own.fit(scenes("validation", "plain", 2)) if name == "swmax" else own
    return found


def as_ranked(found: list[Detection]) -> Ranked:
    return Ranked(
        torch.tensor([one.box for one in found], dtype=torch.float64).view(-1, 4),
        torch.tensor([one.label for one in found], dtype=torch.int64),
        torch.tensor([one.probability for one in found], dtype=torch.float64),
    )


def figures(found: list[Ranked], made: list[Scene], seconds: list[float]) -> dict[str, Any]:
    truth = [Ranked(one.boxes, one.labels, torch.ones(len(one.labels))) for one in made]
    certain = [Ranked(*(part[one.scores >= 0.5] for part in one)) for one in found]
    hits = [right(a, b) for a, b in zip(certain, truth, strict=True)]
    sizes = torch.cat([one.sizes for one in made])
    taken = torch.cat([right(b, a) for a, b in zip(certain, truth, strict=True)])  # which objects were found
    return {
        "average_precision": average_precision(found, truth),
        "average_precision_any_class": average_precision(found, truth, classes=False),
        "mean_average_precision": statistics.mean(
            average_precision(*([Ranked(*(part[one.labels == label] for part in one)) for one in side]
                                for side in (found, truth)))
            for label in torch.cat([one.labels for one in truth]).unique().tolist()
        ),
        "at_probability_one_half": {
            "recall": sum(int(hit.sum()) for hit in hits) / len(sizes),
            "precision": sum(int(hit.sum()) for hit in hits) / max(1, sum(map(len, hits))),
            "recall_by_size": {
                f"{low:g} to {2 * low:g}": float(taken[(sizes >= low) & (sizes < 2 * low)].double().mean())
                for low in (0.5, 1.0, 2.0)
            },
        },
        "seconds_per_scene": statistics.median(seconds),
    }  # fmt: skip


def measure(chosen: Any) -> dict[str, Any]:
    every = methods(chosen.baselines, chosen.network)
    report: dict[str, Any] = {}
    for background in BACKGROUNDS:
        made = scenes(chosen.split, background, chosen.scenes)
        found: dict[str, list[Ranked]] = {name: [] for name in every}
        seconds: dict[str, list[float]] = {name: [] for name in every}
        for one in made:  # all methods take turns on each scene
            for name, method in every.items():
                start = time.perf_counter()
                found[name].append(as_ranked(method(one.image)))
                seconds[name].append(time.perf_counter() - start)
        report[background] = {
            "objects": sum(len(one.labels) for one in made),
            **{name: figures(found[name], made, seconds[name]) for name in every},
        }
    return report


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--scenes", type=int, default=12, help="scenes of each background")
    parser.add_argument("--split", choices=("test", "validation"), default="test")
    parser.add_argument("--network", default="digit-detector", help="the detector; a folder or a name")
    parser.add_argument("--baselines", type=Path, default=Path("runs/detection-baselines"))
    chosen = parser.parse_args()
    if chosen.device != "cpu":
        parser.error("this benchmark runs on the CPU")
    report = {
        "environment": environment(torch.device("cpu")),
        "scenes": chosen.scenes,
        "split": chosen.split,
        "goal": "average precision at least 0.95 everywhere, and above the baselines",
        **measure(chosen),
    }
    write(report, chosen.output)


if __name__ == "__main__":
    main()
