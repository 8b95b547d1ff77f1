"""COCO's JSON: lists of images, categories and annotations, whose `bbox` is x, y, width, height.

An annotation with `iscrowd` or `ignore` is a region that counts neither as object nor as background. An image
without annotations is a negative. Outlines, masks and keypoints are not read.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from scalechannels.data.boxes.labelled import Described, Edges, LabelsError, LabelsWarning, Stated
from scalechannels.data.boxes.near import found_near
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
    names = _categories(content["categories"], path, problems)
    images = _images(content["images"], path, problems)
    ids: Counter[Any] = Counter()
    for number, annotation in enumerate(content["annotations"]):
        where = f"{path.name}, annotation {number + 1}"
        if not isinstance(annotation, dict):
            problems.append(
                f"{where} must have an image_id, a category_id and a bbox; got {annotation!r:.40}"
            )
            continue
        own, image, category = (annotation.get(key) for key in ("id", "image_id", "category_id"))
        if _is_id(own):
            where = f"{path.name}, annotation of id {own}"
            ids[own] += 1
        ignored = any(annotation.get(key) in (1, "1") for key in ("iscrowd", "ignore"))
        if (edges := _edges(annotation.get("bbox"))) is None:
            problems.append(f"{where}: its bbox must be four numbers: x, y, width, height")
        elif not _is_id(image) or image not in images:
            problems.append(f"{where}: there is no image of id {image!r:.40}")
        elif (not _is_id(category) or category not in names) and not ignored:
            problems.append(f"{where}: there is no category of id {category!r:.40}")
        else:
            label = names.get(category, "") if _is_id(category) else ""
            images[image].boxes.append(Stated(edges, label, where, ignored))
    if twice := [str(one) for one, count in ids.items() if count > 1]:
        more = ", …" if len(twice) > 3 else ""
        warnings.warn(
            f"'{written(path)}' uses ids of annotations more than once ({', '.join(twice[:3])}{more}); "
            "every one of these annotations is read",
            LabelsWarning,
            stacklevel=3,
        )
    return list(images.values()), [names[key] for key in sorted(names, key=_order)], problems


def _categories(given: list[Any], path: Path, problems: list[str]) -> dict[Any, str]:
    """The names of the classes by their ids."""
    names: dict[Any, str] = {}
    for number, category in enumerate(given):
        where = f"{path.name}, category {number + 1}"
        name = category.get("name") if isinstance(category, dict) else None
        if not isinstance(name, str) or not name.strip() or not _is_id(category.get("id")):
            problems.append(f"{where} has no id or no name")
        elif category["id"] in names or name in names.values():
            problems.append(f"{where}: its id or its name '{name}' is used twice")
        else:
            names[category["id"]] = name
    return names


def _images(given: list[Any], path: Path, problems: list[str]) -> dict[Any, Described]:
    """The images by their ids."""
    images: dict[Any, Described] = {}
    for number, image in enumerate(given):
        where = f"{path.name}, image {number + 1}"
        name = image.get("file_name") if isinstance(image, dict) else None
        if not isinstance(name, str) or not name or not _is_id(image.get("id")):
            problems.append(f"{where} has no id or no file_name")
        elif image["id"] in images:
            problems.append(f"{where}: its id {image['id']!r} is used twice")
        else:
            size = stated_size(image.get("height"), image.get("width"))
            images[image["id"]] = Described(found_near(path, name), where, size=size)
    return images


def stated_size(height: Any, width: Any) -> tuple[int, int] | None:
    """Height and width where both are whole numbers of pixels; tools that do not know them write 0."""
    try:
        sides = float(height), float(width)
    except (TypeError, ValueError, OverflowError):
        return None
    return (int(sides[0]), int(sides[1])) if all(side >= 1 and side.is_integer() for side in sides) else None


def _is_id(value: Any) -> bool:
    return isinstance(value, (int, str))


def _order(key: int | str) -> tuple[bool, int | str]:
    return isinstance(key, str), key


def _edges(bbox: Any) -> Edges | None:
    if not isinstance(bbox, list) or len(bbox) != 4 or not all(type(one) in (int, float) for one in bbox):
        return None
    try:
        x, y, width, height = map(float, bbox)
    except OverflowError:
        return None
    return x, y, x + width, y + height
