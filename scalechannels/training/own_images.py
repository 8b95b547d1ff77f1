"""Own images as data: training and test sets of a user's folder."""

from __future__ import annotations

import math
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from scalechannels.data.arrays import ImageArrays
from scalechannels.data.folder import BEGINNING, ImageFolder
from scalechannels.data.frames import reduced, rescaled, simulated
from scalechannels.data.image_set import ImageSet, Scale, drawn_scales
from scalechannels.data.sizes import OWN_SIZES
from scalechannels.data.standing_out import at_size
from scalechannels.plain import resized
from scalechannels.training.config import DataConfig
from scalechannels.training.config.data import FIELD
from scalechannels.training.config.own_images import in_parts, open_folder
from scalechannels.training.inputs import fits_in_memory, free_memory

STEPS = 8
"""Of an octave, where sizes are drawn again in every epoch."""
MEMORY = 2**30
"""Bytes that the images of a test size may take, and those that are kept for more tests."""


KEPT = MEMORY // 4
"""Bytes of reduced images that are kept for the next candidate."""


class Reduced:
    """Reduced images of files, which all candidates have in common: of a photograph one takes a second."""

    def __init__(self) -> None:
        self.images: dict[tuple[object, ...], Tensor] = {}
        self.bytes = 0

    def __call__(self, images: ImageFolder, index: int, factor: int) -> Tensor:
        """An image (C, H, W); made again if its file has changed."""
        if factor == 1 or isinstance(images, ImageArrays):  # nothing is gained
            return reduced(images[index][0], factor)
        path = images.paths[index]
        file = path.stat()
        key = (path.absolute(), file.st_mtime_ns, file.st_size, images.grey, factor)
        if key in self.images:
            return self.images[key]
        made = reduced(images[index][0], factor)
        if self.bytes + 4 * made.numel() <= KEPT:
            self.images[key] = made
            self.bytes += 4 * made.numel()
        return made


once_reduced = Reduced()


class FolderData:
    """Own images in three parts: to train on, to choose by (validation) and to report on (test).

    Of a run of an earlier version the last two are one. Test images are at any simulated size: of crops, the
    whole object in a frame that holds it; in frames, what the frame still shows of it. Where images are
    resized, they are rescaled first and then resized, each by itself.

    images     those that are in memory already, in place of the folder's
    """

    def __init__(
        self,
        config: DataConfig,
        device: torch.device,
        root: Path | None,
        images: ImageFolder | None = None,
    ) -> None:
        own = config.own
        # Where nothing may be skipped, the checksum says that the files are those that were checked.
        images = open_folder(config, decode=config.skip_corrupt) if images is None else images
        self.config, self.device, self.reduce, self.classes = config, device, own.reduce, images.classes
        # Beyond so many pixels nothing is seen, unless objects may lie there.
        four = math.ceil(FIELD * own.object_size / own.reduce)
        self.field = four if config.places == "centre" else math.inf
        self.learnt, self.checked, self.kept = in_parts(images, config)
        self.held: dict[tuple[str, int], Tensor] = {}
        self.again: list[Tensor] | None = None  # the training images, where they are drawn more than once
        self.store: Any = None  # of decoded images, where they are read from disk

    def part(self, split: str) -> ImageFolder:
        """The images that are held out for this split."""
        if split == "validation" and self.config.validation_too:
            raise ValueError("the network has learnt from the validation images: test it on the test split")
        return self.checked if split == "validation" else self.kept

    @property
    def learnt_from(self) -> list[str]:
        """How the checksums of the images begin that a network learns from or is chosen by."""
        return sorted({own[:BEGINNING] for part in (self.learnt, self.checked) for own in part.contents})

    @cached_property
    def needed(self) -> int:
        """Bytes that the training images take in memory, at least."""
        frames = len(self.learnt) * self._training_side**2
        if (
            self.config.redraw
        ):  # then they are kept as they are as well, and put into new frames beside the old
            areas = [
                math.prod(self.left(-(-side // self.reduce)) for side in two) for two in self.learnt.sides
            ]
            frames = 2 * frames + sum(areas[number] for number in self.learnt.numbers)
        return 4 * self.colours * frames

    @cached_property
    def in_memory(self) -> bool:
        """Whether they lie in memory; if not, every step reads its images from disk: they are the same."""
        return fits_in_memory(self.needed)

    @property
    def where(self) -> str | None:
        """What is to be said of images that are not in memory."""
        if self.in_memory:
            return None
        kept = "decoded once and kept" if self.store is not None else "decoded in every epoch"
        free = free_memory(torch.device("cpu")) / 2**30
        return (
            f"images are read from disk: in memory they would take {self.needed / 2**30:.1f} GiB, and "
            f"{free:.1f} GiB are free; {len(self.learnt.different):,} files are {kept}"
        )

    @property
    def colours(self) -> int:
        return 1 if self.learnt.grey else 3

    def training(self, draw: int = 0) -> ImageSet:
        """All images in the smallest frame that holds them, of at most four times the object's size.

        Whole, where objects are anywhere.
        """
        generator = torch.Generator().manual_seed(self.config.draw_seed(draw))
        draws = torch.rand(len(self.learnt), generator=generator, dtype=torch.float64)
        sizes = drawn_scales(self.config.scale, draws)
        if self.config.redraw:  # in small steps, so that their matrices are made once
            sizes = 2 ** ((sizes.log2() * STEPS).round() / STEPS)
        side, labels = self._training_side, torch.tensor(self.learnt.labels)
        if not self.in_memory:
            from scalechannels.training.streaming.from_disk import images_on_disk

            return images_on_disk(self, sizes, side).to(self.device)
        if self.config.redraw and self.again is None:
            self.again = [self.read(self.learnt, index) for index in range(len(self.learnt))]
        frames = torch.empty(len(sizes), self.colours, side, side)
        for index, size in enumerate(sizes.tolist()):
            image = self.read(self.learnt, index) if self.again is None else self.again[index]
            frames[index] = self.seen(image, size, side)
        return ImageSet(frames, labels, sizes).to(self.device)

    def testing(self, size: Scale, split: str) -> ImageSet:
        """The images of a held-out part, at `size` times their own. Very many are thinned out."""
        if isinstance(size, tuple):
            raise ValueError(f"own images are tested at single sizes, got the range {size}")
        part = self.part(split)
        largest = self._side(part, OWN_SIZES[-1])
        room = max(100, MEMORY // (4 * self.colours * largest**2))
        kept = range(0, len(part), max(1, -(-len(part) // room)))
        side = self._side(part, max(1, size))
        frames = torch.stack([self.seen(self.image(split, index), size, side) for index in kept])
        sizes = torch.full((len(frames),), size, dtype=torch.float64)
        labels = torch.tensor([part.labels[index] for index in kept])
        return ImageSet(frames, labels, sizes).to(self.device)

    def images(self, split: str) -> list[Tensor]:
        """The images (C, H, W) of a held-out part as files show them, but reduced."""
        return [self.image(split, index) for index in range(len(self.part(split)))]

    def image(self, split: str, index: int) -> Tensor:
        """One of them; the first ones are kept for the next test, as far as there is room."""
        if (split, index) in self.held:
            return self.held[split, index]
        image = self.read(self.part(split), index)
        if 4 * (image.numel() + sum(one.numel() for one in self.held.values())) <= MEMORY:
            self.held[split, index] = image
        return image

    @cached_property
    def _training_side(self) -> int:
        return self._side(self.learnt, max(1.0, *self.config.sizes))

    def _side(self, part: ImageFolder, largest: float) -> int:
        """Of the frame that holds the images of a part up to so many times their size."""
        if self.config.resize is not None:
            return self.config.resize
        longest = max(self.left(-(-max(sides) // self.reduce)) for sides in part.sides)
        return int(min(self.field, math.ceil(longest * (1 if self.config.images == "frames" else largest))))

    def seen(self, image: Tensor, size: float, side: int) -> Tensor:
        """An image (C, side, side) at this size."""
        if self.config.resize is not None:
            return resized(rescaled(image, size), side)
        if self.config.images == "frames":  # its own frame stays; beyond it, edges are repeated
            image, size = at_size(image, size), 1
        return simulated(image, size, side)

    def read(self, images: ImageFolder, index: int) -> Tensor:
        """An image (C, H, W) of a part, reduced, without what no frame holds."""
        image = once_reduced(images, index, self.reduce)
        rows, columns = (self.left(length) for length in image.shape[1:])
        top, left = (image.shape[1] - rows) // 2, (image.shape[2] - columns) // 2
        return image[:, top : top + rows, left : left + columns].clone()

    def left(self, length: int) -> int:
        """What is kept of a side of a reduced image."""
        if self.config.resize is not None or self.config.images == "frames":
            return length  # these depend on the whole image
        return int(min(length, self.field + (length - self.field) % 2))
