"""Labels of any kind, by what a path holds: which kind it is, and the checked images."""

from __future__ import annotations

import json
from pathlib import Path

from scalechannels.data.boxes.coco import is_coco, read_coco
from scalechannels.data.boxes.labelled import BoxedImages, LabelsError, checked
from scalechannels.data.boxes.table import read_table
from scalechannels.data.boxes.voc import read_voc
from scalechannels.data.boxes.yolo import is_yolo, read_yolo
from scalechannels.data.decoding import MAX_PIXELS
from scalechannels.data.image_files import written

FILES = (".json", ".csv", ".xml")
KINDS = "a COCO .json, a .csv with DeepForest's columns, or a folder of Pascal VOC .xml or YOLO .txt files"


def holds_boxes(path: Path) -> bool:
    """Whether a path is one of labelled boxes, not a folder with a subfolder for each class."""
    if path.is_file():
        return path.suffix.lower() in FILES
    return path.is_dir() and (bool(_xml(path)) or _single(path) is not None or is_yolo(path))


def read_boxes(path: Path | str, *, skip: bool = False, max_pixels: int = MAX_PIXELS) -> BoxedImages:
    """The labelled images of a file or a folder: COCO, CSV, Pascal VOC or YOLO.

    skip   leave out what cannot be used, with a warning; else the first problems are an error
    """
    path = Path(path)
    if path.is_dir():
        if files := _xml(path):
            read = read_voc(files)
        elif single := _single(path):
            return read_boxes(single, skip=skip, max_pixels=max_pixels)
        elif is_yolo(path):
            read = read_yolo(path)
        else:
            raise LabelsError(f"'{written(path)}' has no labelled boxes: give {KINDS}")
    elif not path.is_file():
        raise FileNotFoundError(f"'{written(path)}' does not exist")
    elif path.suffix.lower() == ".json":
        read = read_coco(path)
    elif path.suffix.lower() == ".csv":
        read = read_table(path)
    elif path.suffix.lower() == ".xml":
        read = read_voc([path])
    else:
        raise LabelsError(f"'{written(path)}' is not a file of labels: give {KINDS}")
    return checked(path, *read, skip=skip, max_pixels=max_pixels)


def _xml(folder: Path) -> list[Path]:
    """The XML files of a folder, or of VOC's folder Annotations in it."""
    return sorted(folder.glob("*.xml")) or sorted((folder / "Annotations").glob("*.xml"))


def _single(folder: Path) -> Path | None:
    """The one COCO or CSV file of a folder, as Roboflow and others export it."""
    tables = [path for path in folder.glob("*.csv") if _is_table(path)]
    found = [*tables, *(path for path in folder.glob("*.json") if _is_coco(path))]
    return found[0] if len(found) == 1 else None


def _is_table(path: Path) -> bool:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        return "xmin" in file.readline(2000)


def _is_coco(path: Path) -> bool:
    try:
        return is_coco(json.loads(path.read_bytes()))
    except (ValueError, RecursionError):
        return False
