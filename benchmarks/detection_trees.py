"""Trees from the air: a detector learns from a part of one image, and looks into others, at other sizes.

    python -m benchmarks.detection_trees --data FOLDER [--folder FOLDER] [--out FILE]

--data is the folder `deepforest/data` of the unpacked wheel of PyPI's `deepforest` 2.1.0. The detector learns
from the left 40 % of one image of Yellowstone, by `scalechannels train`'s own function and its defaults. It
is tested on the right half of that image, and on two images of other forests, at their own resolution, at
half of it, and at twice (resampled bicubically). All trees count as one class. Average precision is at an IoU
of 0.4, which DeepForest's authors use because crowns have no sharp edges, and at 0.5.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from scalechannels import Detector
from scalechannels.data.boxes.labelled import BoxedImages
from scalechannels.data.boxes.reading import read_boxes
from scalechannels.detection.measuring import measure
from scalechannels.files import json_text, write_text
from scalechannels.report.boxes_run import train_on_boxes
from scalechannels.training.runs import environment

FOREST = "2019_YELL_2_541000_4977000_image_crop"
OTHERS = ("OSBS_029", "SOAP_061")
LEARNT, TESTED = (0.0, 0.4), (0.5, 1.0)
"""The parts of the image, from left to right."""
SIZES = (0.5, 1.0, 2.0)


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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--folder", type=Path, help="for images and networks; by default a temporary one")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/detection_trees.json"))
    chosen = parser.parse_args()
    folder = chosen.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    learnt = part(chosen.data, FOREST, LEARNT, folder, "learnt")
    tested = {"the same forest": part(chosen.data, FOREST, TESTED, folder, "tested")}
    tested |= {name: part(chosen.data, name, (0, 1), folder, name) for name in OTHERS}
    made = train_on_boxes(folder / "learnt.csv", folder / "runs", "cpu", low=0.5, high=2)
    detector = Detector.from_pretrained(made)
    rows: list[dict[str, Any]] = []
    for name, boxed in tested.items():
        for size in SIZES:
            found = measure(detector, boxed.images, size, grey=False)
            precision = {f"ap{round(iou * 100)}": round(found.precision(1, iou), 4) for iou in (0.4, 0.5)}
            rows.append({"image": name, "size": size, "trees": found.objects, **precision})
            print(json.dumps(rows[-1]))
    result = {
        "learnt": {
            "trees": learnt.objects,
            "seconds": json.loads((made / "report.json").read_text())["seconds"],
        },
        "rows": rows,
        "environment": {
            name: environment(torch.device("cpu"))[name] for name in ("device", "commit", "torch")
        },
    }
    write_text(chosen.out, json_text(result) + "\n")


if __name__ == "__main__":
    main()
