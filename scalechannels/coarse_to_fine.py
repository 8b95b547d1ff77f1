"""Coarse to fine: fewer channels at inference, some for every image, then those around its winning scales.

    image → every `step`-th channel → sure? if not: the channels nearest to the winning ones → fill in → pool

Few channels see an object well, those near its scale, and what they say changes gradually along the scale
axis: that is why the others need not be asked.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from scalechannels.network import ScaleChannelNetwork
from scalechannels.pooling import ConcatScales


class CoarseToFine(ScaleChannelNetwork):
    """The same network, evaluated at a part of its channels that is chosen for each image.

    network   any ScaleChannelNetwork whose pooling is symmetric in the channels; its weights are shared
    step      every so manyth channel is evaluated for every image: the coarse channels
    refine    so many more for an image in doubt, those nearest to the two coarse channels in which its two
              leading classes have their largest logits; by default 2·(step − 1), all up to the neighbouring
              coarse channels where both classes win in the same
    sure      an image is in doubt while the probability of its class is below this; 1: every image is

    A channel that was not evaluated is taken to say what lies on the straight line between its evaluated
    neighbours, and beyond the outermost one what that one says. Then all S are pooled as ever:

    - maximum: that of the evaluated channels, since no line exceeds both of its ends;
    - log-mean-exp: a channel far below the winner adds next to nothing, evaluated or not;
    - mean: the trapezoid rule. The mean of the evaluated channels alone would count the scales around the
      winner several times, which is not what the network learnt; this estimates the mean of all.

    Both leading classes are seen more closely, since a class that alone is would gain by it: its maximum can
    but grow.

    Law: it is the network itself where all channels are evaluated, or where their outputs lie on such lines.
    Limit: elsewhere it is an approximation, and misses a channel that alone knows better and lies far from
    the coarse winners; the selected scale of an image that is not in doubt is a coarse one. In training mode
    all channels are evaluated.
    """

    coarse: Tensor
    fine: Tensor
    coarse_filling: Tensor
    fine_filling: Tensor

    def __init__(
        self, network: ScaleChannelNetwork, step: int = 3, refine: int | None = None, sure: float = 0.85
    ) -> None:
        if not isinstance(network, ScaleChannelNetwork) or network.look != "centre":
            raise ValueError(
                "coarse to fine is for networks of foveated scale channels (fovlse, fovmax, fovavg), "
                f"not for a {type(network).__name__}"
            )
        if isinstance(network.pool, ConcatScales):
            raise ValueError(
                "coarse to fine needs a pooling that is symmetric in the channels (maximum, mean, "
                "log-mean-exp): ConcatScales has weights for every channel, so that none can be left out"
            )
        if not isinstance(step, int) or step < 1:
            raise ValueError(f"the step is a whole number of channels, at least 1, got {step!r}")
        refine = 2 * (step - 1) if refine is None else refine
        if not isinstance(refine, int) or refine < 0:
            raise ValueError(f"refine is a whole number of channels, at least 0, got {refine!r}")
        if not 0 <= sure <= 1:
            raise ValueError(f"sure is a probability from 0 to 1, got {sure!r}")
        super().__init__(**network.arguments())
        self.step, self.refine, self.sure = step, refine, sure
        S = len(self.grid)
        coarse = coarse_places(S, step)
        pairs = [[(one, other) for other in coarse] for one in coarse]  # (R, R)
        fine = [[nearest_places(S, coarse, pair, refine) for pair in row] for row in pairs]
        tables = {
            "coarse": torch.tensor(coarse),  # (R,)
            "fine": torch.tensor(fine, dtype=torch.long),  # (R, R, F)
            "coarse_filling": interpolation(S, coarse),  # (S, R)
            "fine_filling": torch.stack(
                [torch.stack([interpolation(S, coarse + places) for places in row]) for row in fine]
            ),  # (R, R, S, R + F)
        }
        for name, table in tables.items():
            self.register_buffer(name, table.to(network.foveate.spacing.device), persistent=False)
        self.train(network.training)

    def _channels(self, images: Tensor, centres: Tensor | None) -> Tensor:
        if self.training:
            return super()._channels(images, centres)
        known = self._look(images, centres, self.coarse)  # (B, R, K)
        channels = self.coarse_filling.to(known.dtype) @ known  # (B, S, K)
        if not self.fine.shape[2]:
            return channels
        pooled = self.pool_channels(channels)  # (B, K)
        if self.sure < 1:
            doubtful = (pooled.softmax(1).amax(1) < self.sure).nonzero()[:, 0]  # (D,)
            if not len(doubtful):
                return channels
            images, known, pooled = images[doubtful], known[doubtful], pooled[doubtful]
            centres = None if centres is None else centres[doubtful]
        winners = self._winners(known, pooled)
        around = self._look(images, centres, self.fine[winners])  # (D, F, K)
        refined = self.fine_filling[winners].to(known.dtype) @ torch.cat([known, around], 1)  # (D, S, K)
        return channels.index_copy(0, doubtful, refined) if self.sure < 1 else refined

    def _winners(self, known: Tensor, pooled: Tensor) -> tuple[Tensor, Tensor]:
        """Which coarse channel speaks most for each of the two leading classes: (D,) and (D,)."""
        logits = known if self.head is None else self.head(known)  # (D, R, K)
        leading = pooled.topk(min(2, pooled.shape[1]), 1).indices  # (D, 2)
        strongest = logits.gather(2, leading[:, None].expand(-1, logits.shape[1], -1)).argmax(1)
        return strongest[:, 0], strongest[:, -1]

    def _pixels(self, images: Tensor) -> int:
        """Pieces of as many windows as without coarse and fine: those of the images in doubt are few."""
        return math.ceil(super()._pixels(images) * len(self.coarse) / len(self.grid))

    def arguments(self) -> dict[str, Any]:
        raise TypeError("CoarseToFine is made from a network: CoarseToFine(network, step, refine, sure)")

    def _save_pretrained(self, save_directory: Path) -> None:
        raise TypeError(
            "save the network that was given to CoarseToFine, whose weights are the same; "
            "CoarseToFine(scalechannels.load(folder)) evaluates it so again"
        )


def coarse_places(scales: int, step: int) -> list[int]:
    """Every step-th place in a grid of so many scales, with as much left over below as above."""
    rest = (scales - 1) % step
    return list(range(rest // 2, scales, step))


def nearest_places(scales: int, coarse: list[int], winners: tuple[int, int], count: int) -> list[int]:
    """The `count` places nearest to either winner that are not coarse; of two as near, the smaller scale."""
    others = [place for place in range(scales) if place not in coarse]
    return sorted(others, key=lambda place: (min(abs(place - one) for one in winners), place))[:count]


def interpolation(scales: int, known: list[int]) -> Tensor:
    """The matrix (S, R) from values at the known places to values at all: lines in between, flat beyond."""
    matrix = torch.zeros(scales, len(known), dtype=torch.float64)
    for place in range(scales):
        below = max((one for one in known if one <= place), default=min(known))
        above = min((one for one in known if one >= place), default=max(known))
        share = (place - below) / (above - below) if above > below else 0.0
        matrix[place, known.index(below)] += 1 - share
        matrix[place, known.index(above)] += share
    return matrix
