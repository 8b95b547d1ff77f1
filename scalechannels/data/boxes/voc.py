"""Pascal VOC: one XML file for each image, with `object` elements that have a `name` and a `bndbox`.

Coordinates are taken from the image's corner, as labelling tools write them today; the original data sets
count pixels from 1, which moves a box by half a pixel. An object marked `difficult` counts neither as object
nor as background; a file without objects is a negative. Where the named image is missing, the one that has
the XML file's own name will do, as labelling tools open it.

A file with a document type is refused: only there could entities be declared, which can grow without bound
or name other files.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from scalechannels.data.boxes.coco import stated_size
from scalechannels.data.boxes.labelled import Described, Edges, Stated
from scalechannels.data.boxes.near import found_near

LONGEST_FILE = 2**26
EDGES = ("xmin", "ymin", "xmax", "ymax")


class _Plain(ElementTree.TreeBuilder):
    """Builds elements, and refuses what would let a file declare entities."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise ValueError("it has a document type, which labels need not have")


def parsed(path: Path) -> ElementTree.Element:
    """The root of an XML file that declares nothing."""
    if path.stat().st_size > LONGEST_FILE:
        raise ValueError("it is too large for a file of labels")
    try:
        return ElementTree.fromstring(path.read_bytes(), ElementTree.XMLParser(target=_Plain()))
    except ElementTree.ParseError as error:
        raise ValueError(f"it is not valid XML: {error}") from None


def read_voc(files: list[Path]) -> tuple[list[Described], list[str], list[str]]:
    """The images, the names of the classes in alphabetical order, and what is wrong with the files."""
    problems: list[str] = []
    images = []
    for path in files:
        try:
            images.append(_described(path, problems))
        except ValueError as error:
            problems.append(f"'{path.name}': {error}")
    names = {box.label for image in images for box in image.boxes if not box.ignored}
    return images, sorted(names), problems


def _described(path: Path, problems: list[str]) -> Described:
    root = parsed(path)
    if root.tag != "annotation":
        cvat = "; export from CVAT as Pascal VOC, YOLO or COCO" if root.tag == "annotations" else ""
        raise ValueError(f"its root must be <annotation>; got <{root.tag:.40}>{cvat}")
    name = (root.findtext("filename") or "").strip()
    if not name:
        raise ValueError("it names no image: <filename> is missing")
    size = stated_size(root.findtext("size/height"), root.findtext("size/width"))
    image = Described(found_near(path, name, or_stem=path.stem), path.name, size=size)
    for number, one in enumerate(root.findall("object"), start=1):
        where, label = f"{path.name}, object {number}", (one.findtext("name") or "").strip()
        edges = _edges(one)
        if not label:
            problems.append(f"{where} has no <name>")
        elif edges is None:
            problems.append(f"{where}: its <bndbox> must have the numbers {', '.join(EDGES)}")
        else:
            difficult = (one.findtext("difficult") or "0").strip().lower() in ("1", "true")
            image.boxes.append(Stated(edges, label, where, difficult))
    return image


def _edges(one: ElementTree.Element) -> Edges | None:
    try:
        x0, y0, x1, y1 = (float(one.findtext(f"bndbox/{edge}") or "") for edge in EDGES)
    except ValueError:
        return None
    return x0, y0, x1, y1
