"""Pictures of detections: the image with a box, a class and a probability for every object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PIL import ImageDraw, ImageFont
from PIL.Image import Image, Resampling
from torch import Tensor

from scalechannels.data.pictures import as_picture

FOUND, AT_EDGE = (255, 149, 0), (90, 170, 255)  # orange; blue for objects whose scale is at the grid's edge
OF_CLASSES = (FOUND, (80, 220, 100), (255, 105, 180), (240, 220, 60), (190, 140, 255), (0, 210, 210))
"""Those of a user's own classes, in turn."""
LARGEST = 4096
"""Pixels along the longer side of a picture; larger images are shown smaller."""
SMALLEST = 256
"""Small images are shown in whole multiples, so that captions can be read."""


def draw(image: Tensor, objects: Sequence[Mapping[str, Any]], classes: Sequence[str] | None = None) -> Image:
    """The image (C, H, W), 0 to 1, with boxes. An object has "box", "class", "probability" and "at_edge".

    classes   the names, where up to six classes have a colour each; more have one
    """
    several = classes if classes and len(classes) <= len(OF_CLASSES) else ()
    colours = {name: OF_CLASSES[number] for number, name in enumerate(several)}
    longest = max(image.shape[1:])
    # Of a huge image only every `step`-th pixel is kept, before anything is copied.
    step = -(-longest // LARGEST)
    zoom = max(1, SMALLEST // longest)
    picture = as_picture(image[:, ::step, ::step]).convert("RGB")
    picture = picture.resize((picture.width * zoom, picture.height * zoom), Resampling.NEAREST)
    factor = zoom / step
    pen = ImageDraw.Draw(picture)
    line = max(1, round(max(picture.size) / 600))
    font = ImageFont.load_default(max(11, round(max(picture.size) / 75)))
    for one in objects:
        colour = AT_EDGE if one["at_edge"] else colours.get(one["class"], FOUND)
        # Pixel i covers [i − 1/2, i + 1/2], the picture counts from its corner.
        x0, y0, x1, y1 = ((edge + 0.5) * factor for edge in one["box"])
        pen.rectangle((x0, y0, max(x1 - 1, x0), max(y1 - 1, y0)), outline=colour, width=line)
        text = f"{one['class']} ({one['probability']:.2f})"
        left, top, right, bottom = pen.textbbox((0, 0), text, font=font)
        x = min(max(x0, 0), max(picture.width - (right - left) - 2, 0))
        above = y0 - bottom - 2
        y = above if above >= 0 else min(y1 + 1, picture.height - bottom - 1)
        pen.rectangle((x, y + top - 1, x + right - left + 3, y + bottom + 1), fill=(0, 0, 0))
        pen.text((x + 1 - left, y), text, fill=colour, font=font)
    return picture
