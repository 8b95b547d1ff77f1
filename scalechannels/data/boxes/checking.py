"""What is checked before anything learns from labels: every image is decoded once, and every box looked at.

No box is changed, with two exceptions: one that reaches beyond the image by at most `SLACK` pixels, as
rounding makes it, is cut at the edge; and one in a file that EXIF turns may be turned with it (`turned`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from scalechannels.data.boxes.labelled import (
    BoxedImages,
    Described,
    Edges,
    LabelledImage,
    LabelsError,
    LabelsWarning,
    SkippedLabelsWarning,
    Stated,
)
from scalechannels.data.boxes.turned import says_stored, upright
from scalechannels.data.decoding import MAX_PIXELS, UnreadableImageError, orientation_of
from scalechannels.data.image_files import is_file, written
from scalechannels.data.pictures import Checked, check_image

SLACK = 2.0
"""Pixels by which a box may reach beyond its image."""
NAMED = 5
"""Of many problems, those that one message names."""


class Looked(NamedTuple):
    """An image that could be decoded."""

    described: Described
    seen: Checked
    orientation: int
    """By EXIF, 1 where it is stored upright."""

    @property
    def as_stored(self) -> bool | None:
        """Whether its labels give the size of the file as stored; None where nothing tells."""
        return says_stored(self.described.size, self.seen.height, self.seen.width, self.orientation)


def checked(
    source: Path,
    described: Sequence[Described],
    classes: Sequence[str],
    problems: Iterable[str] = (),
    *,
    skip: bool = False,
    max_pixels: int = MAX_PIXELS,
    everything: bool = False,
) -> BoxedImages:
    """The images with every box checked and every file decoded once.

    problems    what the reader of the labels has found already
    skip        leave out what cannot be used, with a warning, instead of refusing it all
    everything  name all problems, a line for each, where a message names the first ones
    """
    found = list(problems)
    looked = list(_looked_at(described, found, max_pixels))
    told = {one.as_stored for one in looked} - {None}
    number = {name: index for index, name in enumerate(classes)}
    images: list[LabelledImage] = []
    again: list[str] = []
    for one in looked:
        # A file that is upside down has the same size both ways: there, what the others say holds.
        stored = one.as_stored if one.as_stored is not None else told == {True}
        images.append(_image(one, stored, number, found, again))
    if found:
        _tell(source, found, skip, everything)
    if again:
        warnings.warn(f"stated twice, counted once: {_first(again)}", LabelsWarning, stacklevel=3)
    if turned := sum(one.orientation > 1 for one in looked) if told == {True} else 0:
        files = "1 file" if turned == 1 else f"{turned} files"
        warnings.warn(
            f"the labels of '{written(source)}' give the sizes of files as stored, not as shown: the boxes "
            f"of {files} are turned with the picture, as EXIF says",
            LabelsWarning,
            stacklevel=3,
        )
    boxed = BoxedImages(source, list(classes), images)
    if not images or boxed.objects == 0:
        raise LabelsError(f"'{written(source)}' has no boxes of objects; label at least one")
    return boxed


def _tell(source: Path, found: Sequence[str], skip: bool, everything: bool) -> None:
    """Refuse the labels by what is wrong with them, or warn of what is left out."""
    told = "".join(f"\n- {problem}" for problem in found) if everything else f" {_first(found)}"
    if skip:
        warnings.warn(f"left out of '{written(source)}':{told}", SkippedLabelsWarning, stacklevel=4)
        return
    count = "1 problem" if len(found) == 1 else f"{len(found)} problems"
    advice = "Mend them, or give --skip-corrupt"
    if len(found) > NAMED and not everything:
        advice += "; `scalechannels data show` names them all"
    raise LabelsError(f"'{written(source)}' has {count}:{told}{chr(10) if everything else '. '}{advice}")


def _first(said: Sequence[str]) -> str:
    more = f"; and {len(said) - NAMED} more" if len(said) > NAMED else ""
    return "; ".join(said[:NAMED]) + more


def _looked_at(described: Iterable[Described], found: list[str], max_pixels: int) -> Iterator[Looked]:
    """The images that can be decoded, each file once; what is wrong with the others is added to `found`."""
    before: dict[Path, str] = {}
    for one in described:
        file = f"the image '{written(one.path)}'"
        if not is_file(one.path):
            found.append(f"{one.where}: {file} does not exist")
            continue
        if (known := before.setdefault(one.path.resolve(), one.where)) != one.where:
            found.append(f"{one.where}: {file} has labels already, by {known}")
            continue
        try:
            seen = check_image(one.path, max_pixels)
        except UnreadableImageError as error:
            found.append(f"{file} cannot be read: {error}")
            continue
        looked = Looked(one, seen, orientation_of(one.path))
        if one.size not in (None, (seen.height, seen.width)) and not looked.as_stored:
            height, width = one.size or (0, 0)
            found.append(
                f"{one.where}: '{written(one.path)}' has {seen.width} x {seen.height} pixels, its labels say "
                f"{width} x {height}"
            )
            continue
        yield looked


def _image(
    looked: Looked, stored: bool, number: dict[str, int], found: list[str], again: list[str]
) -> LabelledImage:
    """The image with its boxes. What is wrong is added to `found`, boxes that are there before to `again`."""
    one, (grey, height, width, _) = looked.described, looked.seen
    boxes: dict[Edges, Stated] = {}  # in the order of the file
    ignored: list[Edges] = []
    for box in one.boxes:
        edges = box.edges
        if one.relative:
            edges = (edges[0] * width, edges[1] * height, edges[2] * width, edges[3] * height)
        if stored:
            edges = upright(edges, height, width, looked.orientation)
        before = boxes.get(edges)
        if trouble := _trouble(edges, width, height):
            found.append(f"{box.where}: {trouble}")
        elif box.ignored:
            ignored.append(_from_corner(edges, width, height))
        elif before is None:
            boxes[edges] = box
        elif before.label != box.label:
            found.append(f"{box.where}: '{box.label}' has the box of '{before.label}' ({before.where})")
        else:
            again.append(f"{box.where}, the box of {before.where}")
    return LabelledImage(
        one.path,
        height,
        width,
        grey,
        torch.tensor([_from_corner(edges, width, height) for edges in boxes], dtype=torch.float64).view(
            -1, 4
        ),
        torch.tensor([number[box.label] for box in boxes.values()], dtype=torch.int64),
        torch.tensor(ignored, dtype=torch.float64).view(-1, 4),
    )


def _trouble(edges: Edges, width: int, height: int) -> str | None:
    """What is wrong with a box in an image of this size."""
    x0, y0, x1, y1 = edges
    shown = f"the box {', '.join(f'{edge:g}' for edge in edges)}"
    if not all(map(math.isfinite, edges)):
        return f"{shown} has an edge that is no number"
    if x1 < x0 or y1 < y0:
        return f"{shown} is swapped: x0, y0, x1, y1 must ascend"
    if x1 - x0 < 1 or y1 - y0 < 1:
        return f"{shown} is empty, with less than a pixel along a side"
    if min(x0, y0) < -SLACK or x1 > width + SLACK or y1 > height + SLACK:
        return f"{shown} lies outside its image of {width} x {height} pixels"
    return None


def _from_corner(edges: Edges, width: int, height: int) -> Edges:
    x0, y0, x1, y1 = edges
    return max(x0, 0.0) - 0.5, max(y0, 0.0) - 0.5, min(x1, float(width)) - 0.5, min(y1, float(height)) - 0.5
