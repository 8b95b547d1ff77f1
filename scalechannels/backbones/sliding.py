"""Backbones as convolutions: logits at every place of an image, at the cost of one pass over it.

A backbone without padding gives, slid over an image in steps of its stride, what it gives on each window
alone. Dense layers become convolutions with the kernel that their windows had; averages over the window
become averages over a moving window.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor, nn

from scalechannels.backbones.inference import changed, colours, fold, foldable, stated, untouched
from scalechannels.backbones.paper import ConvBackbone

POINTWISE = (
    *(nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish, nn.Hardswish),
    *(nn.Sigmoid, nn.Tanh, nn.Softplus, nn.Identity, nn.Dropout, nn.Dropout2d, nn.BatchNorm2d),
)
"""Layers that treat every place alike in eval mode."""
TOLERANCE = 1e-3
HOW = (
    "Dense maps need a backbone without padding: a ConvBackbone, a torch.nn.Sequential of convolutions, "
    "pooling and dense layers, or a module with a method logit_map, (N, C, H, W) to (N, K, h, w), and stride"
)


class Convolutional(NamedTuple):
    """A backbone that slides."""

    logit_map: Callable[[Tensor], Tensor]
    """Images (N, C, H, W) to logits (N, K, h, w): place (i, j) is the window whose first pixel is
    (stride·i, stride·j)."""
    stride: int


def convolutional(backbone: nn.Module, window: int, *, check: bool = True) -> Convolutional:
    """The sliding form of a backbone in eval mode, as its weights are now.

    Law: place (i, j) of the map is the backbone's output on that window alone. This is checked on noise, and
    a backbone for which it does not hold, such as one with padding, is refused. A ConvBackbone slides by
    construction, so it is checked only where it was changed.
    """
    if isinstance(backbone, ConvBackbone):
        _refuse_changed(backbone, backbone.dense, backbone.classifier)
        convolutions = fold(backbone.convolutions)
        slid = Convolutional(lambda images: backbone.slid(convolutions(images)), backbone.stride)
        check = check and not as_built(backbone)
    elif callable(getattr(backbone, "logit_map", None)):
        stride = getattr(backbone, "stride", None)
        if not isinstance(stride, int) or stride < 1:
            raise TypeError(
                f"{type(backbone).__name__} has a logit_map but no stride: the pixels between two places, "
                "a whole number"
            )
        slid = Convolutional(backbone.logit_map, stride)  # type: ignore[arg-type]
    elif isinstance(backbone, nn.Sequential):
        slid = _of_sequential(backbone, window)
    else:
        padded = any(_padded(layer) for layer in backbone.modules())
        why = "it pads its convolutions, and" if padded else "it"
        raise TypeError(f"{type(backbone).__name__} cannot slide: {why} has no logit_map. {HOW}")
    if check:
        _check(backbone, slid, window)
    return slid


def _refuse_changed(*replaced: nn.Module) -> None:
    for module in replaced:
        if not untouched(module):
            raise _not_called(module)


def _not_called(module: nn.Module) -> TypeError:
    return TypeError(
        f"{type(module).__name__} has hooks or another forward, which a dense map would ignore, and so would "
        "a network that looks everywhere; remove them"
    )


def require_as_seen(backbone: nn.Module, stride: int, window: int) -> None:
    """An error where a network that looks everywhere would ignore what became of its backbone.

    It slides in the backbone's place, and its dense layers as convolutions, so that hooks and other forwards
    of these are not called. Where windows lie was counted once.
    """
    if getattr(backbone, "stride", None) != stride or stated(backbone, "window") not in (None, window):
        raise ValueError(
            f"the network was made for a backbone of stride {stride} and windows of {window} pixels; this "
            "one has others: make a new network around it"
        )
    dense = (backbone.dense, backbone.classifier) if isinstance(backbone, ConvBackbone) else ()
    for module in (backbone, *dense):
        other = isinstance(module, nn.Linear) and type(module).forward is not nn.Linear.forward
        if other or changed(module):
            raise _not_called(module)


def as_built(backbone: ConvBackbone) -> bool:
    """Whether nothing of it was replaced or hooked, so that it slides by construction."""
    dense = (backbone.dense, backbone.classifier)
    return (
        type(backbone) is ConvBackbone
        and all(map(foldable, backbone.convolutions))
        and all(type(layer) is nn.Linear for layer in dense)
        and all(map(untouched, (backbone, backbone.convolutions, *dense)))
    )


def _of_sequential(backbone: nn.Sequential, window: int) -> Convolutional:
    """Each layer in its sliding form. `side` follows the window through the layers."""
    replaced = (nn.Sequential, nn.Flatten, nn.Linear, nn.AdaptiveAvgPool2d)
    _refuse_changed(*(module for module in backbone.modules() if isinstance(module, replaced)))
    layers: list[nn.Module] = []
    stride, side, flat = 1, window, False
    for layer in _leaves(backbone):
        if _padded(layer):
            raise TypeError(f"this backbone cannot slide: {layer} sees padding, not the image. {HOW}")
        if isinstance(layer, (nn.Conv2d, nn.MaxPool2d, nn.AvgPool2d)) and not flat:
            layers.append(layer)
            reach, step = _reach(layer)
            side, stride = (side - reach) // step + 1, stride * step
        elif isinstance(layer, nn.AdaptiveAvgPool2d) and layer.output_size in (1, (1, 1)) and not flat:
            layers.append(nn.AvgPool2d(side, stride=1))
            side = 1
        elif isinstance(layer, nn.Flatten) and layer.start_dim == 1:
            flat = True
        elif isinstance(layer, nn.Linear) and flat:
            convolution = nn.Conv2d(layer.in_features // side**2, layer.out_features, side)
            convolution.weight = nn.Parameter(layer.weight.unflatten(1, (-1, side, side)))
            convolution.bias = layer.bias
            layers.append(convolution)
            side = 1
        elif isinstance(layer, POINTWISE):
            layers.append(layer)
        else:
            raise TypeError(f"this backbone cannot slide: no sliding form is known for {layer}. {HOW}")
    return Convolutional(copy.deepcopy(nn.Sequential(*layers)).eval(), stride)


def _leaves(backbone: nn.Sequential) -> Iterator[nn.Module]:
    for layer in backbone:
        if isinstance(layer, nn.Sequential):
            yield from _leaves(layer)
        else:
            yield layer


def _padded(layer: nn.Module) -> bool:
    padding = getattr(layer, "padding", 0)
    if isinstance(padding, str):
        return padding != "valid"
    return any(padding) if isinstance(padding, tuple) else bool(padding)


def _reach(layer: nn.Conv2d | nn.MaxPool2d | nn.AvgPool2d) -> tuple[int, int]:
    """The pixels that a layer sees along an axis, and the step between its outputs."""
    values = []
    for name in ("kernel_size", "stride", "dilation"):
        value = getattr(layer, name, 1)
        first, second = value if isinstance(value, tuple) else (value, value)
        if first != second:
            raise TypeError(f"this backbone cannot slide: {layer} has unequal axes. {HOW}")
        values.append(first)
    if getattr(layer, "ceil_mode", False):
        raise TypeError(f"this backbone cannot slide: {layer} rounds up. {HOW}")
    kernel, step, dilation = values
    return dilation * (kernel - 1) + 1, step


@torch.no_grad()
def _check(backbone: nn.Module, slid: Convolutional, window: int) -> None:
    reference = next(chain(backbone.parameters(), backbone.buffers()), torch.empty(0))
    if reference.is_meta:
        return  # it has shapes, but no numbers that could differ
    generator = torch.Generator().manual_seed(0)
    side = window + 2 * slid.stride
    shape = (1, colours(backbone, otherwise=1), side, side)
    noise = torch.randn(shape, generator=generator, device="cpu")  # whatever the default device is
    # Of growing contrast: over even noise, statistics of a window (group norm) hardly differ from the map's.
    noise = (noise * torch.linspace(0, 2, side, device="cpu")).to(reference)
    windows = noise[0].unfold(1, window, slid.stride).unfold(2, window, slid.stride)  # (C, 3, 3, n, n)
    windows = windows.flatten(1, 2).transpose(0, 1).contiguous()
    name = type(backbone).__name__
    try:
        alone, map_ = backbone(windows), slid.logit_map(noise)  # (9, K) and (1, K, h, w)
    except RuntimeError as error:
        raise TypeError(f"{name} cannot slide over {side}x{side} pixels: {error}. {HOW}") from error
    if map_.ndim != 4 or map_.shape[2] < 3 or map_.shape[3] < 3:
        raise TypeError(
            f"the map of {name} has the shape {tuple(map_.shape)} on {side}x{side} pixels; with a window of "
            f"{window} and a stride of {slid.stride} it needs three places along each side. {HOW}"
        )
    together = map_[0, :, :3, :3].flatten(1).T  # (9, K)
    difference = (alone - together).abs().max()
    if not difference <= TOLERANCE * (1 + alone.abs().max()):
        raise TypeError(
            f"{name} does not slide: on a map it differs from its windows by {float(difference):.2g}. {HOW}"
        )
