"""Own images as a run: what a configuration leaves open is chosen from the images themselves.

object size   the median of the images' longer sides: an object is taken to fill its image
window        28 pixels, the paper's, for objects of less than 48; else 56
reduction     none below 112 pixels (four times the pixels of the window that sees the whole object at 56);
              above, the whole factor that leaves 112 to 224, and more where memory would not suffice
channels      for objects from 1/4 to 4 times their size, or for the pixel sizes that are given, and two
              more below and above; the training size is one of them
epochs        so many that there are some hundred steps, however few the images
"""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from scalechannels.data.folder import MAX_PIXELS, ImageFolder, image_folder
from scalechannels.data.frames import framed, reduced, simulated
from scalechannels.data.image_set import ImageSet
from scalechannels.scales import ScaleGrid
from scalechannels.training.config import DataConfig, RunConfig
from scalechannels.training.own_network import FIELD, sized_backbone, training_scale

SIZES = tuple(2 ** (k / 4) for k in range(-8, 9))  # 1/4 to 4
VALIDATION = 0.25
STEPS = 600
LONGEST = 100  # epochs
SMALLEST_OBJECT = 8  # pixels
MEMORY = 2**30
"""Bytes that the training images may take, and those of a test size."""


def survey(data: DataConfig) -> ImageFolder:
    """Every image decoded once: a damaged one is known by name before any work."""
    return image_folder(
        _place(data),
        colour=data.colour or "auto",
        on_corrupt="skip" if data.skip_corrupt else "refuse",
        max_pixels=data.max_pixels or MAX_PIXELS,
    )


def filled_in(config: RunConfig, device: str) -> RunConfig:
    """The run with everything chosen; a run in which nothing is open is given back without a look."""
    data, network, training = config.data, config.network, config.training
    chosen = (
        *(data.checksum, data.colour, data.validation, data.object_size, data.reduce),
        *(network.window, network.low, network.high, training.epochs, training.batch),
    )
    if None not in chosen:
        _grid(config)
        return _trained_as(config, training.epochs or 1, training.batch or 1, device)
    images = survey(data)
    data = replace(
        data,
        folder=str(_place(data).resolve()),
        checksum=images.checksum(),
        colour="grey" if images.grey else "rgb",
        validation=data.validation or VALIDATION,
        object_size=data.object_size or float(statistics.median(max(size) for size in images.sizes)),
    )
    if config.data.checksum not in (None, data.checksum):
        raise ValueError(_changed_message(data.folder))
    assert data.object_size is not None
    if data.object_size < SMALLEST_OBJECT:
        raise ValueError(
            f"objects of {data.object_size:g} pixels show nothing to learn: at least {SMALLEST_OBJECT} are "
            "needed (the median of the images' longer sides, or data.object_size)"
        )
    network = replace(network, window=network.window or (28 if data.object_size < 48 else 56))
    assert network.window is not None
    sized_backbone(network.window, 1, 2)  # a window that is too small is told before any work
    data = replace(data, reduce=data.reduce or _reduction(data, images))
    config = RunConfig(data, network, training)
    grid = _grid(config)
    low, high = network.low or grid.minimum, network.high or grid.maximum
    ScaleGrid(low, high, ratio=network.ratio)
    config = replace(config, network=replace(network, low=low, high=high))
    assert data.validation is not None
    count = len(images.split(1 - data.validation, data.seed)[0])
    batch = training.batch or min(16, count)
    epochs = training.epochs or min(max(math.ceil(STEPS * batch / count), 20), LONGEST)
    return _trained_as(config, epochs, batch, device)


def _trained_as(config: RunConfig, epochs: int, batch: int, device: str) -> RunConfig:
    training, dropout = config.training, config.network.dropout
    schedule = training.schedule or "cosine"
    return RunConfig(
        config.data,
        replace(config.network, dropout=0.15 if dropout is None else dropout),
        replace(
            training,
            epochs=epochs,
            batch=batch,
            rate=training.rate or 3e-3,
            schedule=schedule,
            period=training.period or (2 if schedule == "step" else epochs),
            precision=training.precision or ("bfloat16" if device.startswith("cuda") else "float32"),
        ),
    )


def _reduction(data: DataConfig, images: ImageFolder) -> int:
    """The smallest factor that leaves an object fewer than 224 pixels and all images within the memory."""
    assert data.object_size is not None
    side = min(max(max(size) for size in images.sizes), FIELD * data.object_size)
    needed = len(images) * (1 if images.grey else 3) * 4 * side**2
    return max(1, int(data.object_size // 112), math.ceil(math.sqrt(needed / MEMORY)))


def factors(data: DataConfig) -> tuple[float, float]:
    """How much smaller and larger than in training the objects will be."""
    if data.pixel_size is None or data.deploy_pixel_sizes is None:
        return SIZES[0], SIZES[-1]
    # A pixel that measures less makes the object larger.
    return data.pixel_size / max(data.deploy_pixel_sizes), data.pixel_size / min(data.deploy_pixel_sizes)


def _grid(config: RunConfig) -> ScaleGrid:
    """The channels for the sizes that are expected; an error where other ones are asked for as well."""
    network, window = config.network, config.network.window
    assert window is not None
    size = training_scale(config) * window
    low, high = factors(config.data)
    grid = ScaleGrid.from_sizes(size, (low * size, high * size), window=window, ratio=network.ratio)
    for name, given, found in (("low", network.low, grid.minimum), ("high", network.high, grid.maximum)):
        known = config.data.pixel_size is not None and given is not None
        if known and not math.isclose(given or 0, found, rel_tol=1e-6):
            raise ValueError(
                f"the pixel sizes set channels from {grid.minimum:g} to {grid.maximum:g}, and network.{name} "
                f"says {given:g}: give one of them"
            )
    return grid


class FolderData:
    """Own images: one share of each class to learn from, the others at any simulated size.

    The images that are not learnt from serve as validation and as test: a folder has no third part. No choice
    is made by them here, so a first result on them is fair; a choice that you make by them is not.
    """

    test_sizes: tuple[float, ...] = SIZES

    def __init__(self, config: DataConfig, device: torch.device) -> None:
        self.config, self.device = config, device
        if config.colour is None or config.validation is None or config.object_size is None:
            raise ValueError("resolve the configuration first")
        if config.reduce is None or config.checksum is None:
            raise ValueError("resolve the configuration first")
        images = image_folder(
            _place(config),
            colour=config.colour,
            on_corrupt="skip" if config.skip_corrupt else "refuse",
            max_pixels=config.max_pixels or MAX_PIXELS,
            decode=config.skip_corrupt,  # else the checksum says that the files are those that were checked
        )
        if images.checksum() != config.checksum:
            raise ValueError(_changed_message(config.folder))
        self.classes = images.classes
        self.reduce: int = config.reduce
        self.field = math.ceil(FIELD * config.object_size / config.reduce)
        self.learnt, self.kept = images.split(1 - config.validation, config.seed)
        self.held: list[Tensor] | None = None

    def training(self, draw: int = 0) -> ImageSet:
        """All images in the smallest frame that holds them, of at most four times the object's size."""
        images = self._read(self.learnt)
        side = min(self.field, max(max(image.shape[1:]) for image in images))
        frames = torch.stack([framed(image, side) for image in images])
        return self._set(frames, torch.tensor(self.learnt.labels), 1.0)

    def testing(self, size: float | tuple[float, float], split: str) -> ImageSet:
        """The images that are not learnt from, at `size` times their own. Very many are thinned out."""
        if isinstance(size, tuple):
            raise ValueError(f"own images are tested at single sizes, got the range {size}")
        if self.held is None:
            self.held = self._read(self.kept)
        side = max(max(image.shape[1:]) for image in self.held)
        largest = min(self.field, math.ceil(SIZES[-1] * side))
        room = max(100, MEMORY // (4 * len(self.held[0]) * largest**2))
        step = max(1, -(-len(self.held) // room))
        side = min(self.field, math.ceil(max(1, size) * side))
        frames = torch.stack([simulated(image, size, side) for image in self.held[::step]])
        return self._set(frames, torch.tensor(self.kept.labels[::step]), size)

    def _read(self, images: ImageFolder) -> list[Tensor]:
        limit = self.field  # what no frame holds need not be kept
        read = []
        for index in range(len(images)):
            image = reduced(images[index][0], self.reduce)
            rows, columns = (min(length, limit + (length - limit) % 2) for length in image.shape[1:])
            top, left = (image.shape[1] - rows) // 2, (image.shape[2] - columns) // 2
            read.append(image[:, top : top + rows, left : left + columns].clone())
        return read

    def _set(self, frames: Tensor, labels: Tensor, size: float) -> ImageSet:
        scales = torch.full((len(frames),), size, dtype=torch.float64)
        return ImageSet(frames, labels, scales).to(self.device)


def _place(data: DataConfig) -> Path:
    assert data.folder is not None
    return Path(data.folder)


def _changed_message(folder: str | None) -> str:
    return (
        f"{folder} does not hold the images that this run began with (their checksum differs): put them "
        "back, or start a new run without the old run's config file"
    )
