"""Photographs that EXIF turns: the box is where the object is shown, whichever way its labels count."""

import json
from pathlib import Path

import pytest
import torch
from PIL import Image

from scalechannels.data.boxes.labelled import LabelsWarning
from scalechannels.data.boxes.reading import read_boxes
from scalechannels.data.decoding import orientation_of
from scalechannels.data.pictures import read_image

STORED = 40, 24  # width, height
BOX = (3, 5, 15, 9)


def photograph(path: Path, orientation: int) -> Path:
    picture = Image.new("RGB", STORED, "black")
    picture.paste("white", BOX)
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture.save(path, exif=exif)
    return path


def shown(path: Path) -> list[float]:
    """Where the white is in the picture as it is shown, from its corner."""
    rows, columns = (read_image(path, grey=True)[0] > 0.5).nonzero(as_tuple=True)
    return [float(one) for one in (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)]


def coco(folder: Path, boxes: dict[str, tuple[tuple[float, ...], tuple[int, int] | None]]) -> Path:
    """Each file with its box and the width and height that its labels state."""
    images, annotations = [], []
    for number, (name, ((x0, y0, x1, y1), size)) in enumerate(boxes.items()):
        stated = {"width": size[0], "height": size[1]} if size else {}
        images.append({"id": number, "file_name": name, **stated})
        annotations.append(
            {"id": number, "image_id": number, "category_id": 0, "bbox": [x0, y0, x1 - x0, y1 - y0]}
        )
    path = folder / "boxes.json"
    categories = [{"id": 0, "name": "white"}]
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path


@pytest.mark.parametrize("orientation", [5, 6, 7, 8])
def test_labels_of_the_stored_size_are_turned_with_the_picture(tmp_path: Path, orientation: int) -> None:
    path = photograph(tmp_path / "a.png", orientation)
    assert orientation_of(path) == orientation
    with pytest.warns(
        LabelsWarning, match="give the sizes of files as stored, not as shown: the boxes of 1 file"
    ):
        (image,) = read_boxes(coco(tmp_path, {"a.png": (BOX, STORED)})).images
    assert (image.width, image.height) == STORED[::-1]
    assert (image.boxes[0] + 0.5).tolist() == shown(path)


@pytest.mark.parametrize("size", [None, STORED[::-1]])
def test_labels_are_of_the_picture_as_it_is_shown(tmp_path: Path, size: tuple[int, int] | None) -> None:
    there = shown(photograph(tmp_path / "a.png", 6))
    assert there != list(BOX)
    (image,) = read_boxes(coco(tmp_path, {"a.png": (tuple(there), size)})).images
    assert (image.boxes[0] + 0.5).tolist() == there


@pytest.mark.parametrize("orientation", [2, 3, 4])
def test_where_the_size_does_not_tell_the_other_photographs_do(tmp_path: Path, orientation: int) -> None:
    """A tool shows all files in one way: what a turned one tells holds for those that are upside down."""
    photograph(tmp_path / "a.png", 6)
    path = photograph(tmp_path / "b.png", orientation)
    alone = read_boxes(coco(tmp_path, {"b.png": (BOX, STORED)})).images[0]
    assert (alone.boxes[0] + 0.5).tolist() == list(BOX)
    with pytest.warns(LabelsWarning, match="the boxes of 2 files"):
        both = read_boxes(coco(tmp_path, {"a.png": (BOX, STORED), "b.png": (BOX, STORED)}))
    assert (both.images[1].boxes[0] + 0.5).tolist() == shown(path)
    torch.testing.assert_close(both.images[1].sizes, alone.sizes)
