"""Where objects may be: points at which the odds of an object exceed those around, in place and in scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from scalechannels.dense import ChannelMap
from scalechannels.detection.interest_points import parabola
from scalechannels.scales import ScaleGrid


class Peaks(NamedTuple):
    """Where objects may be."""

    centres: Tensor  # (N, 2) rows and columns, between the lattice points
    sigmas: Tensor  # (N,), between the channels
    channels: Tensor  # (N,) int64, places in the grid
    logits: Tensor  # (N, K)
    windows: Tensor  # (N, 2) rows and columns of the windows that the logits are of

    def at(self, chosen: Tensor) -> Peaks:
        """Those of some indices, or where a mask is true."""
        return Peaks(*(part[chosen] for part in self))


def together(parts: Sequence[Peaks]) -> Peaks:
    return Peaks(*(torch.cat(values) for values in zip(*parts, strict=True)))


def peaks_of_channel(
    index: int, own: ChannelMap, scores: Sequence[ChannelMap], grid: ScaleGrid, least: float
) -> Peaks:
    """Lattice points of one channel that are above their neighbours in position and scale, and above `least`.

    own      the channel's logits; scores are the odds (h, w, 1) of all channels
    """
    score = scores[index].logits[..., 0]  # (h, w)
    device = score.device
    rows, columns = own.rows.positions(device), own.columns.positions(device)
    around = F.max_pool2d(score[None], 3, stride=1, padding=1)[0]
    peak = (score >= around) & (score > least)
    row, column = peak.nonzero().unbind(1)
    here = score[row, column]
    neighbours = [scores[k] for k in (index - 1, index + 1) if 0 <= k < len(scores)]
    beside = [at_points(one, rows[row], columns[column]) for one in neighbours]
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
    ratio = grid[min(index + 1, len(grid) - 1)] / grid[max(index - 1, 0)]
    sigma = grid[index] * (ratio**0.5) ** octave.to(rows)
    seen = torch.stack((rows[row], columns[column]), 1)
    return Peaks(torch.stack(centre, 1), sigma, torch.full_like(row, index), own.logits[row, column], seen)


def at_points(scores: ChannelMap, rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """A channel's score (h, w, 1) interpolated at single points, and the highest of those around: (N,) each.

    Interpolation lowers peaks, so what exceeds the interpolated score need not be the peak.
    """
    values = scores.logits[..., 0]
    top, bottom, down = scores.rows.around(rows)
    left, right, across = scores.columns.around(columns)
    around = [values[top, left], values[top, right], values[bottom, left], values[bottom, right]]
    above, below = (torch.lerp(around[k], around[k + 1], across.to(values.dtype)) for k in (0, 2))
    return torch.lerp(above, below, down.to(values.dtype)), torch.stack(around).amax(0)
