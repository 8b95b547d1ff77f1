"""From a DataConfig to images: the training set, and test sets at any size."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import torch

from scalechannels.data.image_set import ImageSet, Scale, Split, drawn_scales
from scalechannels.training.config import DataConfig, DataName
from scalechannels.training.config.data import OBJECTS
from scalechannels.training.config.data_sets import STROKES

if TYPE_CHECKING:
    from scalechannels.data.anywhere import Objects
    from scalechannels.data.folder import ImageFolder

EvaluationSplit = Literal["validation", "test"]
Size = Scale
"""Of a test set: one size, or all from a low to a high one, log-uniform."""
STROKES_TEST = 2_000


class DataSets(Protocol):
    """A source of one training set and of test sets at any size."""

    config: DataConfig
    classes: tuple[str, ...]

    def training(self, draw: int = 0) -> ImageSet:
        """The training set; where its sizes are drawn, another `draw` has others."""
        ...

    def testing(self, size: Size, split: EvaluationSplit) -> ImageSet: ...


class StrokesData:
    """Built-in digits: no download, exact at every size."""

    classes: tuple[str, ...] = tuple(str(digit) for digit in range(10))

    def __init__(self, config: DataConfig, device: torch.device, root: Path | None) -> None:
        self.config, self.device = config, device

    def training(self, draw: int = 0) -> ImageSet:
        return self._make(self.config.samples or STROKES, self.config.scale, "train", draw)

    def testing(self, size: Size, split: EvaluationSplit) -> ImageSet:
        return self._make(STROKES_TEST, size, split)

    def _make(self, count: int, scale: Scale, split: Split, draw: int = 0) -> ImageSet:
        from scalechannels.data.strokes import strokes

        generator = torch.Generator().manual_seed(self.config.draw_seed(draw))
        scales = drawn_scales(scale, torch.rand(count, generator=generator, dtype=torch.float64))
        digits = strokes(count, self.config.seed, split)
        images = digits.render(scales if isinstance(scale, tuple) else scale, device=self.device)
        return ImageSet(images, digits.labels.to(self.device), scales.to(self.device))


class MnistData:
    """MNIST Large Scale."""

    classes: tuple[str, ...] = tuple(str(digit) for digit in range(10))

    def __init__(self, config: DataConfig, device: torch.device, root: Path | None) -> None:
        from scalechannels.data.mnist_large_scale import MnistLargeScale

        self.config, self.maker = config, MnistLargeScale(root, device=device)

    def training(self, draw: int = 0) -> ImageSet:
        config = self.config  # another draw has other samples, too: redraw is for all of them
        return self.maker.make("train", config.scale, config.draw_seed(draw), config.samples)

    def testing(self, size: Size, split: EvaluationSplit) -> ImageSet:
        return self.maker.make(split, size, self.config.seed)


class CifarData:
    """CIFAR-10, rescaled for testing and, where other sizes are asked for, for training."""

    def __init__(self, config: DataConfig, device: torch.device, root: Path | None) -> None:
        from scalechannels.data.rescaled_cifar10 import CLASSES, RescaledCifar10

        self.classes: tuple[str, ...] = CLASSES
        self.config, self.maker = config, RescaledCifar10(root, device=device)
        self.how: dict[str, Any] = {
            "hold_out": config.hold_out,
            "side": config.about.image,
            "places": config.places,
        }

    def training(self, draw: int = 0) -> ImageSet:
        return self.maker.make("train", self.config.scale, seed=self.config.draw_seed(draw), **self.how)

    def testing(self, size: Size, split: EvaluationSplit) -> ImageSet:
        if isinstance(size, tuple):
            raise ValueError(f"rescaled CIFAR-10 is tested at single sizes, got the range {size}")
        return self.maker.make(split, size, seed=self.config.seed, **self.how)


class EmojiData:
    """Emoji of five designs, which `scalechannels data generate emoji` has rendered."""

    def __init__(self, config: DataConfig, device: torch.device, root: Path | None) -> None:
        from scalechannels.data.emoji import Emoji

        self.config, self.maker = config, Emoji(root, device=device)
        self.classes: tuple[str, ...] = self.maker.classes

    def training(self, draw: int = 0) -> ImageSet:
        config = self.config
        return self.maker.make("train", config.scale, hold_out=config.hold_out, seed=config.draw_seed(draw))

    def testing(self, size: Size, split: EvaluationSplit) -> ImageSet:
        return self.maker.make(split, size, hold_out=self.config.hold_out, seed=self.config.seed)


class MnistScaleData:
    """MNIST-Scale: a draw of digits for each seed, at all sizes or at one."""

    classes: tuple[str, ...] = tuple(str(digit) for digit in range(10))

    def __init__(self, config: DataConfig, device: torch.device, root: Path | None) -> None:
        from scalechannels.data.mnist_scale import MnistScale

        self.config, self.maker = config, MnistScale(root, device=device)

    def training(self, draw: int = 0) -> ImageSet:
        config = self.config
        drawn = config.draw_seed(draw)
        return self.maker.make("train", config.scale, config.seed, sizes_seed=drawn, samples=config.samples)

    def testing(self, size: Size, split: EvaluationSplit) -> ImageSet:
        return self.maker.make(split, size, self.config.seed)


class PlacedData:
    """Objects in images of any size, at the centre or anywhere: digits, or the clothes of Fashion-MNIST."""

    def __init__(self, config: DataConfig, device: torch.device, root: Path | None) -> None:
        self.config, self.device, self.root = config, device, root
        self.opened: dict[Split, Objects] = {}
        names = tuple(str(digit) for digit in range(10))
        if config.name == "fashion":
            from scalechannels.data.rescaled_fashion import CLASSES

            names = CLASSES
        self.classes = names if config.find is None else (f"no {names[config.find]}", names[config.find])

    def training(self, draw: int = 0) -> ImageSet:
        from scalechannels.data.mnist_large_scale import balanced_subset

        config, objects = self.config, self._objects("train")
        count = config.samples or len(objects.labels)
        different = min(config.distinct or count, count, len(objects.labels))
        if different < len(objects.labels):
            objects = objects[balanced_subset(objects.labels, different, config.seed)]
        return self._make(objects, count, config.scale, config.draw_seed(draw))

    def testing(self, size: Size, split: EvaluationSplit) -> ImageSet:
        objects = self._objects(split)
        return self._make(objects, len(objects.labels), size, self.config.seed)

    def _objects(self, split: Split) -> Objects:
        """Those of a split, read and verified once: every epoch may ask for them again."""
        if split not in self.opened:
            self.opened[split] = self._open(split)
        return self.opened[split]

    def _open(self, split: Split) -> Objects:
        if self.config.name == "strokes":
            from scalechannels.data.strokes import strokes

            count = (self.config.samples or STROKES) if split == "train" else STROKES_TEST
            return strokes(count, self.config.seed, split)
        from scalechannels.data.mnist_large_scale import MnistLargeScale

        if self.config.name == "fashion":
            from scalechannels.data.rescaled_fashion import Clothes
            from scalechannels.data.sources import load_fashion

            return Clothes(*MnistLargeScale(mnist=load_fashion(self.root)).digits(split))
        from scalechannels.data.anywhere import Pictures

        return Pictures(*MnistLargeScale(self.root).digits(split))

    def _make(self, objects: Objects, count: int, scale: Scale, seed: int) -> ImageSet:
        config = self.config
        common: dict[str, Any] = {
            "side": config.about.image,
            "background": config.background,
            "device": self.device,
        }
        if config.find is not None:
            from scalechannels.data.several import several

            return several(
                objects, config.find, count, scale, seed, number=config.objects or OBJECTS, **common
            )
        from scalechannels.data.anywhere import anywhere

        return anywhere(objects, count, scale, seed, places=config.places, **common)


def _folder(config: DataConfig, device: torch.device, root: Path | None) -> DataSets:
    from scalechannels.training.own_images import FolderData

    return FolderData(config, device, root)


OPENED: dict[DataName, Callable[[DataConfig, torch.device, Path | None], DataSets]] = {
    "strokes": StrokesData,
    "mnist": MnistData,
    "fashion": PlacedData,
    "mnist-scale": MnistScaleData,
    "cifar10": CifarData,
    "emoji": EmojiData,
    "folder": _folder,
}


def open_data(
    config: DataConfig,
    device: torch.device | str = "cpu",
    root: Path | None = None,
    images: ImageFolder | None = None,
) -> DataSets:
    """The data sets of a configuration, made on the device.

    root       where downloads are looked for
    images     own images that are in memory already, in place of those of a folder
    """
    if images is not None:
        from scalechannels.training.own_images import FolderData

        return FolderData(config, torch.device(device), root, images)
    opened = PlacedData if config.placed and config.name != "cifar10" else OPENED[config.name]
    return opened(config, torch.device(device), root)


def require_labels(labels: torch.Tensor, classes: int) -> None:
    """A clear error for labels that a network of so many classes cannot be trained or tested on."""
    if classes < 2:
        raise ValueError(f"at least two classes are needed, got {classes}")
    if not len(labels):
        raise ValueError("at least one image is needed, got none")
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise ValueError(f"labels lie in 0 to {classes - 1}, one for each class, got {low} to {high}")
