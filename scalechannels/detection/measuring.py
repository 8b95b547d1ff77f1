"""How good a detector is: on labelled images at simulated sizes, and on pictures without objects.

The images are rescaled as a whole (bicubic, anti-aliased below 1) and looked at by the detector as it is, or
by anything else that finds boxes. Limit: a camera that comes closer sees detail that no enlargement can make.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from scalechannels.data.boxes.labelled import LabelledImage
from scalechannels.data.decoding import MAX_PIXELS
from scalechannels.data.frames import reduced
from scalechannels.detection.average_precision import Ranked, right
from scalechannels.detection.boxes import intersections
from scalechannels.detection.coco_precision import Precision, coco_precision
from scalechannels.detection.detector import Detector
from scalechannels.detection.found import Detection, enlarged
from scalechannels.saving.usage import used

TAIL = 0.02
"""Detections of so little probability still count: the curve of precision needs its end."""
MOST_PIXELS = 24e6
"""Of one enlarged image; larger ones are not looked at."""
QUIET = 0.1
"""False alarms a megapixel that the threshold allows on pictures without objects."""
KEPT = 0.95
"""The share of the objects that the threshold should keep."""
Finder = Callable[[Tensor], Ranked]
"""What finds boxes in an image (C, H, W) from 0 to 1, down to a probability of `TAIL`."""


@dataclass
class Measured:
    """What a detector found in some images at one size."""

    size: float
    found: list[Ranked] = field(default_factory=list)
    truth: list[Ranked] = field(default_factory=list)
    pixels: float = 0.0
    seconds: float = 0.0
    images: list[LabelledImage] = field(default_factory=list)
    """Those that were looked at."""
    too_large: int = 0
    """Those that were not, since they would have had more than `MOST_PIXELS`."""

    @property
    def objects(self) -> int:
        return sum(len(one.labels) for one in self.truth)

    def precision(self) -> Precision:
        """COCO's average precision; the images must show an object."""
        return coco_precision(self.found, self.truth)

    def ranked(self, iou: float = 0.5) -> tuple[Tensor, Tensor]:
        """The probabilities of all that was found, and which of it is right."""
        hits = [right(*pair, iou=iou) for pair in zip(self.found, self.truth, strict=True)]
        scores = [torch.zeros(0, dtype=torch.float64), *(one.scores.double() for one in self.found)]
        return torch.cat(scores), torch.cat([torch.zeros(0, dtype=torch.bool), *hits])


def look(detector: Detector, picture: Tensor, reduce: int) -> list[Detection]:
    """What a detector finds in an image (C, H, W) that is reduced first, in pixels of the whole."""
    prepared = reduced(picture, reduce).to(next(detector.network.parameters()).device)
    return [enlarged(one, reduce, prepared.shape, picture.shape) for one in detector(prepared)]


def finder(detector: Detector) -> Finder:
    """How `measure` looks with a detector."""
    reduce = used(detector.network)["reduce"]
    sensitive = detector.with_threshold(TAIL)
    return lambda picture: ranked(look(sensitive, picture, reduce))


def measure(
    find: Finder,
    images: Sequence[LabelledImage],
    size: float,
    *,
    grey: bool,
    max_pixels: int = MAX_PIXELS,
) -> Measured:
    """What is found in images rescaled by `size`.

    What is found in ignored regions counts neither as right nor as wrong.
    """
    result = Measured(size)
    for image in images:
        height, width = (max(1, round(side * size)) for side in (image.height, image.width))
        if size > 1 and height * width > MOST_PIXELS:
            result.too_large += 1
            continue
        picture = image.read(grey, max_pixels)
        if size != 1:
            shape = (height, width)
            picture = F.interpolate(picture[None], shape, mode="bicubic", antialias=size < 1)[0].clamp(0, 1)
        factors = torch.tensor([width / image.width, height / image.height] * 2, dtype=torch.float64)
        boxes, ignored = ((edges + 0.5) * factors - 0.5 for edges in (image.boxes, image.ignored))
        begun = time.perf_counter()
        found = find(picture)
        result.seconds += time.perf_counter() - begun
        result.pixels += height * width
        if len(ignored) and len(found.labels):
            own = (found.boxes[:, 2:] - found.boxes[:, :2]).prod(1)
            counts = intersections(found.boxes, ignored).amax(1) < 0.5 * own
            found = Ranked(found.boxes[counts], found.labels[counts], found.scores[counts])
        result.images.append(image)
        result.found.append(found)
        result.truth.append(Ranked(boxes, image.labels, torch.ones(len(boxes), dtype=torch.float64)))
    return result


def ranked(found: Sequence[Detection]) -> Ranked:
    return Ranked(
        torch.tensor([one.box for one in found], dtype=torch.float64).view(-1, 4),
        torch.tensor([one.label for one in found], dtype=torch.int64),
        torch.tensor([one.probability for one in found], dtype=torch.float64),
    )


def alarms(find: Finder, pictures: Iterable[Tensor]) -> tuple[Tensor, float]:
    """The probabilities of what is found in pictures (C, H, W) without objects, and their megapixels."""
    scores, megapixels = [torch.zeros(0, dtype=torch.float64)], 0.0
    for picture in pictures:
        scores.append(find(picture).scores)
        megapixels += picture[0].numel() / 1e6
    return torch.cat(scores), megapixels


def calibrated(measured: Sequence[Measured], wrong: Tensor, megapixels: float) -> float:
    """The threshold half way, in log-odds, between what keeps the objects and what keeps false alarms away.

    Above the first, `KEPT` of the objects would be lost; below the second there would be more than `QUIET`
    false alarms a megapixel, in the images or beside them. Law: it lies from 0.5 to 0.95.
    """
    hits = [one.ranked() for one in measured]
    kept = torch.cat([scores[right_] for scores, right_ in hits])
    lost = sum(one.objects for one in measured) - len(kept)
    kept = torch.cat((kept, torch.zeros(lost, dtype=torch.float64)))
    high = float(kept.quantile(1 - KEPT)) if len(kept) else 0.5
    false = torch.cat([wrong, *(scores[~right_] for scores, right_ in hits)]).sort(descending=True).values
    area = megapixels + sum(one.pixels for one in measured) / 1e6
    allowed = int(QUIET * area)
    low = float(false[allowed]) if len(false) > allowed else 0.5
    odds = torch.tensor([min(max(one, 0.5), 0.998) for one in (low, high)], dtype=torch.float64).logit()
    return round(min(max(float(odds.mean().sigmoid()), 0.5), 0.95), 3)
