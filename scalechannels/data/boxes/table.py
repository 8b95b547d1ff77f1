"""CSV: a box in each row, with the columns image_path, xmin, ymin, xmax, ymax and label.

These are DeepForest's names; `filename` and `class`, which other tools write, are taken as well, in small or
large letters, and `;` or tabs between the columns. A row whose box is empty or all zero names an image
without objects. Without a column for the class, all are "object". Columns `width` and `height` are compared
with the image.
"""

from __future__ import annotations

import csv
from pathlib import Path

from scalechannels.data.boxes.coco import stated_size
from scalechannels.data.boxes.labelled import Described, LabelsError, Stated
from scalechannels.data.boxes.near import found_near
from scalechannels.data.image_files import written

EDGES = ("xmin", "ymin", "xmax", "ymax")
IMAGE, LABEL = ("image_path", "filename", "image"), ("label", "class", "name")
BETWEEN = ",;\t"


def columns_of(path: Path) -> tuple[list[str], str]:
    """The names in the first line, in small letters, and what stands between them."""
    with path.open(encoding="utf-8-sig", newline="", errors="replace") as file:
        first = file.readline(2000)
    between = max(BETWEEN, key=first.count)
    words = next(csv.reader([first], delimiter=between), [])
    return [word.strip().lower() for word in words], between


def is_table(path: Path) -> bool:
    return set(EDGES) <= set(columns_of(path)[0])


def read_table(path: Path) -> tuple[list[Described], list[str], list[str]]:
    """The images, the names of the classes in alphabetical order, and what is wrong with the file."""
    problems: list[str] = []
    images: dict[Path, Described] = {}
    try:
        columns, between = columns_of(path)
        image_column = next((name for name in IMAGE if name in columns), None)
        label_column = next((name for name in LABEL if name in columns), None)
        if image_column is None or not set(EDGES) <= set(columns):
            wanted = ", ".join((IMAGE[0], *EDGES, LABEL[0]))
            raise LabelsError(
                f"'{written(path)}' must have the columns {wanted} in its first line; got "
                f"{', '.join(columns) or 'none'}"
            )
        with path.open(encoding="utf-8-sig", newline="") as file:
            next(file)
            rows = csv.DictReader(file, fieldnames=columns, delimiter=between)
            for row in rows:
                cells = {name: (row[name] or "").strip() for name in columns}
                where, name = f"{path.name}, line {rows.line_num + 1}", cells[image_column]
                if not name:
                    problems.append(f"{where} names no image")
                    continue
                place = found_near(path, name)
                image = images.setdefault(place, Described(place, where))
                image.size = image.size or stated_size(cells.get("height"), cells.get("width"))
                given = [cells[edge] for edge in EDGES]
                if not any(given):
                    continue
                try:
                    x0, y0, x1, y1 = map(float, given)
                except ValueError:
                    problems.append(f"{where}: {', '.join(EDGES)} must be numbers; got {', '.join(given)}")
                    continue
                label = cells[label_column] if label_column else "object"
                if (x0, y0, x1, y1) == (0, 0, 0, 0):
                    continue
                if not label:
                    problems.append(f"{where} has no {label_column}")
                else:
                    image.boxes.append(Stated((x0, y0, x1, y1), label, where))
    except (UnicodeDecodeError, csv.Error) as error:
        raise LabelsError(f"'{written(path)}' cannot be read as CSV in UTF-8: {error}") from None
    names = {box.label for image in images.values() for box in image.boxes}
    return list(images.values()), sorted(names), problems
