"""Own images that do not fit into memory: workers read each step's images from disk, as they would lie there.

What a file shows is kept decoded, where all files together fit into `CACHE`: one store that all workers
share, filled by whoever decodes an image first. Then only the first epoch decodes.

Law: an image is the same, to the bit, whether it lies in memory or comes from disk or from the store. Limit:
the store needs workers that are forked; elsewhere, and for grey values of more than 8 bits that are not
reduced, every epoch decodes again.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from scalechannels.data.image_set import ImageSet
from scalechannels.training.inputs import fits_in_memory
from scalechannels.training.streaming import CONTEXT

if TYPE_CHECKING:
    from scalechannels.training.own_images import FolderData

CACHE = 2 * 2**30
"""Bytes of decoded images that are kept at most."""
ALIGNED = 16


class FileImages(Dataset[tuple[Tensor, Tensor]]):
    """The training images in their frames, read when they are asked for: (C, side, side) and the label."""

    def __init__(self, data: FolderData, sizes: Tensor, side: int, store: Store | None) -> None:
        self.data, self.sizes, self.side, self.store = data, sizes.tolist(), side, store

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        learnt = self.data.learnt
        image = None if self.store is None else self.store.get(learnt.numbers[index])
        if image is None:
            image = self.data.read(learnt, index)
            if self.store is not None:
                self.store.put(learnt.numbers[index], image)
        label = torch.tensor(learnt.labels[index])
        return self.data.seen(image, self.sizes[index], self.side), label


@dataclass(frozen=True)
class ImagesOnDisk(ImageSet):
    """A set whose `images` have a shape but no values: its dataset reads them."""

    files: FileImages | None = None
    in_memory: ClassVar[bool] = False

    def to(self, device: torch.device | str) -> ImagesOnDisk:
        return replace(self, labels=self.labels.to(device), scales=self.scales.to(device))

    def dataset(self) -> FileImages:  # type: ignore[override]
        assert self.files is not None
        return self.files


def images_on_disk(data: FolderData, sizes: Tensor, side: int) -> ImagesOnDisk:
    """The training set of a folder at these sizes (N,), in frames of this side."""
    if data.store is None and (room := Store.needed(data)) is not None:
        data.store = Store(room)
    shape = torch.empty(len(sizes), data.colours, side, side, device="meta")
    files = FileImages(data, sizes, side, data.store)
    return ImagesOnDisk(shape, torch.tensor(data.learnt.labels), sizes, files=files)


class Store:
    """Decoded images in memory that forked workers share.

    room       bytes for each image, by its number
    """

    def __init__(self, room: list[int]) -> None:
        places = np.cumsum([0, *(-(-size // ALIGNED) * ALIGNED for size in room)])
        self.places, self.room = places, room
        self.values = np.frombuffer(mmap.mmap(-1, max(ALIGNED, int(places[-1]))), np.uint8)
        # Colours, rows, columns, whether values are bytes; colours are written last, when all is there.
        self.shapes = np.frombuffer(mmap.mmap(-1, 4 * 8 * len(room)), np.int64).reshape(-1, 4)

    @staticmethod
    def needed(data: FolderData) -> list[int] | None:
        """Bytes for each different file of the training part; None where not all of them fit."""
        if CONTEXT != "fork":
            return None
        kept = []
        for sides in data.learnt.sides:
            height, width = (data.left(-(-side // data.reduce)) for side in sides)
            # Values of whole files are those of bytes; reduced ones are means of many.
            kept.append(data.colours * height * width * (1 if data.reduce == 1 else 4))
        total = sum(kept)
        return kept if total <= CACHE and fits_in_memory(total) else None

    def get(self, number: int) -> Tensor | None:
        colours, height, width, of_bytes = self.shapes[number].tolist()
        if not colours:
            return None
        count, first = colours * height * width, self.places[number]
        if of_bytes:
            stored = self.values[first : first + count]
            return torch.from_numpy(stored.copy()).view(colours, height, width).float().div_(255)
        stored = self.values[first : first + 4 * count].view(np.float32)
        return torch.from_numpy(stored.copy()).view(colours, height, width)

    def put(self, number: int, image: Tensor) -> None:
        """Keep an image, if what can be kept of it is exactly what it was."""
        first, room = int(self.places[number]), self.room[number]
        if room == 4 * image.numel():
            self.values[first : first + room] = image.contiguous().numpy().ravel().view(np.uint8)
        else:
            as_bytes = (image * 255).round().to(torch.uint8)
            if room != image.numel() or not torch.equal(as_bytes.float().div_(255), image):
                return
            self.values[first : first + room] = as_bytes.contiguous().numpy().ravel()
        self.shapes[number, 1:] = (*image.shape[1:], room == image.numel())
        self.shapes[number, 0] = len(image)
