"""Labels of any kind, by what a path holds: which kind it is, and the checked images."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

from scalechannels.data.boxes.checking import checked
from scalechannels.data.boxes.coco import is_coco, read_coco
from scalechannels.data.boxes.labelled import BoxedImages, Described, LabelsError, LabelsWarning
from scalechannels.data.boxes.table import is_table, read_table
from scalechannels.data.boxes.voc import read_voc
from scalechannels.data.boxes.yolo import is_yolo, read_yolo
from scalechannels.data.decoding import MAX_PIXELS
from scalechannels.data.image_files import find_images, written

FILES = (".json", ".csv", ".xml")
KINDS = "a COCO .json, a .csv with DeepForest's columns, or a folder of Pascal VOC .xml or YOLO .txt files"
PARTS = ("train", "valid", "val", "validation", "test")
"""Folders in which Roboflow and others put parts of a data set."""


def holds_boxes(path: Path) -> bool:
    """Whether a path is one of labelled boxes, not a folder with a subfolder for each class."""
    if path.is_file():
        return path.suffix.lower() in FILES
    return path.is_dir() and (_kind(path) is not None or bool(_parts(path)))


def read_boxes(
    path: Path | str, *, skip: bool = False, max_pixels: int = MAX_PIXELS, everything: bool = False
) -> BoxedImages:
    """The labelled images of a file or a folder: COCO, CSV, Pascal VOC or YOLO.

    skip         leave out what cannot be used, with a warning; else the first problems are an error
    everything   the error, or the warning, names all problems
    """
    path = Path(path)
    if path.is_dir():
        kind = _kind(path)
        if kind == "voc":
            read = read_voc(files := _xml(path))
            _tell_unlabelled(path, files, read[0])
        elif kind == "single":
            path, *others = _single(path)
            if others:
                names = ", ".join(one.name for one in (path, *others))
                raise LabelsError(
                    f"'{written(path.parent)}' has several files of labels: give one of {names}"
                )
            return read_boxes(path, skip=skip, max_pixels=max_pixels, everything=everything)
        elif kind == "yolo":
            read = read_yolo(path)
        elif parts := _parts(path):
            raise LabelsError(
                f"'{written(path)}' has labelled boxes in parts, {', '.join(one.name for one in parts)}: "
                f"give one of them, such as '{written(parts[0])}'"
            )
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
    return checked(path, *read, skip=skip, max_pixels=max_pixels, everything=everything)


def _kind(folder: Path) -> str | None:
    return "voc" if _xml(folder) else "single" if _single(folder) else "yolo" if is_yolo(folder) else None


def _xml(folder: Path) -> list[Path]:
    """The XML files of a folder, or of VOC's folder Annotations in it."""
    return sorted(folder.glob("*.xml")) or sorted((folder / "Annotations").glob("*.xml"))


def _single(folder: Path) -> list[Path]:
    """The COCO and CSV files of a folder, or of CVAT's folder annotations in it."""
    for place in (folder, folder / "annotations"):
        files = sorted(path for path in place.glob("*") if path.is_file())
        found = [path for path in files if path.suffix.lower() == ".csv" and is_table(path)]
        found += [path for path in files if path.suffix.lower() == ".json" and _is_coco(path)]
        if found:
            return found
    return []


def _is_coco(path: Path) -> bool:
    try:
        return is_coco(json.loads(path.read_bytes()))
    except (ValueError, RecursionError):
        return False


def _parts(folder: Path) -> list[Path]:
    return [folder / name for name in PARTS if (folder / name).is_dir() and _kind(folder / name)]


def _tell_unlabelled(folder: Path, files: list[Path], described: list[Described]) -> None:
    """Name the images beside XML files that have none: nobody said that they show no object."""
    known, stems = {one.path.resolve() for one in described}, {file.stem for file in files}
    places = {folder, *(path.parent for path in files), *(one.path.parent for one in described)}
    images = {path for place in places if place.is_dir() for path in find_images(place, deep=False).images}
    if left := sorted(path.name for path in images if path.resolve() not in known and path.stem not in stems):
        names = ", ".join(left[:3]) + (", …" if len(left) > 3 else "")
        count = "1 image" if len(left) == 1 else f"{len(left)} images"
        warnings.warn(
            f"{count} in '{written(folder)}' without an XML file: {names}; left out. An XML file without "
            "objects makes an image one that shows none",
            LabelsWarning,
            stacklevel=3,
        )
