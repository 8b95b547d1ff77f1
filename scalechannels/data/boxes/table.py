"""CSV: a box in each row, with the columns image_path, xmin, ymin, xmax, ymax and label.

These are DeepForest's names; `filename` and `class`, which other tools write, are taken as well. A row whose
box is empty or all zero names an image without objects. Without a column for the class, all are "object".
"""

from __future__ import annotations

import csv
from pathlib import Path

from scalechannels.data.boxes.coco import found_near
from scalechannels.data.boxes.labelled import Described, LabelsError, Stated
from scalechannels.data.image_files import written

EDGES = ("xmin", "ymin", "xmax", "ymax")
IMAGE, LABEL = ("image_path", "filename", "image"), ("label", "class", "name")


def read_table(path: Path) -> tuple[list[Described], list[str], list[str]]:
    """The images, the names of the classes in alphabetical order, and what is wrong with the file."""
    problems: list[str] = []
    images: dict[str, Described] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            columns = [(name or "").strip() for name in rows.fieldnames or ()]
            rows.fieldnames = columns
            image_column = next((name for name in IMAGE if name in columns), None)
            label_column = next((name for name in LABEL if name in columns), None)
            lacking = [name for name in EDGES if name not in columns]
            if image_column is None or lacking:
                wanted = ", ".join((IMAGE[0], *EDGES, LABEL[0]))
                raise LabelsError(
                    f"'{written(path)}' must have the columns {wanted} in its first line; got "
                    f"{', '.join(columns) or 'none'}"
                )
            for row in rows:
                where, name = f"{path.name}, line {rows.line_num}", (row[image_column] or "").strip()
                if not name:
                    problems.append(f"{where} names no image")
                    continue
                image = images.setdefault(name, Described(found_near(path, name), where))
                given = [(row[edge] or "").strip() for edge in EDGES]
                if not any(given):
                    continue
                try:
                    x0, y0, x1, y1 = map(float, given)
                except ValueError:
                    problems.append(f"{where}: {', '.join(EDGES)} must be numbers; got {', '.join(given)}")
                    continue
                label = (row[label_column] or "").strip() if label_column else "object"
                if not label:
                    problems.append(f"{where} has no {label_column}")
                elif (x0, y0, x1, y1) != (0, 0, 0, 0):
                    image.boxes.append(Stated((x0, y0, x1, y1), label, where))
    except (UnicodeDecodeError, csv.Error) as error:
        raise LabelsError(f"'{written(path)}' cannot be read as CSV in UTF-8: {error}") from None
    names = {box.label for image in images.values() for box in image.boxes}
    return list(images.values()), sorted(names), problems
