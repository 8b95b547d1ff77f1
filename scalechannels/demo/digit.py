"""From a drawing or a picture to a digit as MNIST has them: what the networks were trained on.

    pen strokes, or the ink of a picture ──▶ longer side 20 pixels ──▶ centre of mass in the middle of 28 x 28

The line's width follows the digit's size, so that it does not matter how large one draws.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from scalechannels.data.decoding import UnreadableImageError, decode
from scalechannels.data.pictures import as_picture, to_tensor

SIDE = 28
EXTENT = 20
"""MNIST fits its digits into 20 of the 28 pixels."""
PEN = 2.6
"""The line's width in pixels of the digit: that of MNIST's, on average."""
FINE = 10
"""Strokes are drawn on this many times as many points a side and averaged, which gives them soft edges."""
MAX_PIXELS = 24_000_000


class NoDigitError(ValueError):
    """There is nothing in the drawing or picture that could be a digit."""


def digit_from_strokes(strokes: Sequence[Sequence[tuple[float, float]]]) -> Tensor:
    """A digit (28, 28) uint8 from pen strokes, each a list of points (x, y) with y downwards, in any unit."""
    points = np.array([point for stroke in strokes for point in stroke], dtype=np.float64)
    if not len(points):
        raise NoDigitError("nothing is drawn yet")
    low, high = points.min(0), points.max(0)
    # A dot has no size of its own: it is drawn as one, not blown up to a digit. Nor can the least numbers be.
    longest = float((high - low).max())
    zoom = (EXTENT - PEN) / longest if longest > 1e-300 else 1.0
    placed = [(np.array(stroke, dtype=np.float64) - (low + high) / 2) * zoom for stroke in strokes]
    # Once about the middle of its box, to find the centre of mass, and once about that.
    off_centre = _centre_of_mass(_draw(placed, np.zeros(2)))
    return torch.from_numpy(_draw(placed, off_centre))


def digit_from_picture(file: bytes) -> Tensor:
    """A digit (28, 28) uint8 from an image file's content: the ink of a picture with one digit in it.

    Ink is what differs from the border, darker or lighter. Raises UnreadableImageError and NoDigitError.
    """
    image = read_picture(file)[0]  # (H, W)
    border = torch.cat((image[0], image[-1], image[:, 0], image[:, -1])).median()
    ink = (image - border).abs()
    if float(ink.max()) < 0.05:
        raise NoDigitError("this picture has no digit: all of it looks like its border")
    ink = ((ink / ink.max() - 0.25) / 0.5).clamp(0, 1)  # paper is never quite even, ink never quite full
    rows, columns = ((ink > 0.5).any(axis).nonzero()[:, 0] for axis in (1, 0))
    box = ink[int(rows[0]) : int(rows[-1]) + 1, int(columns[0]) : int(columns[-1]) + 1]
    zoom = EXTENT / max(box.shape)
    height, width = (max(1, round(side * zoom)) for side in box.shape)
    picture = as_picture(box)
    smoothing = Image.Resampling.BOX if zoom < 1 else Image.Resampling.BICUBIC
    small = picture.resize((width, height), resample=smoothing)
    frame = Image.new("L", (3 * SIDE, 3 * SIDE))  # large enough for any shift to the centre of mass
    frame.paste(small, ((3 * SIDE - width) // 2, (3 * SIDE - height) // 2))
    left, top = (round(SIDE + off) for off in _centre_of_mass(np.asarray(frame)))
    return torch.from_numpy(np.array(frame.crop((left, top, left + SIDE, top + SIDE))))


def read_picture(file: bytes, *, grey: bool = True) -> Tensor:
    """An image (1, H, W), or (3, H, W) where not `grey`, from 0 to 1 from a file's content.

    Raises UnreadableImageError where it is none.
    """
    if not file:
        raise UnreadableImageError("the file is empty")
    try:
        return to_tensor(decode(io.BytesIO(file), MAX_PIXELS)[0], grey)
    except UnreadableImageError as error:
        message = str(error).split("; raise --")[0]  # the command line's options are not here
        if message.startswith("it is damaged, or not an image"):
            message = "this file is damaged, or not an image"
        raise UnreadableImageError(message) from None


def _draw(strokes: Sequence[np.ndarray], centre: np.ndarray) -> np.ndarray:
    """Strokes in pixels of the digit, `centre` in the middle: (28, 28) uint8.

    Ink is what lies within half the pen's width of the line; a pixel is the share of its points with ink.
    `browser/drawing.js` does the same, operation by operation, and its digits have the same bits.
    """
    inked = np.zeros((SIDE * FINE, SIDE * FINE), dtype=bool)
    middles = (np.arange(SIDE * FINE) + 0.5) / FINE  # of the fine pixels
    for stroke in strokes:
        points = stroke - centre + SIDE / 2
        for start, end in zip(points, points[1:] if len(points) > 1 else points, strict=False):
            low = np.floor((np.minimum(start, end) - PEN / 2) * FINE).clip(0).astype(int)
            high = np.ceil((np.maximum(start, end) + PEN / 2) * FINE).clip(0).astype(int)
            columns, rows = (slice(*ends) for ends in zip(low, high, strict=True))
            x, y = middles[columns] - start[0], middles[rows, None] - start[1]
            dx, dy = end - start
            along = ((x * dx + y * dy) / max(dx * dx + dy * dy, 1e-300)).clip(0, 1)  # (h, w), 1 at the end
            across, down = x - along * dx, y - along * dy
            inked[rows, columns] |= across * across + down * down <= PEN / 2 * (PEN / 2)
    shares = inked.reshape(SIDE, FINE, SIDE, FINE).sum((1, 3)) / FINE**2
    return np.floor(shares * 255 + 0.5).astype(np.uint8)


def _centre_of_mass(image: np.ndarray) -> np.ndarray:
    """x and y, measured from the middle."""
    weights = image.astype(np.float64)
    rows, columns = (np.arange(side) - (side - 1) / 2 for side in image.shape)
    total = weights.sum()
    if not total > 0 or not math.isfinite(total):
        raise NoDigitError("there is no ink in this drawing")
    return np.array([(weights.sum(0) * columns).sum(), (weights.sum(1) * rows).sum()]) / total
