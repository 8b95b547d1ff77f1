"""Trees from the air: a detector learns from a part of one image, and looks into others, at other sizes.

    python -m benchmarks.detection_trees --data FOLDER [--detectors defaults …] [--folder FOLDER] [--out FILE]

--data is the folder `deepforest/data` of the unpacked wheel of PyPI's `deepforest` 2.1.0. Detectors learn
from the left 40 % of one image of Yellowstone, in as many steps on as many windows:

defaults             by `scalechannels train`'s own function
turned               the same with --turns, chosen by a validation part of what is learnt
one scale            the same layers and boxes, turned, without scale channels: see `benchmarks.one_scale`
one scale, jitter    that one, which saw the trees from half to twice their size

They are tested on the right half of that image, on that of another image of Yellowstone, and on two images of
other forests, at their own resolution, at half of it, and at twice (resampled bicubically). All trees count
as one class. Average precision is at an IoU of 0.4, which DeepForest's authors use because crowns have no
sharp edges, and at 0.5.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from benchmarks.one_scale import OneScale
from scalechannels import Detector
from scalechannels.data.boxes.labelled import BoxedImages
from scalechannels.data.boxes.reading import read_boxes
from scalechannels.detection.average_precision import average_precision
from scalechannels.detection.learning import to_stderr
from scalechannels.detection.measuring import Measured, finder, measure
from scalechannels.detection.own_boxes import Choices
from scalechannels.files import json_text, write_text
from scalechannels.training.runs import environment

FOREST = "2019_YELL_2_541000_4977000_image_crop"
LEARNT = (0.0, 0.4)
"""The part of the image, from left to right."""
TESTED = {
    "the same image": (FOREST, (0.5, 1.0)),
    "another of Yellowstone": ("2019_YELL_2_528000_4978000_image_crop2", (0.5, 1.0)),
    "OSBS_029": ("OSBS_029", (0.0, 1.0)),
    "SOAP_061": ("SOAP_061", (0.0, 1.0)),
}
SIZES = (0.5, 1.0, 2.0)
RANGE = 0.5, 2.0
DETECTORS = ("defaults", "turned", "one scale", "one scale, jitter")


def part(data: Path, name: str, span: tuple[float, float], folder: Path, called: str) -> BoxedImages:
    """A vertical strip of an image with the trees whose middle lies in it, as a file of labels."""
    (image,) = read_boxes(data / f"{name}.xml", skip=True).images
    left, right = (round(image.width * share) for share in span)
    with Image.open(image.path) as whole:
        whole.convert("RGB").crop((left, 0, right, image.height)).save(folder / f"{called}.png")
    with (folder / f"{called}.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(("image_path", "xmin", "ymin", "xmax", "ymax", "label"))
        for x0, y0, x1, y1 in (image.boxes + 0.5).tolist():
            if left <= (x0 + x1) / 2 < right:
                edges = max(x0 - left, 0), y0, min(x1, right) - left, y1
                lines.writerow((f"{called}.png", *edges, "Tree"))
    return read_boxes(folder / f"{called}.csv")


def parts(data: Path, folder: Path) -> tuple[BoxedImages, dict[str, BoxedImages]]:
    """What is learnt from, and what is tested by its name."""
    folder.mkdir(parents=True, exist_ok=True)
    tested = {
        name: part(data, image, span, folder, f"tested-{image}") for name, (image, span) in TESTED.items()
    }
    return part(data, FOREST, LEARNT, folder, "learnt"), tested


def precisions(found: Measured) -> dict[str, Any]:
    """A row of the table: how many trees there are, and both average precisions."""
    pair = found.found, found.truth
    average = {f"ap{round(iou * 100)}": round(average_precision(*pair, iou=iou), 4) for iou in (0.4, 0.5)}
    return {"size": found.size, "trees": found.objects, **average}


def trained(name: str, learnt: BoxedImages, folder: Path) -> Detector:
    from scalechannels.report.boxes_run import train_on_boxes  # draws a report, which needs Matplotlib

    if name.startswith("one scale"):
        octaves = 1.0 if "jitter" in name else 0.0
        return OneScale(
            learnt, Choices.of(learnt, *RANGE), octaves=octaves, turns=True, report=to_stderr
        ).run()
    low, high = RANGE
    made = train_on_boxes(learnt.source, folder / "runs", "cpu", low=low, high=high, turns=name == "turned")
    return Detector.from_pretrained(made)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--detectors", nargs="+", choices=DETECTORS, default=DETECTORS)
    parser.add_argument("--folder", type=Path, help="for images and networks; by default a temporary one")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/detection_trees.json"))
    chosen = parser.parse_args()
    folder = chosen.folder or Path(tempfile.mkdtemp())
    learnt, tested = parts(chosen.data, folder)
    where = {name: environment(torch.device("cpu"))[name] for name in ("device", "commit", "torch")}
    result: dict[str, Any] = {"learnt": {"trees": learnt.objects}, "detectors": {}}
    if chosen.out.exists():
        result = json.loads(chosen.out.read_text())
    for name in chosen.detectors:
        start = time.perf_counter()
        detector = trained(name, learnt, folder)
        seconds, rows = round(time.perf_counter() - start), []
        for image, boxed in tested.items():
            for size in SIZES:
                rows.append(
                    {"image": image, **precisions(measure(finder(detector), boxed.images, size, grey=False))}
                )
                print(name, json.dumps(rows[-1]), flush=True)
        result["detectors"][name] = {"seconds": seconds, "environment": where, "rows": rows}
        write_text(chosen.out, json_text(result) + "\n")


if __name__ == "__main__":
    main()
