"""YOLO: for each image a text file of its name, a line `class x y width height` for each box.

The four numbers are the box's middle and sides in shares of the image's. Texts lie beside their images, or in
a folder `labels` where the images lie in `images`. An image without a text, or with an empty one, is a
negative. The names of the classes come from `data.yaml`, `classes.txt` or `obj.names`; without one of these,
classes are called by their numbers.
"""

from __future__ import annotations

import math
from pathlib import Path

from scalechannels.data.boxes.labelled import Described, Edges, LabelsError, Stated
from scalechannels.data.image_files import find_images, written

LISTS = ("classes.txt", "obj.names", "classes.names")
DESCRIPTIONS = ("data.yaml", "data.yml", "dataset.yaml")


def text_of(image: Path) -> Path:
    """Where the labels of an image are: in `labels` for one in `images`, else beside it."""
    parts = list(image.parts)
    if "images" in parts[:-1]:
        last = len(parts) - 2 - parts[-2::-1].index("images")
        moved = Path(*parts[:last], "labels", *parts[last + 1 :]).with_suffix(".txt")
        if moved.is_file() or not image.with_suffix(".txt").is_file():
            return moved
    return image.with_suffix(".txt")


def is_yolo(folder: Path) -> bool:
    """Whether a folder has images with texts, and the first of these begins with a line of numbers."""
    for image in find_images(folder).images:
        text = text_of(image)
        if text.is_file() and text.name not in LISTS:
            first = text.read_text(encoding="utf-8", errors="replace").strip().partition("\n")[0]
            if not first:
                continue
            return len(first.split()) > 1 and all(map(_is_number, first.split()))
    return False


def _is_number(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False


def read_yolo(folder: Path) -> tuple[list[Described], list[str], list[str]]:
    """The images, the names of the classes by their numbers, and what is wrong with the files."""
    problems: list[str] = []
    images, numbers = [], set()
    names = class_names(folder)
    for path in find_images(folder).images:
        text = text_of(path)
        image = Described(path, text.name, relative=True)
        images.append(image)
        lines = text.read_text(encoding="utf-8", errors="replace").splitlines() if text.is_file() else []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            where = f"{text.name}, line {number}"
            try:
                label, edges = _box(line)
            except ValueError as error:
                problems.append(f"{where}: {error}")
                continue
            if names is not None and label >= len(names):
                problems.append(f"{where}: there is no class {label}; {len(names)} have names, from 0")
                continue
            numbers.add(label)
            image.boxes.append(Stated(edges, names[label] if names else str(label), where))
    classes = names or [str(number) for number in range(max(numbers, default=-1) + 1)]
    return images, classes, problems


def _box(line: str) -> tuple[int, Edges]:
    words = line.split()
    if len(words) > 5 and len(words) % 2:
        raise ValueError(f"it has {len(words)} numbers, as outlines have; five make a box")
    try:
        label, (x, y, width, height) = int(words[0]), map(float, words[1:])
    except ValueError:
        raise ValueError(f"it must be a class and four numbers; got '{line.strip():.60}'") from None
    sides = (x, y, width, height)
    if label < 0 or not all(map(math.isfinite, sides)) or max(map(abs, sides)) > 2:
        raise ValueError(f"x, y, width and height must be shares of the image; got '{line.strip():.60}'")
    return label, (x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def class_names(folder: Path) -> list[str] | None:
    """The names that a file in the folder, or beside the labels, gives to the classes; None without one."""
    for place in (folder, folder / "labels", folder.parent):
        for name in DESCRIPTIONS:
            if (path := place / name).is_file() and (names := _described(path)):
                return names
        for name in LISTS:
            if (path := place / name).is_file():
                return [line.strip() for line in path.read_text("utf-8").splitlines() if line.strip()]
    return None


def _described(path: Path) -> list[str] | None:
    import yaml

    try:
        content = yaml.safe_load(path.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise LabelsError(f"'{written(path)}' is not valid YAML: {error}") from None
    names = content.get("names") if isinstance(content, dict) else None
    if isinstance(names, dict) and sorted(names) == list(range(len(names))):
        names = [names[number] for number in range(len(names))]
    if names is not None and not isinstance(names, list):
        raise LabelsError(f"'{written(path)}': names must list the classes; got {names!r:.80}")
    return [str(name) for name in names] if names else None
