"""Own images as data: training and test sets of a user's folder."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import Tensor

from scalechannels.data.folder import ImageFolder
from scalechannels.data.frames import reduced, rescaled, simulated
from scalechannels.data.image_set import ImageSet, Scale, drawn_scales
from scalechannels.data.sizes import OWN_SIZES
from scalechannels.plain import resized
from scalechannels.training.config import DataConfig
from scalechannels.training.config.data import FIELD
from scalechannels.training.config.own_images import MEMORY, in_parts, open_folder

STEPS = 8
"""Of an octave, where sizes are drawn again in every epoch."""


class FolderData:
    """Own images in three parts: to train on, to choose by (validation) and to report on (test).

    Of a run of an earlier version the last two are one. Test images are at any simulated size: of crops, the
    whole object in a frame that holds it; in frames, what the frame still shows of it. Where images are
    resized, they are rescaled first and then resized, each by itself.
    """

    def __init__(self, config: DataConfig, device: torch.device, root: Path | None) -> None:
        own = config.own
        # Where nothing may be skipped, the checksum says that the files are those that were checked.
        images = open_folder(config, decode=config.skip_corrupt)
        self.config, self.device, self.reduce, self.classes = config, device, own.reduce, images.classes
        self.field = math.ceil(FIELD * own.object_size / own.reduce)
        self.learnt, self.checked, self.kept = in_parts(images, config)
        self.held: dict[str, list[Tensor]] = {}
        self.again: list[Tensor] | None = None  # the training images, where they are drawn more than once

    def part(self, split: str) -> ImageFolder:
        """The images that are held out for this split."""
        return self.checked if split == "validation" else self.kept

    def training(self, draw: int = 0) -> ImageSet:
        """All images in the smallest frame that holds them, of at most four times the object's size."""
        images = self.again or self._read(self.learnt)
        if self.config.redraw:
            self.again = images
        generator = torch.Generator().manual_seed(self.config.draw_seed(draw))
        draws = torch.rand(len(images), generator=generator, dtype=torch.float64)
        sizes = drawn_scales(self.config.scale, draws)
        if self.config.redraw:  # in small steps, so that their matrices are made once
            sizes = 2 ** ((sizes.log2() * STEPS).round() / STEPS)
        side = self._side(images, max(1.0, *self.config.sizes))
        frames = [self._seen(image, size, side) for image, size in zip(images, sizes.tolist(), strict=True)]
        return ImageSet(torch.stack(frames), torch.tensor(self.learnt.labels), sizes).to(self.device)

    def testing(self, size: Scale, split: str) -> ImageSet:
        """The images of a held-out part, at `size` times their own. Very many are thinned out."""
        if isinstance(size, tuple):
            raise ValueError(f"own images are tested at single sizes, got the range {size}")
        held, part = self.images(split), self.part(split)
        largest = self._side(held, OWN_SIZES[-1])
        room = max(100, MEMORY // (4 * len(held[0]) * largest**2))
        step = max(1, -(-len(held) // room))
        side = self._side(held, max(1, size))
        frames = torch.stack([self._seen(image, size, side) for image in held[::step]])
        sizes = torch.full((len(frames),), size, dtype=torch.float64)
        return ImageSet(frames, torch.tensor(part.labels[::step]), sizes).to(self.device)

    def images(self, split: str) -> list[Tensor]:
        """The images (C, H, W) of a held-out part as files show them, but reduced."""
        if split not in self.held:
            self.held[split] = self._read(self.part(split))
        return self.held[split]

    def _side(self, images: list[Tensor], largest: float) -> int:
        """Of the frame that holds images up to so many times their size."""
        if self.config.resize is not None:
            return self.config.resize
        longest = max(max(image.shape[1:]) for image in images)
        return min(self.field, math.ceil(longest * (1 if self.config.images == "frames" else largest)))

    def _seen(self, image: Tensor, size: float, side: int) -> Tensor:
        """An image (C, side, side) at this size."""
        if self.config.resize is not None:
            return resized(rescaled(image, size), side)
        if self.config.images == "frames":  # its own frame stays; beyond it, edges are repeated
            height, width = image.shape[1:]
            image, size = simulated(image, size, (height, width)), 1
        return simulated(image, size, side)

    def _read(self, images: ImageFolder) -> list[Tensor]:
        limit = self.field  # what no frame holds need not be kept
        if self.config.resize is not None or self.config.images == "frames":
            limit = 2**20  # but these depend on the whole image
        read = []
        for index in range(len(images)):
            image = reduced(images[index][0], self.reduce)
            rows, columns = (min(length, limit + (length - limit) % 2) for length in image.shape[1:])
            top, left = (image.shape[1] - rows) // 2, (image.shape[2] - columns) // 2
            read.append(image[:, top : top + rows, left : left + columns].clone())
        return read
