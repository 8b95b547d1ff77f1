"""Looking only where something bright is: points of interest, and windows that follow their objects.

    image ──▶ blobs ──channels near their scale──▶ windows ──move while their score grows──▶ peaks

Faster than looking everywhere, and blind to what makes no blob.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from scalechannels.backbones.inference import evaluating, for_inference, in_pieces
from scalechannels.dense import DenseNetwork
from scalechannels.detection.interest_points import InterestPoints, interest_points
from scalechannels.detection.peaks import Peaks
from scalechannels.network import require_finite

BLOB = 5 / 28
"""σ of the blob that a digit makes, over the side of its box."""
NEAR = 0.75
"""Octaves between the scale that a blob suggests and the channels that look at it."""
ROUNDS = 3
"""How often a window may move towards its object."""
HOPELESS = -8.0
"""Log-odds below which a point of interest is not followed."""


@dataclass(frozen=True)
class Follower:
    """Windows of a network that follow the objects of one image (C, H, W).

    odds_of    the log-odds (N,) of an object, from what the network says (N, K)
    """

    dense: DenseNetwork
    odds_of: Callable[[Tensor], Tensor]
    image: Tensor

    def peaks(self, strength: float, least: float, most: int) -> Peaks | None:
        """Where objects with more than the least log-odds may be, about blobs of so much strength or more.

        None where there is no blob. Limit: of more blobs than `most` the strongest, with a warning.
        """
        grid, n = self.dense.network.grid, self.dense.network.foveate.window
        margin = 2**NEAR
        points = interest_points(
            self.image.mean(0, keepdim=True),
            smallest=BLOB * n * grid.minimum / margin,
            largest=BLOB * n * grid.maximum * margin,
            threshold=strength,
        )
        count = len(points.sigmas)
        if count == 0:
            return None
        if count > most:
            warnings.warn(
                f"the image has {count:,} points of interest; only the strongest {most:,} are looked at: "
                "look everywhere, or give a larger threshold of strength",
                stacklevel=4,  # where the detector is asked
            )
            points = InterestPoints(*(part[:most] for part in points))
        octaves = torch.tensor(grid.factors, device=points.sigmas.device).to(points.sigmas).log2()  # (S,)
        near = ((points.sigmas / (BLOB * n)).log2()[:, None] - octaves).abs() <= NEAR  # (N, S)
        point, channel = near.nonzero().unbind(1)
        centres = points.centres[point]
        logits = self._look(centres, channel)
        peaks = Peaks(centres, octaves.exp2()[channel], channel, logits, centres)
        followed = self._climbed(self._best_of_each(peaks, point))
        return followed.at(self.odds_of(followed.logits) > least)

    def _look(self, centres: Tensor, channels: Tensor) -> Tensor:
        """The logits (N, K) of windows of given channels, by the foveated network's own sampling."""
        network, n, said = self.dense.network, self.dense.network.foveate.window, []
        with evaluating(network):
            backbone = for_inference(network.backbone)
            kind = next(network.parameters(), self.image).dtype  # half precision is the network's own
            for channel in channels.unique().tolist():
                own = slice(channel, channel + 1)

                def piece(at: Tensor, _: Tensor | None, own: slice = own) -> Tensor:
                    images = self.image.expand(len(at), -1, -1, -1)
                    windows = network.foveate.sampled(images, (n, n), own, at)[:, 0]
                    return backbone(windows.to(kind)).to(windows.dtype)

                said.append(in_pieces(piece, centres[channels == channel], None, self.image.shape[0] * n * n))
        logits = torch.cat(said)[channels.argsort(stable=True).argsort()]  # in the order of the windows again
        require_finite(logits)
        return logits

    def _climbed(self, peaks: Peaks) -> Peaks:
        """Windows moved to better neighbours, half a lattice step or one channel away, while it helps."""
        device = peaks.sigmas.device
        steps = [(r, c, 0) for r in (-1, 0, 1) for c in (-1, 0, 1)] + [(0, 0, -1), (0, 0, 1)]
        moves = torch.tensor(steps, device=device)  # (11, 3)
        grid = torch.tensor(self.dense.network.grid.factors, dtype=peaks.sigmas.dtype, device=device)
        peaks = peaks.at(self.odds_of(peaks.logits) > HOPELESS)
        for _ in range(ROUNDS):
            if len(peaks.sigmas) == 0:
                break
            own = torch.arange(len(peaks.sigmas), device=device).repeat_interleave(len(moves))
            move = moves.repeat(len(peaks.sigmas), 1)
            channels = (peaks.channels[own] + move[:, 2]).clamp(0, len(grid) - 1)
            sigmas = grid[channels]
            centres = peaks.centres[own] + self.dense.stride / 2 * sigmas[:, None] * move[:, :2]
            tried = Peaks(centres, sigmas, channels, self._look(centres, channels), centres)
            before, peaks = peaks, self._best_of_each(tried, own)
            if torch.equal(before.centres, peaks.centres) and torch.equal(before.channels, peaks.channels):
                break
        return peaks

    def _best_of_each(self, peaks: Peaks, group: Tensor) -> Peaks:
        """The best peak of every group; groups are numbered in ascending order."""
        order = self.odds_of(peaks.logits).argsort(descending=True, stable=True)
        order = order[group[order].argsort(stable=True)]  # by group, the best first
        first = torch.ones_like(order, dtype=torch.bool)
        first[1:] = group[order][1:] != group[order][:-1]
        return peaks.at(order[first])
