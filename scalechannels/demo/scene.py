"""The second tab: a scene or a dropped picture, and what is found in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from scalechannels.data.pictures import as_digits, as_shown, is_dark_on_light, png
from scalechannels.data.scenes import Background, scene
from scalechannels.data.strokes import CLASSES
from scalechannels.demo.digit import read_picture
from scalechannels.demo.looks import require_digits
from scalechannels.detection.detector import Detection, Detector
from scalechannels.saving.saved_network import SavedNetwork

HEIGHT, WIDTH, DIGITS = 448, 640, 12
LONGEST = 1024
"""A larger picture is reduced to this many pixels a side: an answer must come in seconds."""

Detect = Callable[[Tensor], Sequence[Detection]]
"""An image (1, H, W) from −0.76 to 0.76 to the objects in it."""


def open_detector(place: Path) -> Detect:
    """The detector of a folder, or a shipped one, for images from −0.76 to 0.76."""
    saved = SavedNetwork.open(place)
    try:
        require_digits(saved.network, CLASSES + (saved.background is not None), "a detector", "this one")
        return Detector(saved.network, background=saved.background, threshold=saved.threshold)
    except (TypeError, ValueError) as error:
        raise ValueError(f"'{place}' holds no detector of digits: {error}") from error


def made_scene(detect: Detect, seed: int, background: Background) -> dict[str, Any]:
    """A generated scene with its truth and what was found."""
    made = scene(DIGITS, seed, height=HEIGHT, width=WIDTH, background=background)
    truth = [
        {"box": [round(side, 2) for side in box], "digit": label}
        for box, label in zip(made.boxes.tolist(), made.labels.tolist(), strict=True)
    ]
    return {**_answer(made.image, detect), "truth": truth}


def dropped_picture(detect: Detect, file: bytes) -> dict[str, Any]:
    """What is found in a user's picture: light digits on dark ground, or the other way round."""
    image = read_picture(file)
    longest = max(image.shape[1:])
    if longest > LONGEST:
        size = [max(1, round(side * LONGEST / longest)) for side in image.shape[1:]]
        image = F.interpolate(image[None], size, mode="area")[0]
    if is_dark_on_light(image):
        image = 1 - image
    return {**_answer(as_digits(image), detect), "truth": None}


def _answer(image: Tensor, detect: Detect) -> dict[str, Any]:
    with torch.inference_mode():
        found = detect(image)
    return {
        "height": image.shape[1],
        "width": image.shape[2],
        "picture": png(as_shown(image[0])),
        "found": [
            {
                "box": [round(side, 2) for side in one.box],
                "digit": one.label,
                "probability": round(one.probability, 4),
                "size": round(one.scale, 3),
            }
            for one in found
        ],
    }
