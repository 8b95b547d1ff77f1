"""What the detection benchmarks share: scenes of digits of many sizes, and a file of what was found there.

Scenes of 1024 x 1024 with 10 to 20 MNIST digits of sizes 1/2 to 4 (log-uniform), on plain and noisy
background, and before photographs of the same split (see `benchmarks.collecting`), darkened so that white is
darker than ink; the digits are those of MNIST's test set, or for validation the last 10,000 for training. A
line of the file is one network in one scene: its row of the table, seed, split, background, scene, seconds,
how it was trained, and `found`, a list of [x0, y0, x1, y1, class, score] in pixel-centre coordinates.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.collecting import collected
from scalechannels.data.anywhere import Pictures
from scalechannels.data.frames import reduced
from scalechannels.data.pictures import read_image
from scalechannels.data.scenes import Scene, scene
from scalechannels.data.sources import load_mnist
from scalechannels.detection.photographs import stretched
from scalechannels.files import append_line, json_lines
from scalechannels.training.runs import environment

SIDE, SIZES = 1024, (0.5, 4.0)
BACKGROUNDS = ("plain", "noisy")
PICTURED = "photographs"
"""A third background, where the photographs have been collected."""
FIRST = {"test": 5000, "validation": 1000}
"""The seeds of the scenes."""
TAIL = 0.02
"""Detections of so little probability still count: the curve of precision needs its end."""
MOST = 100
"""Detections of a scene that count, the best ones: as many as COCO counts."""
STEPS, CANVASES = 3000, 16
"""Of every training: steps, and images of 180 x 180 pixels with digits of one size in each."""
Found = list[list[float]]
Method = Callable[[Tensor], Found]


@cache
def objects(split: str) -> Pictures:
    mnist = load_mnist()
    if split == "test":
        return Pictures(mnist.test_images, mnist.test_labels)
    return Pictures(mnist.train_images[50_000:], mnist.train_labels[50_000:])


@cache  # networks of several seeds look into the same ones
def made(
    split: Any, background: Any, count: int, drawn: Any = None, photographs: Path | None = None
) -> tuple[tuple[int, Scene], ...]:
    """The scenes of a background, each with its seed; of MNIST's digits where none are given.

    Boxes and classes of a scene are the same on every background. Without the folder of photographs, those of
    scenes before them are on plain background.
    """
    pictures: list[Path] = []
    if background == PICTURED:
        background = "plain"
        pictures = collected("photographs", photographs, split) if photographs else []

    return tuple(
        numbered(
            number,
            split,
            backdrop(pictures[number % len(pictures)], FIRST[split] + number) if pictures else background,
            objects(split) if drawn is None else drawn,
        )
        for number in range(count)
    )


def numbered(number: int, split: str, background: Any, drawn: Any) -> tuple[int, Scene]:
    """One scene of a split with its seed, of these objects."""
    seed = FIRST[split] + number
    return seed, scene(
        10 + number % 11,
        seed,
        height=SIDE,
        width=SIDE,
        sizes=SIZES,
        background=background,
        objects=drawn,
    )


def backdrop(path: Path, seed: int) -> Tensor:
    """A square of a photograph, made as small as fits, at full contrast; small ones are enlarged first."""
    picture = read_image(path, grey=True)
    factor = max(1, min(picture.shape[1:]) // SIDE)
    picture = reduced(picture, factor)
    if min(picture.shape[1:]) < SIDE:
        grown = SIDE / min(picture.shape[1:])
        shape = [math.ceil(side * grown) for side in picture.shape[1:]]
        picture = F.interpolate(picture[None], shape, mode="bicubic")[0]
    generator = torch.Generator().manual_seed(seed)
    top, left = (int(torch.randint(side - SIDE + 1, (), generator=generator)) for side in picture.shape[1:])
    return stretched(picture[0, top : top + SIDE, left : left + SIDE])


def look(
    methods: dict[str, Method],
    about: dict[str, Any],
    split: str,
    count: int,
    out: Path,
    seed: int,
    photographs: Path | None = None,
) -> None:
    """Look into every scene with every method, and add what each finds to the file.

    methods   by their rows; they take turns on each scene, so that noise of the machine hits all alike
    about     how the network was trained, by the same rows
    """
    known = {key(line) for line in json_lines(out)}
    for background in (*BACKGROUNDS, *([PICTURED] if photographs else [])):
        for number, one in made(split, background, count, None, photographs):
            for row, method in methods.items():
                line = {"row": row, "seed": seed, "split": split, "background": background, "scene": number}
                if key(line) in known:
                    continue
                start = time.perf_counter()
                found = method(one.image)
                line |= {"seconds": round(time.perf_counter() - start, 4), "trained": about[row]}
                line["found"] = [
                    [*(round(edge, 1) for edge in box), int(label), round(score, 4)]
                    for *box, label, score in sorted(found, key=lambda one: -one[5])[:MOST]
                ]
                append_line(out, line)


def training_told(steps: int, seen: dict[str, int], start: float, device: torch.device) -> dict[str, Any]:
    """How a network was trained: its budget, its time, and where."""
    where = {name: environment(device)[name] for name in ("device", "commit", "torch")}
    return {"steps": steps, **seen, "seconds": round(time.perf_counter() - start), **where}


def key(line: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(line[name] for name in ("row", "seed", "split", "background", "scene"))


def as_found(boxes: Tensor, labels: Tensor, scores: Tensor) -> Found:
    """Boxes (N, 4) with their classes and scores (N,), as the file has them."""
    parts: Sequence[Sequence[Any]] = (boxes.tolist(), labels.tolist(), scores.tolist())
    return [[*box, label, score] for box, label, score in zip(*parts, strict=True)]


def canvas_boxes(middles: Tensor, labels: Tensor, half: float = 14.0) -> list[dict[str, Tensor]]:
    """The digits of canvases as torchvision takes them: boxes between pixel edges, and their classes."""
    targets = []
    for places, classes in zip(middles, labels, strict=True):
        there = classes >= 0
        columns_first = places[there].flip(1) + 0.5  # from pixel centres to edges
        boxes = torch.cat([columns_first - half, columns_first + half], 1)
        targets.append({"boxes": boxes.float(), "labels": classes[there]})
    return targets
