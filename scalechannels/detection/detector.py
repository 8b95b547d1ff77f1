"""Detection: objects of any size anywhere in an image, from a network that learnt them at one size.

    image ──DenseNetwork──▶ scores over position and scale ──▶ peaks ──▶ boxes ──▶ the best of each object

Background is rejected by a class of its own that the network learnt. A network without one is asked how far
its best class is above the others, which tells objects from one another and not from the background: its
threshold has to be found by trying.

A box is what the network says of it, where it was trained on boxes (`Rules.regressed`), else what the channel
saw: a square of window·σ pixels about the peak. In pixel-centre coordinates, as in the whole library, an
image of width W reaches from −1/2 to W − 1/2.
"""

from __future__ import annotations

import copy
import math
import operator
import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from scalechannels.backbones.inference import Backbone
from scalechannels.dense import DenseNetwork
from scalechannels.detection.boxes import suppress
from scalechannels.detection.following import Follower
from scalechannels.detection.found import Detection
from scalechannels.detection.peaks import Peaks, peaks_of_channel, together
from scalechannels.network import ScaleChannelNetwork, require_finite
from scalechannels.saving.usage import BOX_OUTPUTS, used

MOST = 10_000
"""Peaks that are told apart: their boxes are compared with one another, which takes seconds then. Also points
of interest that are looked at."""
TILE = 2048
"""Pixels along a tile of the image: the more, the less is looked at twice, and the more is held in memory."""
SAVED: Any = object()
"""Stands for what the network was saved with."""


@dataclass(frozen=True)
class Rules:
    """What a detector makes of what its network says. Saved with the network, in its `usage`."""

    threshold: float = 0.5
    """The probability that an object has to have."""
    pixels: float | None = None
    """The longer side of an object in the window that fits it; None: as long as the window."""
    regressed: bool = False
    """Whether the last four outputs say the box: right, down, log width, log height; see `window_pool`."""
    iou: float = 0.3
    inside: float = 0.6
    """Which boxes are of one object; see `suppress`."""

    def __post_init__(self) -> None:
        if not 0 <= self.threshold < 1:
            raise ValueError(
                f"threshold must be a probability of at least 0 and below 1; got {self.threshold}"
            )
        if self.regressed and not self.pixels:
            raise ValueError("boxes that the network says need the side of an object in its window")


class Detector:
    """Finds the objects of a network's classes in images of any size.

    network     its backbone has to slide, see DenseNetwork
    background  the class of what is not an object, counted from 0; None for a network without one
    threshold   the probability that an object has to have
    rules       the rest of what is made of the network's answers

    What is not given is what the network was saved with.

    Law: an object enlarged by the grid's ratio is found with a box enlarged by it. Limits: inside the grid's
    range; of objects that overlap (see `suppress`) or lie inside one another one is found.

    Example:
        >>> import torch
        >>> from scalechannels import Detector
        >>> detector = Detector.from_pretrained("digit-detector")
        >>> image = torch.full((1, 100, 160), -0.76)            # black, (C, H, W)
        >>> image[:, 20:50, 40:44] = 0.76                       # a one of 30 pixels
        >>> image[:, 30:90, 110:117] = 0.76                     # and another of 60
        >>> [(detector.classes[one.label], one.scale > 2) for one in detector(image)]
        [('1', False), ('1', True)]
    """

    def __init__(
        self,
        network: ScaleChannelNetwork,
        *,
        background: int | None = SAVED,
        threshold: float | None = None,
        rules: Rules | None = None,
        tile: int = TILE,
    ) -> None:
        usage = used(network)
        if background is SAVED:
            background = usage["background"]
        if rules is None:
            rules = Rules(**(usage.get("detector") or {}))
        self.rules = rules if threshold is None else replace(rules, threshold=threshold)
        self.dense = DenseNetwork(network, tile=tile)
        self.background = None if background is None else _class(background)
        self.classes: list[str] | None = usage["classes"]
        """The names of the classes, where they are known."""
        classes = getattr(network.backbone, "classes", None)
        if isinstance(network.backbone, Backbone) and isinstance(classes, int):  # of others, the first look
            self._require_background(classes - (BOX_OUTPUTS if self.rules.regressed else 0))

    @property
    def network(self) -> ScaleChannelNetwork:
        return self.dense.network

    @property
    def threshold(self) -> float:
        return self.rules.threshold

    @classmethod
    def from_pretrained(cls, place: str | os.PathLike[str], **options: Any) -> Detector:
        """The detector of a folder that `save_pretrained` or a training wrote, or a shipped one's name."""
        return cls(ScaleChannelNetwork.from_pretrained(place, **options))

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Everything that `from_pretrained` and `scalechannels.load` need: the network and how it is used.

        Example:
            >>> import tempfile, scalechannels
            >>> network = scalechannels.load("digit-detector")
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     scalechannels.Detector(network, threshold=0.7).save_pretrained(folder)
            ...     again = scalechannels.load(folder)
            >>> type(again).__name__, again.threshold
            ('Detector', 0.7)
        """
        saved = copy.copy(self.network)  # the same weights: the network itself is used as before
        saved.usage = {**used(self.network), "background": self.background, "detector": asdict(self.rules)}
        saved.save_pretrained(Path(folder))

    def with_threshold(self, threshold: float) -> Detector:
        """The same detector, of the same network, with another threshold."""
        rules = replace(self.rules, threshold=threshold)
        return Detector(self.network, background=self.background, rules=rules, tile=self.dense.tile)

    def to(self, device: torch.device | str) -> Detector:
        self.network.to(device)
        return self

    @torch.no_grad()
    def __call__(self, image: Tensor) -> list[Detection]:
        """The objects in an image (C, H, W), the most probable first: every point is looked at.

        Example:
            >>> import torch
            >>> from scalechannels import Detector
            >>> image = torch.full((1, 64, 64), -0.76)
            >>> image[:, 17:47, 30:34] = 0.76                       # a one of 30 pixels
            >>> (found,) = Detector.from_pretrained("digit-detector")(image)
            >>> x0, y0, x1, y1 = found.box
            >>> found.label, x0 < 30 and x1 > 34 and y0 < 17 and y1 > 47        # the box holds the bar
            (1, True)
        """
        return self._detections(self.peaks(image), image.shape)

    @torch.no_grad()
    def peaks(self, image: Tensor) -> Peaks:
        """Every peak above the threshold, tile by tile; those of one object are not yet brought together.

        Limit: of more than `MOST` the best ones, with a warning.
        """
        self.dense.require_image(image)
        tile = self.dense.tile
        rows, columns = (
            [(first, min(first + tile, side)) for first in range(0, side, tile)] for side in image.shape[1:]
        )
        kept: list[Peaks] = []
        count = 0
        for place in product(rows, columns):
            found = self._peaks_of_tile(image, *place)
            count += len(found.sigmas)
            kept = [self._best(together([*kept, found]))]
        if count > MOST:
            warnings.warn(
                f"{count:,} places may hold an object at the threshold {self.threshold:g}; only the best "
                f"{MOST:,} are looked at: raise the threshold",
                stacklevel=2,
            )
        return kept[0]

    @torch.no_grad()
    def at_interest_points(self, image: Tensor, *, threshold: float = 0.2) -> list[Detection]:
        """The same, looking only where the image has a bright blob: faster, and blind to what makes none.

        Every point of interest is foveated by the channels near its scale; windows that may hold an object
        move towards it while their score grows. `threshold` is the least strength of a blob. Limit: of more
        than `MOST` blobs the strongest, with a warning.
        """
        self.dense.require_image(image)
        peaks = Follower(self.dense, self.odds_of, image).peaks(threshold, self._least, MOST)
        return [] if peaks is None else self._detections(peaks, image.shape)

    def _best(self, peaks: Peaks) -> Peaks:
        """The best `MOST` of the peaks."""
        if len(peaks.sigmas) <= MOST:
            return peaks
        return peaks.at(self.odds_of(peaks.logits).argsort(descending=True, stable=True)[:MOST])

    def _require_background(self, classes: int) -> None:
        if self.background is not None and self.background >= classes:
            raise ValueError(
                f"the background must be one of the network's {classes} classes, 0 to {classes - 1}, or None "
                f"without one; got {self.background}"
            )

    def _peaks_of_tile(self, image: Tensor, rows: tuple[int, int], columns: tuple[int, int]) -> Peaks:
        """The peaks whose centre lies in a part of the image; what is beside it is looked at as well."""
        halo = 3 * self.dense.stride * self.network.grid.maximum
        H, W = image.shape[1:]
        maps = self.dense.channel_maps(
            image, (rows[0] - halo, rows[1] - 1 + halo), (columns[0] - halo, columns[1] - 1 + halo)
        )
        for one in maps:
            require_finite(one.logits)  # else there would be no peak, and no object
        scores = [one._replace(logits=self.odds_of(one.logits)[..., None]) for one in maps]
        peaks = together(
            [
                peaks_of_channel(index, own, scores, self.network.grid, self._least)
                for index, own in enumerate(maps)
            ]
        )
        inside = torch.ones(len(peaks.sigmas), dtype=torch.bool, device=image.device)
        for axis, ((first, last), size) in enumerate(((rows, H), (columns, W))):
            at = peaks.centres[:, axis]
            inside &= (at >= (first if first > 0 else -math.inf)) & (at < (last if last < size else math.inf))
        return peaks.at(inside)

    @property
    def _least(self) -> float:
        """The threshold as log-odds."""
        return math.log(self.threshold / (1 - self.threshold)) if self.threshold > 0 else -math.inf

    def odds_of(self, logits: Tensor) -> Tensor:
        """Log-odds of an object against the background (…,); without such a class, of the best one."""
        if self.background is None:
            said = self._said(logits)
            best, label = said.max(-1, keepdim=True)
            others = said.scatter(-1, label, -math.inf)
            return best[..., 0] - others.logsumexp(-1)
        self._require_background(self._said(logits).shape[-1])
        return self._classes(logits).logsumexp(-1) - logits[..., self.background]

    def probabilities(self, logits: Tensor) -> Tensor:
        """Of an object of each class (…, K), from the outputs of the network; last 0 for the background."""
        shares = self._said(logits).softmax(-1)
        if self.background is None:
            return shares
        return torch.cat(
            (shares[..., : self.background], shares[..., self.background + 1 :], 0 * shares[..., :1]), -1
        )

    def _said(self, outputs: Tensor) -> Tensor:
        """The logits among the outputs of the network (…, K): all but those that say the box."""
        return outputs[..., :-BOX_OUTPUTS] if self.rules.regressed else outputs

    def _classes(self, logits: Tensor) -> Tensor:
        """The logits with that of the background out of the way."""
        if self.background is None:
            return self._said(logits)
        hidden = self._said(logits).clone()
        hidden[..., self.background] = -math.inf
        return hidden

    def _detections(self, peaks: Peaks, shape: Sequence[int]) -> list[Detection]:
        peaks = Peaks(*(part.cpu() for part in peaks))  # few by now: a GPU would be waited for at each
        labels = self._classes(peaks.logits).argmax(-1)
        scores = self.odds_of(peaks.logits)
        certain = self._said(peaks.logits).to(peaks.sigmas).softmax(-1).gather(-1, labels[:, None])[:, 0]
        if self.background is not None:
            labels = labels - (labels > self.background).long()  # names are those of the objects alone
        boxes = self.boxes_of(peaks, shape)
        kept = suppress(boxes, scores, iou=self.rules.iou, inside=self.rules.inside)
        kept = kept[certain[kept].argsort(descending=True, stable=True)]
        last = len(self.network.grid) - 1
        unit = self.rules.pixels or self.network.foveate.window
        scales = (boxes[:, 2:] - boxes[:, :2]).amax(1) / unit if self.rules.regressed else peaks.sigmas
        return [
            Detection(
                tuple(boxes[index].tolist()),
                int(labels[index]),
                float(certain[index]),
                float(scales[index]),
                int(peaks.channels[index]) in (0, last),
                1 / (1 + math.exp(-min(max(float(scores[index]), -700.0), 700.0))),
            )
            for index in kept.tolist()
        ]

    def boxes_of(self, peaks: Peaks, shape: Sequence[int]) -> Tensor:
        """The boxes (N, 4) of peaks in an image (C, H, W): regressed ones end where the image does."""
        side = self.rules.pixels or self.network.foveate.window
        if not self.rules.regressed:
            corners, half = peaks.centres.flip(1), side * peaks.sigmas[:, None] / 2  # x and y
            return torch.cat((corners - half, corners + half), 1)
        grid = torch.tensor(self.network.grid.factors, dtype=peaks.sigmas.dtype, device=peaks.sigmas.device)
        square = side * grid[peaks.channels][:, None]  # (N, 1): of the window that was seen
        said = peaks.logits[:, -BOX_OUTPUTS:].to(square)
        middles = peaks.windows.flip(1) + said[:, :2].clamp(-1, 1) * square
        half = square * said[:, 2:].clamp(-3, 1).exp() / 2
        ends = torch.tensor([shape[2], shape[1]], dtype=square.dtype, device=square.device) - 0.5
        return torch.cat(
            ((middles - half).clamp_min(-0.5).minimum(ends), (middles + half).clamp_min(-0.5).minimum(ends)),
            1,
        )


def _class(given: int) -> int:
    """A class as a plain whole number."""
    try:
        if not isinstance(given, bool) and (number := operator.index(given)) >= 0:
            return number
    except TypeError:
        pass
    raise ValueError(f"the background must be a class, counted from 0, or None without one; got {given!r}")
