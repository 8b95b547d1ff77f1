"""Where the network that is kept looked: test images with the window that decided, and what it said.

Law: every test image counts in the numbers; the pictures are spread evenly over them, whatever was said of
them. Limit: where an object lies is known only of those that stand out from their surroundings.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from scalechannels.data.frames import reduced
from scalechannels.data.standing_out import standing_out
from scalechannels.detection.overlay import draw
from scalechannels.report.trial import MOST_TESTED, answered, thinned
from scalechannels.training.own_images import FolderData

SHOWN = 12
SIDE = 256
"""Pixels of a picture's longer side, at least; larger images are reduced by a whole factor."""


@dataclass(frozen=True)
class Looked:
    """What the report shows and says of it."""

    everywhere: bool
    scales: int
    images: int
    standing: int
    """Images in which an object stands out."""
    found: int
    """Of these, in how many the window's centre is within half the object's side of the object's centre."""
    distance: float | None
    """How far the two centres are apart, the median over these images in pixels of the files."""
    sized: bool
    """Whether the size of the training objects is known, which the pictures' sizes are relative to."""
    pictures: list[tuple[Tensor, str]]
    """Images (3, H, W) with the window, and a line on each."""

    def numbers(self) -> dict[str, Any]:
        names = ("everywhere", "scales", "images", "standing", "found", "distance")
        return {name: getattr(self, name) for name in names}


def looked(network: Any, data: FolderData) -> Looked | None:
    """Where it looked in the test images at their own size; None of a network without channels."""
    if not hasattr(network, "grid"):
        return None
    network.eval()
    chosen = thinned(len(data.kept), MOST_TESTED["test"])
    images = [data.image("test", index) for index in chosen]
    said = answered(network, images, data.device)
    assert said.scales is not None
    assert said.contributions is not None
    usage = network.usage or {}
    sure, labels = (said.logits / (usage.get("temperature") or 1)).softmax(1).max(1)
    own = usage.get("own_scale")
    last = len(network.grid) - 1
    apart, found = [], 0
    shown = {round(k * (len(images) - 1) / (SHOWN - 1)) for k in range(SHOWN)}
    pictures = []
    for number, image in enumerate(images):
        row, column = ((side - 1) / 2 for side in image.shape[1:])
        if said.places is not None:
            row, column = said.places[number].tolist()
        there = standing_out(image)
        if there is not None:
            off = max(abs(row - there.centre[0]), abs(column - there.centre[1]))
            found += off <= there.extent * max(image.shape[1:]) / 2
            apart.append(data.reduce * float(np.hypot(row - there.centre[0], column - there.centre[1])))
        if number in shown:
            scale, label = float(said.scales[number]), data.classes[int(labels[number])]
            window = {
                "centre": (row, column),
                "half": scale * network.foveate.window / 2,
                "class": label,
                "probability": float(sure[number]),
                "at_edge": last > 0 and int(said.contributions[number].argmax()) in (0, last),
            }
            truth = data.classes[data.kept.labels[chosen[number]]]
            told = f"{truth}: right" if truth == label else f"{truth}: taken for {label}"
            size = "" if own is None else f", size {scale / own:.2g}"
            pictures.append((_picture(image, window), told + size))
    return Looked(
        said.places is not None,
        last + 1,
        len(images),
        len(apart),
        found,
        statistics.median(apart) if apart else None,
        own is not None,
        pictures,
    )


def _picture(image: Tensor, window: dict[str, Any]) -> Tensor:
    """The image (3, H, W) with the window, no larger than it needs to be."""
    smaller = max(1, max(image.shape[1:]) // SIDE)
    seen = reduced(image, smaller)
    # A reduction keeps the centre where it is.
    row, column = (
        (less - 1) / 2 + (at - (side - 1) / 2) / smaller
        for at, side, less in zip(window["centre"], image.shape[1:], seen.shape[1:], strict=True)
    )
    half = window["half"] / smaller
    box = (column - half, row - half, column + half, row + half)
    drawn = np.asarray(draw(seen, [{**window, "box": box}]))
    return torch.from_numpy(drawn.copy()).movedim(2, 0) / 255
