"""A detector without scale channels: the layers, windows, boxes and inference of ours, at one scale.

It looks at an image through windows of one scale, that of a middling object. An object of any size is to be
found in a window whose middle is near its own, and the regressed box says how large it is: this is how plain
detectors are trained. With `octaves` it learns from windows of more scales, which is the usual augmentation
by rescaled images; it still looks at one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from scalechannels import ScaleGrid
from scalechannels.data.boxes.labelled import BoxedImages
from scalechannels.detection.own_boxes import PIXELS, WINDOW, Choices, Training
from scalechannels.detection.window_pool import Looks, Objects, Pool, cut, told


class OneScale(Training):
    """The training of a detector that looks at one scale.

    choices   those of the detector with scale channels beside which it is put
    octaves   how far, up and down, the scales of its windows are from it in training
    """

    def __init__(self, boxed: BoxedImages, choices: Choices, *, octaves: float = 0.0, **options: Any) -> None:
        self.scale, self.octaves = float(boxed.sizes.median()) / PIXELS / choices.reduce, octaves
        super().__init__(boxed, replace(choices, grid=ScaleGrid.of(self.scale)), **options)
        # It looks for false alarms in as many pictures as a detector with scale channels.
        self.work = sum(1 / scale**2 for scale in choices.grid)

    def _looks(
        self, objects: Objects, shape: Sequence[int], count: int, scales: tuple[float, float]
    ) -> Looks:
        where = super()._looks(objects, shape, count, scales)
        drawn = 2 * torch.rand(count, generator=self.generator, dtype=torch.float64) - 1
        return where._replace(sigmas=self.scale * 2 ** (self.octaves * drawn))

    def _pooled(self, picture: Tensor, where: Looks, objects: Objects) -> Pool:
        targets, boxes, fits = told_by_place(where, objects, self.classes)
        return Pool(cut(picture, where, WINDOW), targets, boxes, fits)


def told_by_place(where: Looks, objects: Objects, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """What `told` says of windows, each as if it had the scale of the nearest object: targets, boxes, fits.

    Near is relative to an object's size. Boxes are relative to the windows as they are.
    """
    fitting = where
    if len(objects.labels):
        far = (where.centres[:, None] - objects.middles).abs() / objects.sizes[:, None]  # (M, N, 2)
        nearest = (1 - far).clamp_min(0).prod(2).argmax(1)
        fitting = where._replace(sigmas=objects.sizes[nearest] / PIXELS)
    targets, boxes, fits, _ = told(fitting, objects, PIXELS, classes)
    ratio = (fitting.sigmas / where.sigmas)[:, None].float()
    return targets, torch.cat((boxes[:, :2] * ratio, boxes[:, 2:] + ratio.log()), 1), fits
