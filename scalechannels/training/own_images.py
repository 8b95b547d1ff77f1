"""Own images as data: training and test sets of a user's folder."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import Tensor

from scalechannels.data.folder import ImageFolder
from scalechannels.data.frames import reduced, simulated
from scalechannels.data.image_set import ImageSet, Scale, drawn_scales
from scalechannels.data.sizes import OWN_SIZES
from scalechannels.training.config import DataConfig
from scalechannels.training.config.own_images import MEMORY, open_folder
from scalechannels.training.config.sections import FIELD


class FolderData:
    """Own images: one share of each class to train on, the others at any simulated size.

    The images that are not trained on serve as validation and as test: a folder has no third part. No choice
    is made by them here, so a first result on them is fair; a choice that you make by them is not.
    """

    def __init__(self, config: DataConfig, device: torch.device, root: Path | None) -> None:
        own = config.own
        # Where nothing may be skipped, the checksum says that the files are those that were checked.
        images = open_folder(config, decode=config.skip_corrupt)
        self.config, self.device, self.reduce, self.classes = config, device, own.reduce, images.classes
        self.field = math.ceil(FIELD * own.object_size / own.reduce)
        self.learnt, self.kept = images.split(1 - own.validation, config.seed)
        self.held: list[Tensor] | None = None
        self.again: list[Tensor] | None = None  # the training images, where they are drawn more than once

    def training(self, draw: int = 0) -> ImageSet:
        """All images in the smallest frame that holds them, of at most four times the object's size."""
        images = self.again or self._read(self.learnt)
        if self.config.redraw:
            self.again = images
        largest = max(1.0, *self.config.sizes)
        side = min(self.field, max(math.ceil(largest * max(image.shape[1:])) for image in images))
        generator = torch.Generator().manual_seed(self.config.draw_seed(draw))
        draws = torch.rand(len(images), generator=generator, dtype=torch.float64)
        sizes = drawn_scales(self.config.scale, draws)
        frames = [simulated(image, size, side) for image, size in zip(images, sizes.tolist(), strict=True)]
        return ImageSet(torch.stack(frames), torch.tensor(self.learnt.labels), sizes).to(self.device)

    def testing(self, size: Scale, split: str) -> ImageSet:
        """The images that are not trained on, at `size` times their own. Very many are thinned out."""
        if isinstance(size, tuple):
            raise ValueError(f"own images are tested at single sizes, got the range {size}")
        if self.held is None:
            self.held = self._read(self.kept)
        side = max(max(image.shape[1:]) for image in self.held)
        largest = min(self.field, math.ceil(OWN_SIZES[-1] * side))
        room = max(100, MEMORY // (4 * len(self.held[0]) * largest**2))
        step = max(1, -(-len(self.held) // room))
        side = min(self.field, math.ceil(max(1, size) * side))
        frames = torch.stack([simulated(image, size, side) for image in self.held[::step]])
        sizes = torch.full((len(frames),), size, dtype=torch.float64)
        return ImageSet(frames, torch.tensor(self.kept.labels[::step]), sizes).to(self.device)

    def _read(self, images: ImageFolder) -> list[Tensor]:
        limit = self.field  # what no frame holds need not be kept
        read = []
        for index in range(len(images)):
            image = reduced(images[index][0], self.reduce)
            rows, columns = (min(length, limit + (length - limit) % 2) for length in image.shape[1:])
            top, left = (image.shape[1] - rows) // 2, (image.shape[2] - columns) // 2
            read.append(image[:, top : top + rows, left : left + columns].clone())
        return read
