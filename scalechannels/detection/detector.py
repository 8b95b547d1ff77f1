"""Detection: objects of any size anywhere in an image, from a network that learnt them at one size.

    image ──DenseNetwork──▶ scores over position and scale ──▶ peaks ──▶ boxes ──▶ the best of each object

Background is rejected by a class of its own that the network learnt. A network without one is asked how far
its best class is above the others, which tells objects from one another and not from the background: its
threshold has to be found by trying.

A box is what the channel saw: a square of window·σ pixels about the peak. In pixel-centre coordinates, as in
the whole library, an image of width W reaches from −1/2 to W − 1/2.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from scalechannels.backbones.inference import Backbone, evaluating, for_inference, in_pieces
from scalechannels.dense import TILE, ChannelMap, DenseNetwork
from scalechannels.detection.boxes import suppress
from scalechannels.detection.interest_points import interest_points, parabola
from scalechannels.network import ScaleChannelNetwork

BLOB = 5 / 28
"""σ of the blob that a digit makes, over the side of its box."""
NEAR = 0.75
"""Octaves between the scale that a blob suggests and the channels that look at it."""
ROUNDS = 3
"""How often a window may move towards its object."""
MOST = 10_000
"""Peaks that are told apart: their boxes are compared with one another, which takes seconds then."""
HOPELESS = -8.0
"""Log-odds below which a point of interest is not followed."""


@dataclass(frozen=True)
class Detection:
    """One object."""

    box: tuple[float, float, float, float]
    """x0, y0, x1, y1 in pixel-centre coordinates."""
    label: int
    probability: float
    scale: float
    """The object's size: the box has window·scale pixels a side."""
    at_edge: bool
    """Whether the deciding channel is the first or last of the grid: the object may be smaller or larger."""


class Peaks(NamedTuple):
    """Where objects may be."""

    centres: Tensor  # (N, 2) rows and columns
    sigmas: Tensor  # (N,)
    channels: Tensor  # (N,) int64, places in the grid
    logits: Tensor  # (N, K)

    def at(self, chosen: Tensor) -> Peaks:
        """Those of some indices, or where a mask is true."""
        return Peaks(*(part[chosen] for part in self))


class Detector:
    """Finds the objects of a network's classes in images of any size.

    network     its backbone has to slide, see DenseNetwork
    background  the class of what is not an object, counted from 0; None for a network without one
    threshold   the probability that an object has to have

    Law: an object enlarged by the grid's ratio is found with a box enlarged by it. Limits: inside the grid's
    range; boxes are squares; of objects that overlap (see `suppress`) or lie inside one another one is found.
    """

    def __init__(
        self,
        network: ScaleChannelNetwork,
        *,
        background: int | None = None,
        threshold: float = 0.5,
        tile: int = TILE,
    ) -> None:
        if not 0 <= threshold < 1:
            raise ValueError(f"threshold must be a probability of at least 0 and below 1; got {threshold}")
        self.dense = DenseNetwork(network, tile=tile)
        self.background = None if background is None else _class(background)
        self.network, self.threshold = network, threshold
        classes = getattr(network.backbone, "classes", None)
        if isinstance(network.backbone, Backbone) and isinstance(classes, int):  # of others, the first look
            self._require_background(classes)

    @torch.no_grad()
    def __call__(self, image: Tensor) -> list[Detection]:
        """The objects in an image (C, H, W), the most probable first: every point is looked at."""
        return self._detections(self.peaks(image))

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
            kept = [self._best(_together([*kept, found]))]
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
        move towards it while their score grows. `threshold` is the least strength of a blob.
        """
        self.dense.require_image(image)
        grid, n = self.network.grid, self.network.foveate.window
        margin = 2**NEAR
        points = interest_points(
            image.mean(0, keepdim=True),
            smallest=BLOB * n * grid.minimum / margin,
            largest=BLOB * n * grid.maximum * margin,
            threshold=threshold,
        )
        if len(points.sigmas) == 0:
            return []
        octaves = torch.tensor(grid.factors, device=points.sigmas.device).to(points.sigmas).log2()  # (S,)
        near = ((points.sigmas / (BLOB * n)).log2()[:, None] - octaves).abs() <= NEAR  # (N, S)
        point, channel = near.nonzero().unbind(1)
        centres = points.centres[point]
        logits = self._look(image, centres, channel)
        peaks = Peaks(centres, octaves.exp2()[channel], channel, logits)
        return self._detections(self._climb(image, self._best_of_each(peaks, point)))

    def _best(self, peaks: Peaks) -> Peaks:
        """The best `MOST` of the peaks."""
        if len(peaks.sigmas) <= MOST:
            return peaks
        return peaks.at(self._objectness(peaks.logits).argsort(descending=True, stable=True)[:MOST])

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
        scores = [one._replace(logits=self._objectness(one.logits)[..., None]) for one in maps]
        peaks = _together([self._peaks_of_channel(index, own, scores) for index, own in enumerate(maps)])
        inside = torch.ones(len(peaks.sigmas), dtype=torch.bool, device=image.device)
        for axis, ((first, last), size) in enumerate(((rows, H), (columns, W))):
            at = peaks.centres[:, axis]
            inside &= (at >= (first if first > 0 else -math.inf)) & (at < (last if last < size else math.inf))
        return peaks.at(inside)

    def _peaks_of_channel(self, index: int, own: ChannelMap, scores: Sequence[ChannelMap]) -> Peaks:
        """Lattice points that are above their neighbours in position and scale."""
        score = scores[index].logits[..., 0]  # (h, w)
        device = score.device
        rows, columns = own.rows.positions(device), own.columns.positions(device)
        around = F.max_pool2d(score[None], 3, stride=1, padding=1)[0]
        peak = (score >= around) & (score > self._least)
        row, column = peak.nonzero().unbind(1)
        here = score[row, column]
        neighbours = [scores[k] for k in (index - 1, index + 1) if 0 <= k < len(scores)]
        beside = [_at_points(one, rows[row], columns[column]) for one in neighbours]
        kept = torch.ones_like(here, dtype=torch.bool)
        for _, highest in beside:
            kept &= here >= highest
        row, column, here = row[kept], column[kept], here[kept]
        centre = []
        for axis, (at, span) in enumerate(((row, own.rows), (column, own.columns))):
            places = [(row + by, column) if axis == 0 else (row, column + by) for by in (-1, 1)]
            low, high = (score[r.clamp(0, len(rows) - 1), c.clamp(0, len(columns) - 1)] for r, c in places)
            edge = (at == 0) | (at == span.count - 1)
            offset = torch.where(edge, 0.0, parabola(low, here, high)).to(rows)
            centre.append(span.positions(device)[at] + span.step * offset)
        octave = torch.zeros_like(here)
        if len(beside) == 2:
            octave = parabola(beside[0][0][kept], here, beside[1][0][kept])
        grid = self.network.grid
        ratio = grid[min(index + 1, len(grid) - 1)] / grid[max(index - 1, 0)]
        sigma = grid[index] * (ratio**0.5) ** octave.to(rows)
        channel = torch.full_like(row, index)
        return Peaks(torch.stack(centre, 1), sigma, channel, own.logits[row, column])

    def _look(self, image: Tensor, centres: Tensor, channels: Tensor) -> Tensor:
        """The logits (N, K) of windows of given channels, by the foveated network's own sampling."""
        network, n, said = self.network, self.network.foveate.window, []
        with evaluating(network):
            backbone = for_inference(network.backbone)
            kind = next(network.parameters(), image).dtype  # half precision is the network's own
            for channel in channels.unique().tolist():
                own = slice(channel, channel + 1)

                def piece(at: Tensor, _: Tensor | None, own: slice = own) -> Tensor:
                    images = image.expand(len(at), -1, -1, -1)
                    windows = network.foveate.sampled(images, (n, n), own, at)[:, 0]
                    return backbone(windows.to(kind)).to(windows.dtype)

                said.append(in_pieces(piece, centres[channels == channel], None, image.shape[0] * n * n))
        return torch.cat(said)[channels.argsort(stable=True).argsort()]  # in the order of the windows again

    def _climb(self, image: Tensor, peaks: Peaks) -> Peaks:
        """Windows moved to better neighbours, half a lattice step or one channel away, while it helps."""
        device = peaks.sigmas.device
        steps = [(r, c, 0) for r in (-1, 0, 1) for c in (-1, 0, 1)] + [(0, 0, -1), (0, 0, 1)]
        moves = torch.tensor(steps, device=device)  # (11, 3)
        grid = torch.tensor(self.network.grid.factors, dtype=peaks.sigmas.dtype, device=device)
        peaks = peaks.at(self._objectness(peaks.logits) > HOPELESS)
        for _ in range(ROUNDS):
            if len(peaks.sigmas) == 0:
                break
            own = torch.arange(len(peaks.sigmas), device=device).repeat_interleave(len(moves))
            move = moves.repeat(len(peaks.sigmas), 1)
            channels = (peaks.channels[own] + move[:, 2]).clamp(0, len(grid) - 1)
            sigmas = grid[channels]
            centres = peaks.centres[own] + self.dense.stride / 2 * sigmas[:, None] * move[:, :2]
            tried = Peaks(centres, sigmas, channels, self._look(image, centres, channels))
            before, peaks = peaks, self._best_of_each(tried, own)
            if torch.equal(before.centres, peaks.centres) and torch.equal(before.channels, peaks.channels):
                break
        return peaks.at(self._objectness(peaks.logits) > self._least)

    def _best_of_each(self, peaks: Peaks, group: Tensor) -> Peaks:
        """The best peak of every group; groups are numbered in ascending order."""
        order = self._objectness(peaks.logits).argsort(descending=True, stable=True)
        order = order[group[order].argsort(stable=True)]  # by group, the best first
        first = torch.ones_like(order, dtype=torch.bool)
        first[1:] = group[order][1:] != group[order][:-1]
        return peaks.at(order[first])

    @property
    def _least(self) -> float:
        """The threshold as log-odds."""
        return math.log(self.threshold / (1 - self.threshold)) if self.threshold > 0 else -math.inf

    def _objectness(self, logits: Tensor) -> Tensor:
        """Log-odds of an object against the background (…,); without such a class, of the best one."""
        if self.background is None:
            best, label = logits.max(-1, keepdim=True)
            others = logits.scatter(-1, label, -math.inf)
            return best[..., 0] - others.logsumexp(-1)
        self._require_background(logits.shape[-1])
        return self._classes(logits).logsumexp(-1) - logits[..., self.background]

    def _classes(self, logits: Tensor) -> Tensor:
        """The logits with that of the background out of the way."""
        if self.background is None:
            return logits
        hidden = logits.clone()
        hidden[..., self.background] = -math.inf
        return hidden

    def _detections(self, peaks: Peaks) -> list[Detection]:
        labels = self._classes(peaks.logits).argmax(-1)
        scores = self._objectness(peaks.logits)
        certain = peaks.logits.to(peaks.sigmas).softmax(-1).gather(-1, labels[:, None])[:, 0]
        half = self.network.foveate.window * peaks.sigmas[:, None] / 2
        corners = peaks.centres.flip(1)  # x and y
        boxes = torch.cat((corners - half, corners + half), 1)
        kept = suppress(boxes, scores)
        kept = kept[certain[kept].argsort(descending=True, stable=True)]
        last = len(self.network.grid) - 1
        return [
            Detection(
                tuple(boxes[index].tolist()),
                int(labels[index]),
                float(certain[index]),
                float(peaks.sigmas[index]),
                int(peaks.channels[index]) in (0, last),
            )
            for index in kept.tolist()
        ]


def _class(given: int) -> int:
    """A class as a plain whole number."""
    try:
        if not isinstance(given, bool) and (number := operator.index(given)) >= 0:
            return number
    except TypeError:
        pass
    raise ValueError(f"the background must be a class, counted from 0, or None without one; got {given!r}")


def _at_points(scores: ChannelMap, rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """A channel's score (h, w, 1) interpolated at single points, and the highest of those around: (N,) each.

    Interpolation lowers peaks, so what exceeds the interpolated score need not be the peak.
    """
    values = scores.logits[..., 0]
    top, bottom, down = scores.rows.around(rows)
    left, right, across = scores.columns.around(columns)
    around = [values[top, left], values[top, right], values[bottom, left], values[bottom, right]]
    above, below = (torch.lerp(around[k], around[k + 1], across.to(values.dtype)) for k in (0, 2))
    return torch.lerp(above, below, down.to(values.dtype)), torch.stack(around).amax(0)


def _together(parts: Sequence[Peaks]) -> Peaks:
    return Peaks(*(torch.cat(values) for values in zip(*parts, strict=True)))
