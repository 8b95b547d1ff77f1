"""Boxes in photographs that are stored turned: phones keep the sensor's picture, EXIF says how to turn it.

Convention: boxes are of the picture as it is shown, upright, as labelling tools show it today. Some tools
show the file as it is stored. Where labels give the image's size, it tells which of the two they mean, unless
the picture is turned by half a circle, mirrored, or square.
"""

from __future__ import annotations

from scalechannels.data.boxes.labelled import Edges

TRANSPOSED = 5
"""From this EXIF orientation on, width and height change places."""


def says_stored(size: tuple[int, int] | None, height: int, width: int, orientation: int) -> bool | None:
    """Whether labels that give this size mean the file as stored; None where nothing tells.

    height, width   of the picture as it is shown
    """
    if orientation < TRANSPOSED or height == width or size not in ((height, width), (width, height)):
        return None
    return size == (width, height)


def upright(edges: Edges, height: int, width: int, orientation: int) -> Edges:
    """A box of the file as stored, in the picture as it is shown, whose sides are given.

    Law: it moves as the pixels do in Pillow's `exif_transpose`.
    """
    x0, y0, x1, y1 = edges
    if orientation >= TRANSPOSED:
        x0, y0, x1, y1 = y0, x0, y1, x1
    if orientation in (2, 3, 6, 7):  # left and right change places
        x0, x1 = width - x1, width - x0
    if orientation in (3, 4, 7, 8):
        y0, y1 = height - y1, height - y0
    return x0, y0, x1, y1
