"""Which images a user means, and what was found in them in the forms of other programs."""

from __future__ import annotations

import csv
import glob
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scalechannels.data.image_files import find_images, suffixes, warn_of_left_out, written

COLUMNS = ("image_path", "xmin", "ymin", "xmax", "ymax", "label", "score", "object_score")


def expanded(given: Sequence[Path]) -> list[Path]:
    """The image files of names, folders and patterns, each once, in the order given."""
    if not given:
        raise ValueError("give image files, folders of them, or patterns such as 'photos/*.jpg'")
    files: dict[Path, None] = {}
    for path in given:
        if path.is_dir():
            found = find_images(path)
            if not found.images:
                raise ValueError(f"'{written(path)}' is a folder without images that are read")
            warn_of_left_out(path, found.left_out)
            files |= dict.fromkeys(found.images)
        elif path.is_file():
            files[path] = None
        elif glob.has_magic(str(path)):
            matches = [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]
            images = [one for one in matches if one.is_file() and one.suffix.lower() in suffixes()]
            if not images:
                raise FileNotFoundError(f"no image matches '{written(path)}'")
            files |= dict.fromkeys(images)
        else:
            raise FileNotFoundError(f"'{written(path)}' does not exist")
    return list(files)


def from_corner(box: Sequence[float]) -> list[float]:
    """A box in pixel-centre coordinates as files of labels count it: from the image's corner."""
    return [round(edge + 0.5, 2) for edge in box]


def as_coco(results: Sequence[Mapping[str, Any]], classes: Sequence[str]) -> dict[str, Any]:
    """What was found in each image as COCO's lists; annotations have two scores more."""
    numbers = {name: number for number, name in enumerate(classes, start=1)}
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for image_id, result in enumerate(results, start=1):
        size = {"width": result["width"], "height": result["height"]}
        images.append({"id": image_id, "file_name": result["image"], **size})
        for one in result["objects"]:
            x0, y0, x1, y1 = from_corner(one["box"])
            bbox = [x0, y0, round(x1 - x0, 2), round(y1 - y0, 2)]
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image_id,
                    "category_id": numbers[one["class"]],
                    "bbox": bbox,
                    "area": round(bbox[2] * bbox[3], 2),
                    "iscrowd": 0,
                    "score": one["probability"],
                    "object_score": one["object_probability"],
                }
            )
    categories = [{"id": number, "name": name} for name, number in numbers.items()]
    return {"images": images, "annotations": annotations, "categories": categories}


def as_table(results: Sequence[Mapping[str, Any]]) -> str:
    """A line for each box, in DeepForest's columns and both scores."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(COLUMNS)
    for result in results:
        for one in result["objects"]:
            scores = one["probability"], one["object_probability"]
            lines.writerow([result["image"], *from_corner(one["box"]), one["class"], *scores])
    return text.getvalue()
