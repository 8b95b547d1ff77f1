"""The canvases that an established detector learns from, all in one frame, drawn ahead by several processes.

    canvases (16, 1, 180, 180) ──▶ with jitter each enlarged or shrunk ──▶ frames (16, 1, 192, 192) and boxes

A GPU is fast on batches of one constant shape: images are filled up with the background's value to a frame
that the network's strides divide, and boxes with ones that are none (label -1) to a constant number.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from benchmarks.detection_scenes import CANVASES, SIZES, canvas_boxes
from scalechannels.data.pictures import BACKGROUND
from scalechannels.detection.training_windows import CELLS, Digits, canvases

FRAME = 192
"""Pixels along a frame: torchvision fills 180 up to it as well, to the next multiple of 32."""
LEAST = 0.5
"""A digit that is cut by the border of a crop counts while so much of its area is left."""
SEEDS_APART = 1_000_000
"""Between the batches of two seeds; PyTorch's generator reads 32 bits of a seed alone."""
Target = dict[str, Tensor]


class Frames(NamedTuple):
    images: Tensor  # (B, 1, FRAME, FRAME); half precision, on its way between processes
    boxes: Tensor  # (B, CELLS², 4) x0, y0, x1, y1 between pixel edges
    labels: Tensor  # (B, CELLS²), -1 where there is no digit


class Drawn(Dataset[Frames]):
    """The batch of every step. Each has its own seed: who draws it, and when, changes nothing."""

    def __init__(self, digits: Digits, seed: int, steps: int, jitter: bool) -> None:
        self.digits, self.seed, self.steps, self.jitter = digits, seed, steps, jitter

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, step: int) -> Frames:
        generator = torch.Generator().manual_seed(self.seed * SEEDS_APART + step)
        made = canvases(self.digits, CANVASES, generator)
        images, targets = list(made.images), canvas_boxes(made.middles, made.labels)
        if self.jitter:
            pairs = (jittered(*pair, generator) for pair in zip(images, targets, strict=True))
            images, targets = map(list, zip(*pairs, strict=True))
        return framed(images, targets)

    def ahead(self, workers: int, pinned: bool) -> DataLoader[Frames]:
        """The batches in their order, drawn by so many processes while others are learnt from."""
        return DataLoader(self, batch_size=None, num_workers=workers, pin_memory=pinned)


def jittered(image: Tensor, target: Target, generator: torch.Generator) -> tuple[Tensor, Target]:
    """An image (1, H, H) rescaled by a factor from the test's range; of a large one, a frame is cut out."""
    low, high = SIZES
    factor = low * (high / low) ** float(torch.rand((), generator=generator))
    side = image.shape[-1]
    size = round(side * factor)
    kept = min(FRAME, size)
    left, top = (int(torch.randint(size - kept + 1, (), generator=generator)) for _ in range(2))
    image = shrunk(image, size) if size <= side else enlarged(image, size, left, top, kept)
    image = image[..., :kept, :kept]
    boxes = target["boxes"] * (size / side) - torch.tensor([left, top, left, top])
    cut = boxes.clamp(0, kept)
    area, whole = ((part[:, 2:] - part[:, :2]).clamp_min(0).prod(1) for part in (cut, boxes))
    there = area >= LEAST * whole
    return image, {"boxes": cut[there], "labels": target["labels"][there]}


def shrunk(image: Tensor, size: int) -> Tensor:
    return F.interpolate(image[None], size=(size, size), mode="bilinear", antialias=True)[0]


def enlarged(image: Tensor, size: int, left: int, top: int, kept: int) -> Tensor:
    """A crop (1, kept, kept) of the image enlarged to size x size: only the crop is computed."""
    rows, columns = ((torch.arange(kept) + start + 0.5) * 2 / size - 1 for start in (top, left))
    lattice = torch.stack(torch.meshgrid(columns, rows, indexing="xy"), -1)  # (kept, kept, 2)
    return F.grid_sample(image[None], lattice[None], padding_mode="border", align_corners=False)[0]


def framed(images: list[Tensor], targets: list[Target]) -> Frames:
    """Images (1, H, H) in the corners of frames, and their boxes, filled up."""
    frames = torch.full((len(images), 1, FRAME, FRAME), BACKGROUND)
    boxes = torch.zeros(len(images), CELLS**2, 4)
    labels = torch.full((len(images), CELLS**2), -1)
    for number, (image, target) in enumerate(zip(images, targets, strict=True)):
        frames[number, :, : image.shape[-2], : image.shape[-1]] = image
        count = len(target["labels"])
        boxes[number, :count], labels[number, :count] = target["boxes"], target["labels"]
    return Frames(frames.half(), boxes, labels)
