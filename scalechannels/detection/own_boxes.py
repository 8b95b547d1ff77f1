"""A detector of a user's own objects, from labelled boxes of one size: what is chosen, and how it is learnt.

    boxes ──Choices──▶ windows onto objects, beside them, and onto textures ──▶ rounds of learning; between
    two rounds, what the network takes for objects is looked for and added ──▶ Detector

Few objects are enough to begin with: every one is seen through hundreds of windows. What they do not show,
such as other lights, sides and backgrounds, is not learnt; `unseen` says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from scalechannels.backbones.paper import ConvBackbone
from scalechannels.data.boxes.labelled import BoxedImages, LabelledImage
from scalechannels.data.decoding import MAX_PIXELS
from scalechannels.data.frames import reduced
from scalechannels.detection.boxes import overlap
from scalechannels.detection.detector import Detector, Rules
from scalechannels.detection.learning import Batch, learn
from scalechannels.detection.textures import texture
from scalechannels.detection.window_pool import Looks, Objects, Pool, joined, looks, pooled, varied
from scalechannels.network import ScaleChannelNetwork
from scalechannels.pooling import MaxOverScales
from scalechannels.saving.usage import BOX_OUTPUTS
from scalechannels.scales import QUARTER_OCTAVE, ScaleGrid

WINDOW, PIXELS = 28, 20.0
"""The window's side, and the longer side of an object in the window that fits it."""
FEATURES, HIDDEN = (16, 24, 32, 48), 64
SMALLEST = 8.0
"""Pixels along an object below which it is not looked for."""
ABOUT, FOR_EACH = 9_000, 30
"""Windows onto the user's images, and those for each object where that makes more."""
ELSEWHERE, EACH = 3_000, 60
"""Windows onto made-up textures, and onto each of these."""
MINED, BEST = 3_000, 60
"""Windows that a round of mining adds at most, and those that it takes from one image."""
TEXTURE = 192
"""Pixels along a texture."""
MINING = 40e6
"""Pixels, counted in all channels, that a round of mining looks at: half in images, half in textures."""
PART = 1024
"""Pixels along the part of a large image that a round of mining looks at."""
BATCH, ROUNDS, RATE = 256, 4, 3e-3
STEPS, MORE, MOST = 1200, 4, 5_000
"""Steps of a training: so many, and more for each object, up to the most."""
FEW = 20
"""Objects of a class below which a user is warned."""


@dataclass(frozen=True)
class Choices:
    """What is settled before learning begins, from the boxes and the range that is asked for."""

    grid: ScaleGrid
    reduce: int
    """How many times smaller images are made first."""
    grey: bool
    iou: float
    inside: float

    @classmethod
    def of(cls, boxed: BoxedImages, low: float = 0.25, high: float = 4.0) -> Choices:
        """Channels for objects from `low` times the smallest to `high` times the largest, and one beyond.

        The smallest and the largest are the 5th and the 95th percentile of the boxes' longer sides. Limit:
        objects of less than 8 pixels are not looked for.
        """
        if not 0 < low <= 1 <= high < math.inf:
            raise ValueError(f"--range must hold 1, the size in your images; got {low:g} {high:g}")
        sizes = boxed.sizes
        smallest = max(float(sizes.quantile(0.05)) * low, SMALLEST) / PIXELS
        largest = max(float(sizes.quantile(0.95)) * high / PIXELS, smallest)
        reduce = max(1, int(smallest / QUARTER_OCTAVE))
        # One channel more at each end, so that peaks in the range have two neighbours.
        steps = math.ceil(math.log(largest / smallest, QUARTER_OCTAVE) - 1e-6) + 2
        first = smallest / QUARTER_OCTAVE / reduce
        grid = ScaleGrid(first, first * QUARTER_OCTAVE**steps, ratio=QUARTER_OCTAVE)
        return cls(grid, reduce, boxed.grey, *_crowded(boxed))


def _crowded(boxed: BoxedImages) -> tuple[float, float]:
    """How much boxes may overlap and still be of two objects: as much as the user's own do, and a little."""
    shared = [0.0]
    for image in boxed.images:
        if len(image.labels) > 1:
            shared += overlap(image.boxes, image.boxes).fill_diagonal_(0).amax(1).tolist()
    iou = min(max(0.3, float(torch.tensor(shared).quantile(0.9)) + 0.1), 0.6)
    return iou, 0.6 if iou == 0.3 else 0.85


def steps_for(boxed: BoxedImages) -> int:
    return min(STEPS + MORE * boxed.objects, max(STEPS, MOST))


def unseen(boxed: BoxedImages, choices: Choices, low: float) -> Iterator[str]:
    """What a user should know about these boxes before relying on what is learnt from them."""
    for name, count in zip(boxed.classes, boxed.counts(), strict=True):
        if count < FEW:
            lacks = "no objects" if count == 0 else "1 object" if count == 1 else f"{count} objects"
            yield f"class '{name}' has {lacks}: other looks, lights and sides of it are not learnt"
    with_objects = sum(len(image.labels) > 0 for image in boxed.images)
    if with_objects < 3 and all(len(image.labels) for image in boxed.images):
        yield (
            "few images and none without objects: on other backgrounds there may be false alarms; add images "
            "without boxes, or give a folder of any photographs without objects as --negatives"
        )
    tiny = float(boxed.sizes.quantile(0.05)) * low
    if tiny < SMALLEST:
        yield f"objects of {tiny:.1f} pixels, as --range asks, are too small; {SMALLEST:g} and more are found"


class Training:
    """The windows, the network and the rounds of one training; see the module."""

    def __init__(
        self,
        boxed: BoxedImages,
        choices: Choices,
        *,
        seed: int = 0,
        steps: int | None = None,
        flips: bool = True,
        turns: bool = False,
        max_pixels: int = MAX_PIXELS,
        device: str = "cpu",
        state: Path | None = None,
        report: Callable[[str], None] | None = None,
    ) -> None:
        self.boxed, self.choices, self.seed = boxed, choices, seed
        self.steps = steps or steps_for(boxed)
        self.images, self.max_pixels = boxed.images, max_pixels
        self.flips, self.turns, self.device, self.state, self.report = flips, turns, device, state, report
        self.classes, self.channels = len(boxed.classes), 1 if choices.grey else 3
        self.work = sum(1 / scale**2 for scale in choices.grid)
        """Pixels in all channels that mining looks at for each pixel of a picture."""
        self.generator = torch.Generator().manual_seed(seed)
        torch.manual_seed(seed)
        outputs = self.classes + 1 + BOX_OUTPUTS
        backbone = ConvBackbone(
            FEATURES, window=WINDOW, channels=self.channels, classes=outputs, hidden=HIDDEN
        )
        network = ScaleChannelNetwork(backbone, choices.grid, MaxOverScales(), WINDOW, antialias=True)
        self.network = network.to(device)
        self.network.usage = {
            "classes": list(boxed.classes),
            "background": self.classes,
            "values": "unit",
            "reduce": choices.reduce,
            "detector": asdict(self.rules(0.5)),
        }
        self.own: Pool | None = None
        self.textures: Pool | None = None
        self.mined: Pool | None = None

    def run(self) -> Detector:
        """The trained detector; its threshold is not yet chosen."""
        self._fill()
        each = max(1, self.steps // ROUNDS)

        def batch(step: int, generator: torch.Generator) -> Batch:
            if step and step % each == 0 and step // each < ROUNDS:
                self.network.eval()
                self._mine()
                self.network.train()
            return self._batch(generator)

        learn(
            self.network.backbone,
            batch,
            steps=self.steps,
            rate=RATE,
            seed=self.seed,
            state=self.state,
            report=self.report,
            generator=self.generator,
            more={"mined": self},
        )
        self.network.eval()
        return Detector(self.network)

    def state_dict(self) -> dict[str, Tensor]:
        """What was mined so far."""
        return {} if self.mined is None else self.mined._asdict()

    def load_state_dict(self, kept: dict[str, Any]) -> None:
        self.mined = Pool(**{name: part.cpu() for name, part in kept.items()}) if kept else None

    def rules(self, threshold: float) -> Rules:
        return Rules(threshold, PIXELS, True, self.choices.iou, self.choices.inside)

    def picture(self, image: LabelledImage) -> tuple[Tensor, Objects]:
        """An image as the network takes it, and its objects there."""
        read = reduced(image.read(self.choices.grey, self.max_pixels), self.choices.reduce)
        return read, Objects.of(image, self.choices.reduce)

    def _fill(self) -> None:
        """The windows to begin with."""
        parts, scales = [], (self.choices.grid.minimum, self.choices.grid.maximum)
        for image in self.images:
            picture, objects = self.picture(image)
            share = len(image.labels) / self.boxed.objects or 1 / (4 * len(self.images))
            count = max(EACH // 2, round(max(ABOUT, FOR_EACH * self.boxed.objects) * share))
            where = self._looks(objects, picture.shape[1:], count, scales)
            parts.append(self._pooled(picture, where, objects))
        self.own, parts = joined(parts), []
        scales = 0.4, TEXTURE / WINDOW / 2
        for _ in range(ELSEWHERE // EACH):
            made = texture(self.channels, TEXTURE, self.generator)
            where = self._looks(Objects.none(), made.shape[1:], EACH, scales)
            parts.append(self._pooled(made, where, Objects.none()))
        self.textures = joined(parts)

    @torch.no_grad()
    def _mine(self) -> None:
        """Look with the network as it is, and learn from where it sees objects, right and wrong."""
        detector = Detector(self.network, rules=self.rules(0.1))
        parts: list[Pool] = []
        spent = 0.0
        for index in torch.randperm(len(self.images), generator=self.generator).tolist():
            picture, objects = self._part(*self.picture(self.images[index]))
            parts.append(self._seen(detector, picture, objects))
            if (spent := spent + picture[0].numel() * self.work) > MINING / 2:
                break
        for _ in range(max(1, round(MINING / 2 / self.work / TEXTURE**2))):
            made = texture(self.channels, TEXTURE, self.generator)
            parts.append(self._seen(detector, made, Objects.none()))
        found = joined(parts)
        kept = found.at(torch.randperm(len(found.fits), generator=self.generator)[:MINED])
        self.mined = kept if self.mined is None else joined([self.mined, kept])
        if self.report:
            wrong = int((found.targets[:, -1] == 1).sum())
            self.report(f"looked for false alarms: {wrong} windows without an object are added")

    def _part(self, picture: Tensor, objects: Objects) -> tuple[Tensor, Objects]:
        """A random part of a large image, with what lies in it."""
        begins = [
            int(torch.randint(max(side - PART, 0) + 1, (), generator=self.generator))
            for side in picture.shape[1:]
        ]
        top, left = begins
        shift = torch.tensor([left, top, left, top], dtype=torch.float64)
        moved = objects._replace(boxes=objects.boxes - shift, ignored=objects.ignored - shift)
        return picture[:, top : top + PART, left : left + PART], moved

    def _seen(self, detector: Detector, picture: Tensor, objects: Objects) -> Pool:
        """The windows of an image in which the network sees an object, and others close by."""
        peaks = detector.peaks(picture.to(self.device))
        best = detector.odds_of(peaks.logits).argsort(descending=True)[:BEST].cpu()
        sigmas = torch.tensor(self.choices.grid.factors, dtype=torch.float64)[peaks.channels.cpu()[best]]
        centres = peaks.windows.cpu().double()[best]
        drawn = torch.randn(centres.shape, generator=self.generator, dtype=torch.float64)
        near = centres + 0.08 * PIXELS * sigmas[:, None] * drawn
        return self._pooled(picture, Looks(torch.cat((centres, near)), sigmas.repeat(2)), objects)

    def _looks(
        self, objects: Objects, shape: Sequence[int], count: int, scales: tuple[float, float]
    ) -> Looks:
        return looks(objects, shape, count, PIXELS, scales, self.generator)

    def _pooled(self, picture: Tensor, where: Looks, objects: Objects) -> Pool:
        return pooled(picture, where, objects, WINDOW, PIXELS, self.classes)

    def _batch(self, generator: torch.Generator) -> Batch:
        """Half of it from windows onto the images, the rest from textures and what was mined."""
        shares = [(self.own, BATCH // 2), (self.textures, BATCH // 2 if self.mined is None else BATCH // 4)]
        if self.mined is not None and len(self.mined.fits):
            shares.append((self.mined, BATCH // 4))
        drawn = joined(
            [
                pool.at(torch.randint(len(pool.fits), (count,), generator=generator))
                for pool, count in shares
                if pool is not None
            ]
        )
        seen = drawn.seen.float().div_(255)
        windows, boxes = varied(seen, drawn.boxes, self.flips, generator, self.turns)
        return Batch(windows.contiguous(memory_format=torch.channels_last), drawn.targets, boxes, drawn.fits)
