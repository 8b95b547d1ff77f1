"""The second tab: a scene or a user's picture, and what a detector of digits or of own boxes finds in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from scalechannels.backbones.inference import stated
from scalechannels.data.frames import reduced
from scalechannels.data.pictures import Values, as_digits, as_shown, as_taken, is_dark_on_light, png
from scalechannels.data.scenes import Background, scene
from scalechannels.data.strokes import CLASSES
from scalechannels.demo.digit import read_picture
from scalechannels.detection.detector import Detector
from scalechannels.detection.found import Detection
from scalechannels.detection.overlay import FOUND, OF_CLASSES
from scalechannels.saving.saved_network import SavedNetwork

HEIGHT, WIDTH, DIGITS = 448, 640, 12
LONGEST = 1024
"""A larger picture is reduced to this many pixels a side: an answer must come in seconds."""
DIGIT_NAMES = tuple(str(digit) for digit in range(CLASSES))

Detect = Callable[[Tensor], Sequence[Detection]]
"""An image (C, H, W), with the values that the network takes, to the objects in it."""


@dataclass(frozen=True)
class Finder:
    """A detector, and how its pictures are prepared and its classes named."""

    detect: Detect
    classes: Sequence[str] = DIGIT_NAMES
    threshold: float = 0.5
    grey: bool = True
    values: Values = "digits"
    reduce: int = 1

    @property
    def of_digits(self) -> bool:
        """Whether the demo's own scenes are for it."""
        return self.grey and self.values == "digits" and tuple(self.classes) == DIGIT_NAMES

    def name(self, label: int) -> str:
        return self.classes[label] if label < len(self.classes) else str(label)

    def settings(self) -> dict[str, Any]:
        """What the page needs to know once. Classes have the colours of `detect`'s pictures."""
        colours = OF_CLASSES if len(self.classes) <= len(OF_CLASSES) else (FOUND,) * len(self.classes)
        named = zip(self.classes, colours, strict=False)
        return {
            "digits": self.of_digits,
            "threshold": round(self.threshold, 4),
            "classes": [{"name": name, "colour": f"#{bytes(colour).hex()}"} for name, colour in named],
        }


def open_detector(place: Path) -> Finder:
    """The detector of a folder, or a shipped one."""
    saved = SavedNetwork.open(place)
    try:
        detector = Detector(saved.network, background=saved.background, threshold=saved.threshold)
    except (TypeError, ValueError) as error:
        raise ValueError(f"'{place}' holds no detector: {error}") from error
    count = stated(saved.network.backbone, "classes") or 0
    classes = saved.classes or [str(label) for label in range(count - (saved.background is not None))]
    return Finder(detector, classes, detector.threshold, saved.grey, saved.values, saved.reduce)


def made_scene(finder: Finder, seed: int, background: Background) -> dict[str, Any]:
    """A generated scene with its truth and what was found."""
    made = scene(DIGITS, seed, height=HEIGHT, width=WIDTH, background=background)
    truth = [
        {"box": [round(side, 2) for side in box], "class": str(label)}
        for box, label in zip(made.boxes.tolist(), made.labels.tolist(), strict=True)
    ]
    return {**_answer(finder, made.image, as_shown(made.image[0])), "truth": truth}


def dropped_picture(finder: Finder, file: bytes) -> dict[str, Any]:
    """What is found in a user's picture, which is shown as it was searched: with as many pixels."""
    if finder.of_digits:  # light digits on dark ground, or the other way round
        image, shrunk = _small(read_picture(file), 1)
        taken = as_digits(1 - image if is_dark_on_light(image) else image)
        return {**_answer(finder, taken, as_shown(taken[0]), shrunk), "truth": None}
    shown, shrunk = _small(read_picture(file, grey=False), finder.reduce)
    image = _small(read_picture(file), finder.reduce)[0] if finder.grey else shown
    return {**_answer(finder, as_taken(image, finder.values), shown, shrunk), "truth": None}


def _small(picture: Tensor, reduce: int) -> tuple[Tensor, float]:
    """A picture (C, H, W) of the pixels that a detector takes, no more than can be searched in seconds.

    Also how many pixels of the first along a side became one of the second: 1 unless it was too large.
    """
    image = reduced(picture, reduce)
    longest = max(image.shape[1:])
    if longest <= LONGEST:
        return image, 1.0
    size = [max(1, round(side * LONGEST / longest)) for side in image.shape[1:]]
    return F.interpolate(image[None], size, mode="area")[0], longest / LONGEST


def _answer(finder: Finder, image: Tensor, shown: Tensor, shrunk: float = 1.0) -> dict[str, Any]:
    with torch.inference_mode():
        found = finder.detect(image)
    return {
        "height": image.shape[1],
        "width": image.shape[2],
        "shrunk": round(shrunk, 3),
        "pixel": round(shrunk * finder.reduce, 3),  # of the file's, in one of these
        "picture": png(shown),
        "found": [
            {
                "box": [round(side, 2) for side in one.box],
                "class": finder.name(one.label),
                "probability": round(one.probability, 4),
                "size": round(one.scale, 3),
            }
            for one in found
        ],
    }
