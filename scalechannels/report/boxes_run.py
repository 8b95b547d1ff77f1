"""Labelled boxes to a detector in a folder: checked, trained, calibrated, measured and reported on."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from scalechannels.data.boxes.labelled import BoxedImages, LabelledImage
from scalechannels.data.boxes.reading import read_boxes
from scalechannels.data.boxes.sheet import summary
from scalechannels.data.decoding import MAX_PIXELS
from scalechannels.data.image_files import find_images
from scalechannels.data.pictures import check_image
from scalechannels.detection.detector import Detector
from scalechannels.detection.learning import to_stderr
from scalechannels.detection.measuring import Measured, alarms, calibrated, measure
from scalechannels.detection.own_boxes import PIXELS, Choices, Training, steps_for, unseen
from scalechannels.detection.textures import texture
from scalechannels.files import json_text, locked, make_folder, write_text
from scalechannels.report.boxes import boxes_page, thresholds, worst

REPORT, NUMBERS, STATE = "report.html", "report.json", "state.pt"
SIZES = (0.25, 0.5, 1.0, 2.0, 4.0)
HELD, FEWEST = 0.25, 4
"""The share of the images with objects that is kept for the test, where there are at least so many."""
QUIET_PICTURES, QUIET_SIDE = 16, 256
"""Textures that were not trained on, to count false alarms in."""
MEASURED = 8
"""Images that are measured at most."""


def train_on_boxes(
    labels: Path,
    out: Path,
    device: str,
    *,
    low: float = 0.25,
    high: float = 4.0,
    seed: int = 0,
    steps: int | None = None,
    negatives: Path | None = None,
    turns: bool = False,
    skip: bool = False,
    max_pixels: int | None = None,
    say: Callable[[str], None] = to_stderr,
) -> Path:
    """Train, choose a threshold, measure and report; the detector's folder. A killed training resumes."""
    limit = max_pixels or MAX_PIXELS
    boxed = read_boxes(labels, skip=skip, max_pixels=limit)
    quiet = without_objects(negatives, limit) if negatives else []
    choices = Choices.of(boxed, low, high)
    learnt, held = split(boxed, seed)
    steps = steps or steps_for(learnt)
    print(summary(boxed))
    small, large = (PIXELS * choices.reduce * scale for scale in (choices.grid[1], choices.grid[-2]))
    print(f"{len(choices.grid)} scale channels, for objects of {small:.0f} to {large:.0f} pixels")
    remarks = list(unseen(learnt, choices, low))
    for remark in remarks:
        say(f"warning: {remark}")
    options: dict[str, Any] = {"range": [low, high], "seed": seed, "steps": steps}
    if turns:
        options["turns"] = True
    folder = out / f"detector-{labels.resolve().stem}-{identity(boxed, quiet, options)}"
    make_folder(out)
    with locked(folder):
        if (folder / NUMBERS).exists():
            say("This detector was trained before: nothing was trained.")
            print(folder)
            return folder
        make_folder(folder)
        begun = time.monotonic()
        training = Training(
            learnt,
            choices,
            negatives=quiet,
            seed=seed,
            steps=steps,
            turns=turns,
            max_pixels=limit,
            device=device,
            state=folder / STATE,
            report=say,
        )
        detector = training.run()
        seconds = time.monotonic() - begun
        tested = held or [image for image in learnt.images if len(image.labels)]
        sizes = [size for size in SIZES if low / 1.001 <= size <= high * 1.001]
        say(f"measuring at {len(sizes)} sizes …")
        measured = [
            measure(detector, tested[:MEASURED], size, grey=choices.grey, max_pixels=limit) for size in sizes
        ]
        detector, false, megapixels = with_threshold(detector, measured, training.channels, seed)
        result = numbers(boxed, choices, measured, detector, len(held))
        result |= {
            "alarms": round(float((false >= detector.threshold).sum()) / megapixels, 3),
            "trained": len(learnt.images),
            "objects": learnt.objects,
            "folder": str(folder),
            "seconds": round(seconds, 1),
            "remarks": remarks,
            **options,
        }
        own = min(measured, key=lambda one: abs(one.size - 1))
        errors = worst(own, tested[:MEASURED], choices.grey, detector.threshold) if own.size == 1 else {}
        detector.save_pretrained(folder)
        write_text(folder / REPORT, boxes_page(result, errors))
        write_text(folder / NUMBERS, json_text(result) + "\n")  # last: from now on it is finished
        (folder / STATE).unlink(missing_ok=True)
    print(result["verdict"])
    print(f"The report: {folder / REPORT}")
    print(f"Detect:     scalechannels detect IMAGES --network {folder}")
    return folder


def split(boxed: BoxedImages, seed: int) -> tuple[BoxedImages, list[LabelledImage]]:
    """The images to train on, and those with objects that are kept for the test; none of too few."""
    shown = [image for image in boxed.images if len(image.labels)]
    if len(shown) < FEWEST:
        return boxed, []
    order = torch.randperm(len(shown), generator=torch.Generator().manual_seed(seed)).tolist()
    held = [shown[index] for index in order[: max(1, round(HELD * len(shown)))]]
    return boxed.only([image for image in boxed.images if not any(image is one for one in held)]), held


def without_objects(folder: Path, max_pixels: int) -> list[LabelledImage]:
    """The images of a folder, taken to show no object."""
    if not folder.is_dir():
        raise ValueError(f"--negatives must be a folder of images without objects; got '{folder}'")
    images, nothing = [], torch.zeros(0, 4, dtype=torch.float64)
    for path in find_images(folder).images:
        seen = check_image(path, max_pixels)
        none = torch.zeros(0, dtype=torch.int64)
        images.append(LabelledImage(path, seen.height, seen.width, seen.grey, nothing, none, nothing))
    if not images:
        raise ValueError(f"'{folder}' has no images to use as --negatives")
    return images


def identity(boxed: BoxedImages, quiet: Sequence[LabelledImage], options: dict[str, Any]) -> str:
    """What tells one training from another: the labels, the images' names and sizes, and the options."""
    labels = [
        [image.path.name, image.path.stat().st_size, image.boxes.tolist(), image.labels.tolist()]
        for image in (*boxed.images, *quiet)
    ]
    return hashlib.sha256(json.dumps([boxed.classes, labels, options]).encode()).hexdigest()[:8]


def with_threshold(
    detector: Detector, measured: Sequence[Measured], channels: int, seed: int
) -> tuple[Detector, torch.Tensor, float]:
    """The detector with its default threshold, and what it finds in pictures without objects."""
    generator = torch.Generator().manual_seed(seed + 1)
    pictures = (texture(channels, QUIET_SIDE, generator) for _ in range(QUIET_PICTURES))
    false, megapixels = alarms(detector, pictures)
    near = [one for one in measured if 0.4 < one.size < 2.5] or list(measured)
    threshold = calibrated(near, false, megapixels)
    return detector.with_threshold(threshold), false, megapixels


def numbers(
    boxed: BoxedImages, choices: Choices, measured: Sequence[Measured], detector: Detector, held: int
) -> dict[str, Any]:
    """What the report says."""
    count = len(boxed.classes)
    sizes = [
        {
            "size": one.size,
            "ap50": round(one.precision(count), 4),
            "ap75": round(one.precision(count, 0.75), 4),
            "objects": one.objects,
            "seconds_a_megapixel": round(one.seconds / max(one.pixels / 1e6, 1e-9), 2),
        }
        for one in measured
        if one.objects
    ]
    own = min(sizes, key=lambda one: abs(one["size"] - 1))
    lowest = min(sizes, key=lambda one: one["ap50"])
    where = "held-out images" if held else "the training images"
    verdict = (
        f"On {where}, average precision at IoU 0.5 is {own['ap50']:.2f} at their own size and at least "
        f"{lowest['ap50']:.2f} from {sizes[0]['size']:g} to {sizes[-1]['size']:g} times that size."
    )
    return {
        "verdict": verdict,
        "source": str(boxed.source),
        "classes": boxed.classes,
        "held": held,
        "threshold": detector.threshold,
        "grid": [scale * choices.reduce for scale in choices.grid],
        "smallest": PIXELS * choices.reduce * choices.grid[1],
        "largest": PIXELS * choices.reduce * choices.grid[-2],
        "own": own,
        "sizes": sizes,
        "rows": [
            [f"{one['size']:g}", f"{one['ap50']:.3f}", f"{one['ap75']:.3f}", one["objects"],
             one["seconds_a_megapixel"]]
            for one in sizes
        ],
        "thresholds": thresholds(measured),
    }  # fmt: skip
