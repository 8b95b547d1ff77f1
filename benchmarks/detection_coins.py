"""Twelve labelled coins of one size, and coins of other sizes: what a new user's first try gives.

    python -m benchmarks.detection_coins [--seeds 1] [--folder FOLDER] [--out FILE]

scikit-image's photograph of 24 coins is cut into two halves of twelve; their boxes come from a segmentation
by watershed. A detector learns from one half, by `scalechannels train`'s own function and its defaults, and
looks into the other one at 1/4 to 4 times its size (resampled bicubically, with Pillow), and the same with
the halves exchanged. Average precision at an IoU of 0.5 is pycocotools'. False alarms are counted, at the
detector's own threshold, in photographs without coins: the snapshots that Debian's package `kphotoalbum` has
as an example. Ten of them were named before anything looked at them, the first one of each motif by name; of
all 24 the number is told as well.

Needs `pip install scikit-image`, and `apt-get` to download the photographs.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from benchmarks.collecting import unpacked
from benchmarks.detection_table import coco_precision
from scalechannels import Detector
from scalechannels.data.pictures import read_image
from scalechannels.detection.average_precision import Ranked, right
from scalechannels.detection.measuring import TAIL, ranked
from scalechannels.files import json_text, write_text
from scalechannels.report.boxes_run import train_on_boxes
from scalechannels.training.runs import environment

HALF = 150
"""The row at which the photograph is cut: no coin lies across it."""
SIZES = (0.25, 0.5, 1.0, 1.5, 2.0, 4.0)
PACKAGE, IN_IT = "kphotoalbum", "usr/share/kphotoalbum/demo"
TEN = (
    *("anne_helene", "bar55", "blackie", "cold_water", "donna", "grand_canyon_1", "jesper", "new_wave_1"),
    *("pool", "qt-logo"),
)
Boxes = list[list[int]]


def labelled() -> tuple[np.ndarray, Boxes]:
    """The photograph, and the boxes x0, y0, x1, y1 of its 24 coins, from the image's corner."""
    from scipy.ndimage import binary_fill_holes
    from skimage import data, filters, measure, segmentation

    image = data.coins()
    sure = np.zeros(image.shape, dtype=np.int32)
    sure[image < 30], sure[image > 150] = 1, 2
    coins = binary_fill_holes(segmentation.watershed(filters.sobel(image), sure) == 2)
    regions = [region.bbox for region in measure.regionprops(measure.label(coins)) if region.area > 400]
    assert len(regions) == 24, f"the segmentation found {len(regions)} regions, not the 24 coins"
    return image, [[int(x0), int(y0), int(x1), int(y1)] for y0, x0, y1, x1 in regions]


def halves(folder: Path) -> dict[str, Boxes]:
    """Writes the two halves and a table of the boxes of each."""
    image, boxes = labelled()
    parts = {"upper": (image[:HALF], 0), "lower": (image[HALF:], HALF)}
    found = {}
    for name, (part, top) in parts.items():
        Image.fromarray(part).save(folder / f"{name}.png")
        own = [
            [x0, y0 - top, x1, y1 - top] for x0, y0, x1, y1 in boxes if top <= y0 and y1 <= top + len(part)
        ]
        lines = [f"{name}.png,{','.join(map(str, box))},coin" for box in own]
        write_text(folder / f"{name}.csv", "\n".join(["image_path,xmin,ymin,xmax,ymax,label", *lines]) + "\n")
        found[name] = own
    return found


def photographs(folder: Path) -> list[Path]:
    """The snapshots, downloaded where they are missing."""
    folder.mkdir(exist_ok=True)
    if not (folder / PACKAGE).exists():
        unpacked("debian", PACKAGE, folder)
    return sorted((folder / PACKAGE / IN_IT).glob("*.jpg"))


def found(detector: Detector, path: Path, boxes: Boxes, size: float) -> tuple[float, int]:
    """Average precision, and how many coins are found at the detector's own threshold."""
    with Image.open(path) as image:
        width, height = (round(side * size) for side in image.size)
        factors = [width / image.width, height / image.height] * 2
        scaled = image.resize((width, height), Image.Resampling.BICUBIC)
    picture = torch.from_numpy(np.asarray(scaled).copy())[None].float() / 255
    said = ranked(detector.with_threshold(TAIL)(picture))
    lines = torch.cat((said.boxes, said.labels[:, None], said.scores[:, None]), 1).tolist()
    truth = [[edge * by - 0.5 for edge, by in zip(box, factors, strict=True)] for box in boxes]
    there = Ranked(torch.tensor(truth), torch.zeros(len(truth), dtype=torch.int64), torch.ones(len(truth)))
    sure = right(said, there) & (said.scores >= detector.threshold)
    average = coco_precision({0: {"found": lines}}, {0: {"boxes": truth, "labels": [0] * len(truth)}})
    return round(average, 4), int(sure.sum())


def tried(folder: Path, boxes: dict[str, Boxes], learnt: str, seed: int) -> dict[str, Any]:
    other = {"upper": "lower", "lower": "upper"}[learnt]
    made = train_on_boxes(folder / f"{learnt}.csv", folder / "runs", "cpu", seed=seed)
    detector = Detector.from_pretrained(made)
    pictures = {path.stem: read_image(path, grey=True) for path in photographs(folder / "photographs")}
    false = {name: len(detector(picture)) for name, picture in pictures.items()}
    areas = {name: picture[0].numel() / 1e6 for name, picture in pictures.items()}
    sizes = {f"{size:g}": found(detector, folder / f"{other}.png", boxes[other], size) for size in SIZES}
    return {
        "learnt": learnt,
        "seed": seed,
        "coins": len(boxes[learnt]),
        "training_seconds": json.loads((made / "report.json").read_text())["seconds"],
        "threshold": detector.threshold,
        "average_precision": {size: average for size, (average, _) in sizes.items()},
        "found": {size: count for size, (_, count) in sizes.items()},
        "photographs": {
            name: {
                "count": len(counted),
                "megapixels": round(sum(areas[one] for one in counted), 2),
                "false_alarms": sum(false[one] for one in counted),
            }
            for name, counted in (("ten", TEN), ("all", tuple(pictures)))
        },
        "false_alarms_in": {name: count for name, count in false.items() if count},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="for images and networks; by default a temporary one")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/detection_coins.json"))
    chosen = parser.parse_args()
    folder = chosen.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    boxes = halves(folder)
    rows = [
        tried(folder, boxes, learnt, seed) for seed in range(chosen.seeds) for learnt in ("upper", "lower")
    ]
    where = {name: environment(torch.device("cpu"))[name] for name in ("device", "commit", "torch")}
    write_text(chosen.out, json_text({"environment": where, "rows": rows}) + "\n")
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
