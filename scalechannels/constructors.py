"""The paper's networks with scales, each in a line: fovavg(grid), fovmax, fovlse, fovconc, swmax."""

from __future__ import annotations

from typing import Literal, TypedDict

from torch import nn
from typing_extensions import Unpack

from scalechannels.backbones.paper import CifarBackbone, mnist_backbone
from scalechannels.network import Norm, ScaleChannelNetwork
from scalechannels.pooling import ConcatScales, LogMeanExpOverScales, MaxOverScales, MeanOverScales
from scalechannels.sampling import Outside
from scalechannels.scales import ScaleGrid

Data = Literal["mnist", "cifar10"]
USUAL: dict[Data, tuple[int, int, Outside]] = {"mnist": (1, 28, "border"), "cifar10": (3, 32, "reflect")}
"""The images' channels, the window and what is seen outside, unless asked otherwise."""


class PaperOptions(TypedDict, total=False):
    """What the paper's networks can be asked for beyond their pooling."""

    data: Data
    """Whose backbone; see `USUAL`."""
    channels: int
    classes: int
    window: int
    outside: Outside
    antialias: bool
    blur: float | None
    shifts: int
    width: int
    """How many times the features of the paper's MNIST backbone; the paper has 1."""
    backbone: nn.Module | None
    """In place of the paper's, without `channels` and `width`, which it has of its own."""


def fovmax(grid: ScaleGrid, **options: Unpack[PaperOptions]) -> ScaleChannelNetwork:
    """The paper's FovMax: maximum over scales.

    Example:
        >>> import torch
        >>> from scalechannels import ScaleGrid, fovmax
        >>> network = fovmax(ScaleGrid(0.5, 8, ratio=2))
        >>> network(torch.rand(2, 1, 112, 112)).shape
        torch.Size([2, 10])
    """
    return paper_network(grid, MaxOverScales(), **options)


def fovavg(grid: ScaleGrid, **options: Unpack[PaperOptions]) -> ScaleChannelNetwork:
    """The paper's FovAvg: average over scales.

    Example:
        >>> import torch
        >>> from scalechannels import ScaleGrid, fovavg
        >>> network = fovavg(ScaleGrid(0.5, 2, ratio=2), data="cifar10")
        >>> network(torch.rand(2, 3, 112, 112)).shape
        torch.Size([2, 10])
    """
    return paper_network(grid, MeanOverScales(), **options)


def fovlse(grid: ScaleGrid, **options: Unpack[PaperOptions]) -> ScaleChannelNetwork:
    """Log-mean-exp over scales, which the paper does not have; docs/notebook.md compares them.

    Example:
        >>> import torch
        >>> from scalechannels import ScaleGrid, fovlse
        >>> network = fovlse(ScaleGrid(0.5, 8, ratio=2), channels=3, classes=5)
        >>> network(torch.rand(2, 3, 112, 112)).shape
        torch.Size([2, 5])
    """
    return paper_network(grid, LogMeanExpOverScales(), **options)


def fovconc(grid: ScaleGrid, **options: Unpack[PaperOptions]) -> ScaleChannelNetwork:
    """The paper's FovConc: a dense layer over the concatenated logits.

    Example:
        >>> import torch
        >>> from scalechannels import ScaleGrid, fovconc
        >>> network = fovconc(ScaleGrid(0.5, 8, ratio=2))
        >>> network(torch.rand(2, 1, 112, 112)).shape
        torch.Size([2, 10])
    """
    return paper_network(grid, ConcatScales(len(grid), options.get("classes", 10)), **options)


def swmax(
    grid: ScaleGrid,
    *,
    channels: int = 1,
    classes: int = 10,
    window: int = 28,
    outside: Outside = "border",
    batch_norm: bool = False,
    norm: Norm | None = None,
    margin: int = 0,
    centred: bool = False,
    drop_features: bool = False,
) -> ScaleChannelNetwork:
    """The paper's SWMax: maximum over places, then over scales; without batch norm, which harms it.

    Example:
        >>> import torch
        >>> from scalechannels import ScaleGrid, swmax
        >>> network = swmax(ScaleGrid(1, 4, ratio=2))
        >>> why = network.explain(torch.rand(2, 1, 64, 96))
        >>> why.logits.shape, why.places.shape                  # and where the deciding window lies
        (torch.Size([2, 10]), torch.Size([2, 2]))
    """
    with_norm = batch_norm or norm == "joint"
    return ScaleChannelNetwork(
        mnist_backbone(window=window, channels=channels, classes=classes, batch_norm=with_norm),
        grid,
        MaxOverScales(),
        window,
        look="everywhere",
        outside=outside,
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
    outside: Outside | None = None,
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
    usual_channels, usual_window, usual_outside = usual(data)
    channels = usual_channels if channels is None else channels
    window = usual_window if window is None else window
    if backbone is None and data == "mnist":
        backbone = mnist_backbone(window=window, channels=channels, classes=classes, width=width)
    elif backbone is None:
        if width != 1:
            raise ValueError(f"width must be 1 for the CIFAR-10 backbone; got {width}")
        backbone = CifarBackbone(channels=channels, classes=classes)
    return ScaleChannelNetwork(
        backbone,
        grid,
        pool,
        window,
        outside=usual_outside if outside is None else outside,
        antialias=antialias,
        blur=blur,
        shifts=shifts,
    )


def usual(data: Data) -> tuple[int, int, Outside]:
    if data not in USUAL:
        raise ValueError(f"data must be one of {tuple(USUAL)}; got {data!r}")
    return USUAL[data]
