"""Own images as a run: what a configuration leaves open is chosen from the images themselves.

object size   the median of the images' longer sides: an object is taken to fill its image
window        28 pixels, the paper's, for objects of less than 48; else 56
reduction     none below 112 pixels (four times the pixels of the window that sees the whole object at 56);
              above, the whole factor that leaves 112 to 224, and more where memory would not suffice
channels      for objects from 1/4 to 4 times their size, or for the pixel sizes that are given, and two
              more below and above; the training size is one of them
epochs        as many as make some hundred steps, however few the images
"""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from scalechannels.data.sizes import OWN_SIZES
from scalechannels.scales import ScaleGrid
from scalechannels.training.config.sections import FIELD, DataConfig, NetworkConfig, TrainingConfig

if TYPE_CHECKING:
    from scalechannels.data.folder import ImageFolder

VALIDATION = 0.25
STEPS = 600
MOST_EPOCHS = 100
SMALLEST_OBJECT = 8  # pixels
MEMORY = 2**30
"""Bytes that the training images may take, and those of a test size."""


def open_folder(data: DataConfig, decode: bool = True) -> ImageFolder:
    """The folder of the data, an error where it has changed since the run began.

    decode     read every image once, so that a damaged one is named at once
    """
    from scalechannels.data.folder import MAX_PIXELS, image_folder

    images = image_folder(
        Path(data.folder or ""),
        colour=data.colour or "auto",
        skip_corrupt=data.skip_corrupt,
        max_pixels=data.max_pixels or MAX_PIXELS,
        decode=decode,
    )
    if data.checksum not in (None, images.checksum()):
        raise ValueError(
            f"{data.folder} does not hold the images that this run began with (their checksum differs): put "
            "them back, or start a new run without the old run's config file"
        )
    return images


def chosen_from_images(
    data: DataConfig, network: NetworkConfig, training: TrainingConfig
) -> tuple[DataConfig, NetworkConfig, TrainingConfig]:
    """The options with everything chosen; where nothing is open, the images are not read."""
    settled = (
        *(data.checksum, data.colour, data.validation, data.object_size, data.reduce),
        *(network.window, network.low, network.high, training.epochs, training.batch),
    )
    if None not in settled:
        _grid(data, network, data.own.object_pixels, network.window or 0)
        return data, network, training
    from scalechannels.backbones.sized import sized_backbone

    images = open_folder(data)
    side = float(statistics.median(max(size) for size in images.sizes))
    object_size = data.object_size or side
    window = network.window or (28 if object_size < 48 else 56)
    sized_backbone(window, 1, 2)  # a window that is too small is an error before any work
    reduce = data.reduce or _reduction(object_size, images, max(1.0, *data.sizes))
    left = min(object_size, side) / reduce  # an image shows no more of an object than it has pixels
    if left < SMALLEST_OBJECT:
        shrunk = f", shrunk by {reduce}," if reduce > 1 else ""
        raise ValueError(
            f"objects of {object_size:g} pixels in images of {side:g}{shrunk} leave {left:.3g} pixels of an "
            f"object; at least {SMALLEST_OBJECT} are needed. Give data.object_size in pixels of your files, "
            "or a smaller data.reduce"
        )
    grid = _grid(data, network, object_size / reduce, window)
    low, high = network.low or grid.minimum, network.high or grid.maximum
    validation = data.validation or VALIDATION
    count = len(images.split(1 - validation, data.seed)[0])
    batch = training.batch or min(16, count)
    epochs = training.epochs or min(max(math.ceil(STEPS * batch / count), 20), MOST_EPOCHS)
    return (
        replace(
            data,
            folder=str(images.root.resolve()),
            checksum=images.checksum(),
            colour="grey" if images.grey else "rgb",
            validation=validation,
            object_size=object_size,
            reduce=reduce,
        ),
        replace(network, window=window, low=low, high=high),
        replace(training, epochs=epochs, batch=batch),
    )


def factors(data: DataConfig) -> tuple[float, float]:
    """How much smaller and larger than in training the objects will be."""
    if data.pixel_size is None or data.deploy_pixel_sizes is None:
        return OWN_SIZES[0], OWN_SIZES[-1]
    # A pixel that measures less makes the object larger.
    return data.pixel_size / max(data.deploy_pixel_sizes), data.pixel_size / min(data.deploy_pixel_sizes)


def _reduction(object_size: float, images: ImageFolder, largest: float) -> int:
    """The smallest factor that leaves an object fewer than 224 pixels and all images within the memory.

    largest   how many times its size an image is trained on at most
    """
    side = min(largest * max(max(size) for size in images.sizes), FIELD * object_size)
    needed = len(images) * (1 if images.grey else 3) * 4 * side**2
    return max(1, int(object_size // 112), math.ceil(math.sqrt(needed / MEMORY)))


def _grid(data: DataConfig, network: NetworkConfig, object_pixels: float, window: int) -> ScaleGrid:
    """The channels for the sizes that are expected; an error where other ones are asked for as well."""
    size = object_pixels / window * window  # rounded as the scale of the training size is
    low, high = factors(data)
    grid = ScaleGrid.from_sizes(size, (low * size, high * size), window=window, ratio=network.ratio)
    for name, given, found in (("low", network.low, grid.minimum), ("high", network.high, grid.maximum)):
        known = data.pixel_size is not None and given is not None
        if known and not math.isclose(given or 0, found, rel_tol=1e-6):
            raise ValueError(
                f"--pixel-size and --deploy-pixel-sizes already set the channels, {grid.minimum:.3g} to "
                f"{grid.maximum:.3g}; got network.{name} {given:g} as well: give only one of them"
            )
    return grid
