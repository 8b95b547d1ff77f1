"""Labelled boxes to a detector in a folder: checked, trained, calibrated, measured and reported on."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from scalechannels.data.boxes.labelled import BoxedImages, LabelledImage
from scalechannels.data.boxes.parts import new_ones, parts, without_objects
from scalechannels.data.boxes.reading import read_boxes
from scalechannels.data.boxes.sheet import summary
from scalechannels.data.decoding import MAX_PIXELS
from scalechannels.detection import established
from scalechannels.detection.learning import to_stderr
from scalechannels.detection.measuring import finder
from scalechannels.detection.own_boxes import PIXELS, Choices, Training, steps_for, unseen
from scalechannels.files import json_text, locked, make_folder, write_text
from scalechannels.report.boxes import boxes_page, thresholds, worst
from scalechannels.report.boxes_measured import HeldOut, not_measured, numbers

REPORT, NUMBERS, STATE, STATE_BESIDE = "report.html", "report.json", "state.pt", "state-against.pt"


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
    against: established.Name | None = None,
    skip: bool = False,
    max_pixels: int | None = None,
    say: Callable[[str], None] = to_stderr,
) -> Path:
    """Train, choose a threshold, measure and report; the detector's folder. A killed training resumes.

    against   torchvision's detector that is trained on the same images, to stand beside it in the report
    """
    limit = max_pixels or MAX_PIXELS
    if against:
        established.require(against, device)
    stated = read_boxes(labels, skip=skip, max_pixels=limit)
    boxed = stated.with_objects()
    quiet = new_ones(stated, without_objects(negatives, limit, skip=skip)) if negatives else []
    choices = Choices.of(boxed, low, high)
    divided = parts(boxed, quiet, seed)
    learnt = divided.learnt
    steps = steps or steps_for(learnt)
    print(summary(stated))
    small, large = (PIXELS * choices.reduce * scale for scale in (choices.grid[1], choices.grid[-2]))
    print(f"{len(choices.grid)} scale channels, for objects of {small:.0f} to {large:.0f} pixels")
    remarks = [*_left_out(stated, boxed), *unseen(learnt, choices, low)]
    for remark in remarks:
        say(f"warning: {remark}")
    options: dict[str, Any] = {"range": [low, high], "seed": seed, "steps": steps}
    options |= {"turns": True} if turns else {}
    options |= {"against": against} if against else {}
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
        test = HeldOut(
            divided.held or [image for image in learnt.images if len(image.labels)],
            divided.quiet,
            low,
            high,
            choices.grey,
            training.channels,
            limit,
            seed,
        )
        tested = test(finder(detector), say)
        result = numbers(tested) | {
            "source": str(boxed.source),
            "classes": boxed.classes,
            "held": len(divided.held),
            "grid": [scale * choices.reduce for scale in choices.grid],
            "smallest": small,
            "largest": large,
            "thresholds": thresholds(tested.sizes),
            "trained": len(learnt.images),
            "objects": learnt.objects,
            "folder": str(folder),
            "seconds": round(seconds, 1),
            "remarks": [*remarks, *not_measured(test, tested)],
            **options,
            "against": None,
        }
        result["verdict"] = verdict(result)
        if against:
            say(f"training torchvision's {against} on the same images")
            begun = time.monotonic()
            other = established.Established(
                against,
                learnt,
                scales=(low, high),
                reduce=choices.reduce,
                turns=turns,
                seed=seed,
                max_pixels=limit,
                device=device,
                state=folder / STATE_BESIDE,
                report=say,
            )
            find = other.run()
            about = {"name": against, "begins": other.begins, "steps": other.steps}
            about["seconds"] = round(time.monotonic() - begun, 1)
            result["against"] = about | numbers(test(find, say))
        detector.with_threshold(tested.threshold).save_pretrained(folder)
        page = boxes_page(result, worst(tested, choices.grey))
        write_text(folder / REPORT, page)
        write_text(folder / NUMBERS, json_text(result) + "\n")  # last: from now on it is finished
        for state in (STATE, STATE_BESIDE):
            (folder / state).unlink(missing_ok=True)
    print(result["verdict"])
    print(f"The report: {folder / REPORT}")
    print(f"Detect:     scalechannels detect IMAGES --network {folder}")
    return folder


def _left_out(stated: BoxedImages, boxed: BoxedImages) -> Iterator[str]:
    """The classes that have a name and no box."""
    if missing := [name for name in stated.classes if name not in boxed.classes]:
        more = ", …" if len(missing) > 5 else ""
        yield f"classes without a box are left out: {', '.join(missing[:5])}{more}"


def identity(boxed: BoxedImages, quiet: Sequence[LabelledImage], options: dict[str, Any]) -> str:
    """What tells one training from another: the labels, the images' names and contents, and the options."""
    labels = [
        [
            image.path.name,
            image.content,
            *(part.tolist() for part in (image.boxes, image.labels, image.ignored)),
        ]
        for image in (*boxed.images, *quiet)
    ]
    return hashlib.sha256(json.dumps([boxed.classes, labels, options]).encode()).hexdigest()[:8]


def verdict(result: dict[str, Any]) -> str:
    """The report in one sentence."""
    sizes = result["sizes"]
    lowest = min(sizes, key=lambda one: one["ap50"])
    where = "held-out images" if result["held"] else "the training images"
    return (
        f"On {where}, average precision at IoU 0.5 is {result['own']['ap50']:.2f} at their own size and at "
        f"least {lowest['ap50']:.2f} from {sizes[0]['size']:g} to {sizes[-1]['size']:g} times that size."
    )
