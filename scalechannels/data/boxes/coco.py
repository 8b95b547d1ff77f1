"""COCO's JSON: lists of images, categories and annotations, whose `bbox` is x, y, width, height.

An annotation with `iscrowd` or `ignore` is a region that counts neither as object nor as background. An image
without annotations is a negative. Masks and keypoints are not read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scalechannels.data.boxes.labelled import Described, Edges, LabelsError, Stated
from scalechannels.data.image_files import written

KEYS = ("images", "annotations", "categories")


def is_coco(content: Any) -> bool:
    return isinstance(content, dict) and all(isinstance(content.get(key), list) for key in KEYS)


def read_coco(path: Path) -> tuple[list[Described], list[str], list[str]]:
    """The images, the names of the classes in the order of their ids, and what is wrong with the file."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise LabelsError(f"'{written(path)}' is not valid JSON: {error}") from None
    if not is_coco(content):
        raise LabelsError(
            f"'{written(path)}' is not of COCO's form: it must have the lists {', '.join(KEYS)}"
        )
    problems: list[str] = []
    names: dict[Any, str] = {}
    for number, category in enumerate(content["categories"]):
        where = f"{path.name}, category {number + 1}"
        if (
            not isinstance(category, dict)
            or "id" not in category
            or not isinstance(category.get("name"), str)
        ):
            problems.append(f"{where} has no id or no name")
        elif category["id"] in names or category["name"] in names.values():
            problems.append(f"{where}: its id or its name '{category['name']}' is used twice")
        else:
            names[category["id"]] = category["name"]
    classes = [names[key] for key in sorted(names, key=lambda key: (str(type(key)), key))]
    images: dict[Any, Described] = {}
    for number, image in enumerate(content["images"]):
        where = f"{path.name}, image {number + 1}"
        if not isinstance(image, dict) or "id" not in image or not isinstance(image.get("file_name"), str):
            problems.append(f"{where} has no id or no file_name")
        elif image["id"] in images:
            problems.append(f"{where}: its id {image['id']!r} is used twice")
        else:
            sides = image.get("height"), image.get("width")
            size = (sides[0], sides[1]) if all(isinstance(side, int) and side > 0 for side in sides) else None
            images[image["id"]] = Described(found_near(path, image["file_name"]), where, size=size)  # type: ignore[arg-type]
    for number, annotation in enumerate(content["annotations"]):
        where = f"{path.name}, annotation {number + 1}"
        if not isinstance(annotation, dict) or (edges := _edges(annotation.get("bbox"))) is None:
            problems.append(f"{where}: its bbox must be four numbers: x, y, width, height")
            continue
        if "id" in annotation:
            where = f"{path.name}, annotation of id {annotation['id']}"
        image, category = (annotation.get(key) for key in ("image_id", "category_id"))
        ignored = bool(annotation.get("iscrowd") or annotation.get("ignore"))
        if image not in images:
            problems.append(f"{where}: there is no image of id {image!r}")
        elif category not in names and not ignored:
            problems.append(f"{where}: there is no category of id {category!r}")
        else:
            images[image].boxes.append(Stated(edges, names.get(category, ""), where, ignored))
    return list(images.values()), classes, problems


def _edges(bbox: Any) -> Edges | None:
    if not isinstance(bbox, list) or len(bbox) != 4 or not all(type(one) in (int, float) for one in bbox):
        return None
    x, y, width, height = map(float, bbox)
    return x, y, x + width, y + height


def found_near(labels: Path, name: str) -> Path:
    """The image that a file of labels names: beside it, or in one of the usual folders near it."""
    parent = labels.parent
    places = [
        folder / inner
        for folder in (parent, parent.parent)
        for inner in ("", "images", "JPEGImages")
    ]  # fmt: skip
    # A path of the machine where the labels were made is of no use here: then its last part is looked for.
    names = [name.replace("\\", "/")]
    names.append(names[0].rsplit("/", 1)[-1])
    candidates = [place / one for one in names for place in places]
    return next((path for path in candidates if path.is_file()), parent / name)
