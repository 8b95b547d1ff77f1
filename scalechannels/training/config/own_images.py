"""Own images as a run: what a configuration leaves open is chosen from the images themselves.

images        crops where objects fill their images or do not stand out, else frames, see `data/survey.py`
object size   of crops the median of their longer sides, in frames that of what stands out
window        28 pixels, the paper's, for objects of less than 48; else 56. EfficientNet-Lite0, which was made
              for 224 pixels: twice as many
reduction     none below 112 pixels (four times the pixels of the window that sees the whole object at 56);
              above, the whole factor that leaves 112 to 224
channels      for objects from 1/4 to 4 times their size, or for the range or pixel sizes that are given, and
              two more below and above; the training size is one of them
places        anywhere, if many objects are far off the centre of their frames or the network looks
              everywhere; else images are cropped to four objects about the centre
parts         a fifth of each class to choose by and a fifth to report on, or as the folders say
epochs        as many as make some hundred steps, however few the images
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from scalechannels.data.sizes import OWN_SIZES
from scalechannels.scales import ScaleGrid
from scalechannels.training.config.data import DataConfig
from scalechannels.training.config.network import RATIO, NetworkConfig
from scalechannels.training.config.options import refuse
from scalechannels.training.config.training import TrainingConfig

if TYPE_CHECKING:
    from scalechannels.data.folder import ImageFolder
    from scalechannels.data.survey import Survey

VALIDATION = TEST = 0.2
STEPS = 600
MOST_EPOCHS = 100
SMALLEST_OBJECT = 8  # pixels


def open_folder(
    data: DataConfig, decode: bool = True, watch: Callable[[str, int], None] = lambda name, count: None
) -> ImageFolder:
    """The folder of the data, an error where it has changed since the run began.

    decode     read every image once, so that a damaged one is named at once
    watch      called with the name of each image that was read, and how many there are
    """
    from scalechannels.data.folder import MAX_PIXELS, image_folder

    images = image_folder(
        Path(data.folder or ""),
        colour=data.colour or "auto",
        skip_corrupt=data.skip_corrupt,
        max_pixels=data.max_pixels or MAX_PIXELS,
        decode=decode,
        watch=watch,
    )
    if data.checksum not in (None, images.checksum()):
        raise ValueError(
            f"{data.folder} does not hold the images that this run began with (their checksum differs): put "
            "them back, or start a new run without the old run's config file"
        )
    return images


def chosen_from_images(
    data: DataConfig,
    network: NetworkConfig,
    training: TrainingConfig,
    looked: tuple[ImageFolder, Survey] | None = None,
) -> tuple[DataConfig, NetworkConfig, TrainingConfig]:
    """The options with everything chosen; where nothing is open, the images are not read.

    looked     the folder and what was seen of it, where somebody has looked at it before
    """
    settled = (
        *(data.checksum, data.colour, data.validation, data.object_size, data.reduce),
        *(network.window, network.low, network.high, training.epochs, training.batch),
    )
    if None not in settled:
        _grid(data, network, data.own.object_pixels, network.window or 0)
        return data, network, training
    from scalechannels.backbones.sized import sized_backbone
    from scalechannels.data.survey import survey

    images, seen = looked or (opened := open_folder(data), survey(opened))
    side = seen.sides[1]
    kind = data.images or ("crops" if data.resize or data.checksum else seen.images)
    object_size = data.object_size or (side if kind == "crops" else seen.extent * side)
    wider = 2 if network.backbone == "efficientnet-lite0" else 1
    window = network.window or wider * (28 if object_size < 48 else 56)
    sized_backbone(window, 1, 2)  # a window that is too small is an error before any work
    reduce = data.reduce or max(1, int(object_size // 112))
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
    # A run of an earlier version has two parts, and says how large its second one is.
    test = data.test if data.checksum else data.test or TEST
    roaming = kind == "frames" and (seen.off_centre or network.look == "everywhere") and not data.checksum
    refuse(
        roaming and (training.visible or 1) < 1,
        "training.visible crops about the centre of the image, and the objects are anywhere; remove it",
    )
    data = replace(data, validation=data.validation or VALIDATION, test=test)
    count = len(in_parts(images, data)[0])
    batch = training.batch or min(16, count)
    epochs = training.epochs or min(max(math.ceil(STEPS * batch / count), 20), MOST_EPOCHS)
    return (
        replace(
            data,
            folder=str(images.root.resolve()),
            checksum=images.checksum(),
            colour="grey" if images.grey else "rgb",
            object_size=object_size,
            reduce=reduce,
            images=data.images if data.checksum else kind,
            places="anywhere" if roaming else data.places,
        ),
        replace(network, window=window, low=low, high=high, antialias=True),
        replace(training, epochs=epochs, batch=batch),
    )


def in_parts(images: ImageFolder, data: DataConfig) -> tuple[ImageFolder, ImageFolder, ImageFolder]:
    """The images to train on, to choose by and to report on.

    The runs of earlier versions have two parts: the second is for both. Once a choice is made, the images to
    choose by can be trained on as well.
    """
    assert data.validation is not None
    if data.test is None:
        learnt, kept = images.split(1 - data.validation, data.seed)
        return learnt, kept, kept
    learnt, checked, kept = images.parts(data.validation, data.test, data.seed)
    if data.validation_too:
        from scalechannels.data.folder import BEGINNING

        learnt = images.without({own[:BEGINNING] for own in kept.contents})
    return learnt, checked, kept


def factors(data: DataConfig) -> tuple[float, float]:
    """How much smaller and larger than in training the objects will be."""
    if data.range is not None:
        return data.range[0], data.range[1]
    if data.pixel_size is None or data.deploy_pixel_sizes is None:
        return OWN_SIZES[0], OWN_SIZES[-1]
    # A pixel that measures less makes the object larger.
    return data.pixel_size / max(data.deploy_pixel_sizes), data.pixel_size / min(data.deploy_pixel_sizes)


def _grid(data: DataConfig, network: NetworkConfig, object_pixels: float, window: int) -> ScaleGrid:
    """The channels for the sizes that are expected; an error where other ones are asked for as well."""
    size = object_pixels / window * window  # rounded as the scale of the training size is
    low, high = factors(data)
    ratio = network.ratio or RATIO
    grid = ScaleGrid.from_sizes(size, (low * size, high * size), window=window, ratio=ratio)
    said = "--pixel-size and --deploy-pixel-sizes" if data.range is None else "--range"
    for name, given, found in (("low", network.low, grid.minimum), ("high", network.high, grid.maximum)):
        ranged = data.pixel_size is not None or data.range is not None
        # Looking everywhere, the finest channels cost most: these have no margin.
        known = ranged and given is not None and network.look == "centre"
        if known and not math.isclose(given or 0, found, rel_tol=1e-6):
            raise ValueError(
                f"{said} already set the channels, {grid.minimum:.3g} to "
                f"{grid.maximum:.3g}; got network.{name} {given:g} as well: give only one of them"
            )
    return grid
