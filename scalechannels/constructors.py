"""The paper's networks by name, each in a line: fovavg(grid), fovmax, fovlse, fovconc, swmax, cnn()."""

from __future__ import annotations

from typing import Literal, TypedDict, get_args

from torch import nn
from typing_extensions import Unpack

from scalechannels.backbones.paper import CifarBackbone, ConvBackbone, mnist_backbone
from scalechannels.network import Norm, ScaleChannelNetwork
from scalechannels.plain import PlainNetwork
from scalechannels.pooling import ConcatScales, LogMeanExpOverScales, MaxOverScales, MeanOverScales
from scalechannels.scales import ScaleGrid

Data = Literal["mnist", "cifar10"]


class PaperOptions(TypedDict, total=False):
    """What the paper's networks can be asked for beyond their pooling."""

    data: Data
    """Whose backbone: "mnist", the default (1 channel, window 28, border) or "cifar10" (3, 32, reflect)."""
    channels: int
    classes: int
    window: int
    antialias: bool
    blur: float | None
    shifts: int
    width: int
    """How many times the features of the paper's MNIST backbone; the paper has 1."""
    backbone: nn.Module | None
    """In place of the paper's, without `channels` and `width`, which it has of its own."""


def fovmax(grid: ScaleGrid, **options: Unpack[PaperOptions]) -> ScaleChannelNetwork:
    """The paper's FovMax: maximum over scales."""
    return paper_network(grid, MaxOverScales(), **options)


def fovavg(grid: ScaleGrid, **options: Unpack[PaperOptions]) -> ScaleChannelNetwork:
    """The paper's FovAvg: average over scales."""
    return paper_network(grid, MeanOverScales(), **options)


def fovlse(grid: ScaleGrid, **options: Unpack[PaperOptions]) -> ScaleChannelNetwork:
    """Log-mean-exp over scales, which the paper does not have; docs/notebook.md compares them."""
    return paper_network(grid, LogMeanExpOverScales(), **options)


def fovconc(grid: ScaleGrid, **options: Unpack[PaperOptions]) -> ScaleChannelNetwork:
    """The paper's FovConc: a dense layer over the concatenated logits."""
    return paper_network(grid, ConcatScales(len(grid), options.get("classes", 10)), **options)


def swmax(
    grid: ScaleGrid,
    *,
    channels: int = 1,
    classes: int = 10,
    window: int = 28,
    batch_norm: bool = False,
    norm: Norm | None = None,
    margin: int = 0,
    centred: bool = False,
    drop_features: bool = False,
) -> ScaleChannelNetwork:
    """The paper's SWMax: maximum over places, then over scales; without batch norm, which harms it."""
    with_norm = batch_norm or norm == "joint"
    return ScaleChannelNetwork(
        mnist_backbone(window=window, channels=channels, classes=classes, batch_norm=with_norm),
        grid,
        MaxOverScales(),
        window,
        look="everywhere",
        margin=margin,
        centred=centred,
        drop_features=drop_features,
        norm=norm,
    )


def paper_network(
    grid: ScaleGrid,
    pool: nn.Module,
    *,
    data: Data = "mnist",
    channels: int | None = None,
    classes: int = 10,
    window: int | None = None,
    antialias: bool = False,
    blur: float | None = None,
    shifts: int = 0,
    width: int = 1,
    backbone: nn.Module | None = None,
) -> ScaleChannelNetwork:
    """The paper's foveated network for this data, around any pooling."""
    if backbone is not None and (channels is not None or width != 1):
        raise ValueError(
            "channels and width are for the paper's backbone; leave them out with your own backbone"
        )
    return ScaleChannelNetwork(
        backbone or paper_backbone(data, channels=channels, classes=classes, window=window, width=width),
        grid,
        pool,
        (28 if data == "mnist" else 32) if window is None else window,
        outside="border" if data == "mnist" else "reflect",
        antialias=antialias,
        blur=blur,
        shifts=shifts,
    )


def paper_backbone(
    data: Data,
    *,
    channels: int | None = None,
    classes: int = 10,
    window: int | None = None,
    width: int = 1,
) -> ConvBackbone | CifarBackbone:
    """The network of one scale channel for this data."""
    if data == "mnist":
        return mnist_backbone(
            window=28 if window is None else window,
            channels=1 if channels is None else channels,
            classes=classes,
            width=width,
        )
    if data == "cifar10":
        if width != 1:
            raise ValueError(f"width is for the MNIST backbone, got {width} for CIFAR-10")
        return CifarBackbone(channels=3 if channels is None else channels, classes=classes)
    raise ValueError(f"data is one of {get_args(Data)}, got {data!r}")


def cnn(
    *, data: Data = "mnist", image_size: int = 112, channels: int | None = None, classes: int = 10
) -> PlainNetwork:
    """The paper's plain CNN: eight blocks on 112x112 digits (92,198 parameters), or the CIFAR-10 backbone."""
    if data == "mnist":
        features = (16, 16, 16, 16, 32, 32, 32, 32)
        return PlainNetwork(
            ConvBackbone(
                features, window=image_size, channels=1 if channels is None else channels, classes=classes
            )
        )
    if data == "cifar10":
        return PlainNetwork(CifarBackbone(channels=3 if channels is None else channels, classes=classes))
    raise ValueError(f"data is one of {get_args(Data)}, got {data!r}")
