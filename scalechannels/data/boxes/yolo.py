"""YOLO: for each image a text file of its name, a line `class x y width height` for each box.

The four numbers are the box's middle and sides in shares of the image's. An outline, `class x y x y x y …`,
counts as the box around it. Texts lie beside their images, or in a folder `labels` where the images lie in
`images`. An image without a text, or with an empty one, is a negative; a text with boxes whose image is
missing is named. The names of the classes come from `data.yaml`, `classes.txt` or `obj.names`; without one of
these, classes are called by their numbers.
"""

from __future__ import annotations

import math
from pathlib import Path

from scalechannels.data.boxes.labelled import Described, Edges, LabelsError, Stated
from scalechannels.data.image_files import find_images, written

LISTS = ("classes.txt", "obj.names", "classes.names")
DESCRIPTIONS = ("data.yaml", "data.yml", "dataset.yaml")
CORNERS = 3
"""Of an outline, at least."""


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
    """Whether a folder has images with texts, and in one a line of numbers, or the classes' names."""
    texts = [text for image in find_images(folder).images if (text := text_of(image)).is_file()]
    named = any((folder / name).is_file() for name in (*DESCRIPTIONS, *LISTS))
    return bool(texts) and (named or any(any(map(_of_numbers, _lines(text))) for text in texts))


def _lines(text: Path) -> list[str]:
    return text.read_text(encoding="utf-8-sig", errors="replace").splitlines()


def _of_numbers(line: str) -> bool:
    words = line.split()
    try:
        return len(words) > 1 and bool(list(map(float, words)))
    except ValueError:
        return False


def read_yolo(folder: Path) -> tuple[list[Described], list[str], list[str]]:
    """The images, the names of the classes by their numbers, and what is wrong with the files."""
    problems: list[str] = []
    images, numbers = [], set()
    names = class_names(folder)
    taken: dict[Path, Path] = {}
    for path in find_images(folder).images:
        text = text_of(path)
        image = Described(path, text.name, relative=True)
        images.append(image)
        if not text.is_file():
            continue
        if (other := taken.setdefault(text, path)) != path:
            problems.append(
                f"'{text.name}' could be of '{other.name}' and of '{path.name}': remove one of these"
            )
        for number, line in enumerate(_lines(text), start=1):
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
    problems += [
        f"'{text.name}' has boxes, but there is no image of that name that can be read"
        for text in sorted(folder.rglob("*.txt"))
        if text not in taken and text.name not in LISTS and _boxed(text)
    ]
    classes = names or [str(number) for number in range(max(numbers, default=-1) + 1)]
    return images, classes, problems


def _boxed(text: Path) -> bool:
    """Whether the first line of a text is a box."""
    try:
        _box(next(iter(_lines(text)), ""))
    except (ValueError, OSError):
        return False
    return True


def _box(line: str) -> tuple[int, Edges]:
    """The class and the box of a line."""
    words = line.split()
    try:
        label, *shares = map(float, words)
    except ValueError:
        shares = []
    if not shares or len(shares) % 2 or len(shares) < 4:
        more = ", with a probability, as what was detected has" if len(shares) == 5 else ""
        raise ValueError(f"it must be a class and four numbers; got '{line.strip():.60}'{more}")
    if not (label.is_integer() and 0 <= label < 1e6):
        raise ValueError(f"its class must be a whole number from 0; got '{words[0]:.20}'")
    if not all(map(math.isfinite, shares)) or max(map(abs, shares)) > 2:
        raise ValueError(f"x, y, width and height must be shares of the image; got '{line.strip():.60}'")
    if len(shares) >= 2 * CORNERS:
        across, down = shares[::2], shares[1::2]
        return int(label), (min(across), min(down), max(across), max(down))
    x, y, width, height = shares
    return int(label), (x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def class_names(folder: Path) -> list[str] | None:
    """The names that a file in the folder, or beside the labels, gives to the classes; None without one."""
    for place in (folder, folder / "labels", folder.parent):
        for name in (*DESCRIPTIONS, *LISTS):
            path = place / name
            if path.is_file() and (names := _described(path) if name in DESCRIPTIONS else _listed(path)):
                if twice := [one for number, one in enumerate(names) if one in names[:number]]:
                    raise LabelsError(f"'{written(path)}' has the class '{twice[0]}' twice")
                return names
    return None


def _listed(path: Path) -> list[str]:
    """A name in each line; lines count, so that an empty one in between would shift the others."""
    names = [line.strip() for line in _lines(path)]
    while names and not names[-1]:
        names.pop()
    if "" in names:
        raise LabelsError(f"'{written(path)}', line {names.index('') + 1} is empty: each line names a class")
    return names


def _described(path: Path) -> list[str]:
    import yaml

    try:  # every value as text: YAML would make false of a class called "no"
        content = yaml.load("\n".join(_lines(path)), Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise LabelsError(f"'{written(path)}' is not valid YAML: {error}") from None
    names = content.get("names") if isinstance(content, dict) else None
    if isinstance(names, dict) and set(names) == {str(number) for number in range(len(names))}:
        names = [names[str(number)] for number in range(len(names))]
    if names in (None, ""):
        return []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise LabelsError(f"'{written(path)}': names must list the classes; got {names!s:.80}")
    return names
