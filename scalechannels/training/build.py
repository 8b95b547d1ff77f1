"""From a NetworkConfig to a network with fresh weights."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from scalechannels.backbones.paper import ConvBackbone, mnist_backbone
from scalechannels.constructors import paper_network, swmax
from scalechannels.files import ENVIRONMENT_VARIABLE
from scalechannels.network import ScaleChannelNetwork
from scalechannels.pooling import POOLS, MaxOverScales
from scalechannels.rivals import RIVALS
from scalechannels.rivals.named import build_module
from scalechannels.saving.saved_network import Network
from scalechannels.scales import ScaleGrid
from scalechannels.training.config import Initialisation, NetworkConfig, ResolvedRun
from scalechannels.training.config.data import FIELD
from scalechannels.training.config.network import ResolvedNetwork
from scalechannels.training.config.options import refuse

EIGHT_BLOCKS = 61
"""The pixels that the plain CNN of digits needs; for smaller images it has fewer blocks."""
RESIDUAL_FEATURES = 32
"""Of the residual backbone's first convolution, at the width 1."""
FADED = 0.7
"""By which share weights at the middle of the window's edge are weaker at first, see `_fade`."""
RESIZED_FEATURES = 32
"""Of the first convolution of a plain CNN for resized images."""


def require_network(network: NetworkConfig) -> None:
    """A clear error for a name that no network has, and for what its pooling cannot do."""
    name, known = network.name, (*POOLS, "swmax", "cnn", *RIVALS)
    refuse(
        name not in known and not network.is_module,
        f"network.name must be one of {', '.join(known)}, or path/to/file.py:Class; got {name!r}",
    )
    others = network.shifts > 0 or network.pretrained is not None
    refuse(
        others and name in POOLS and POOLS[name].of_fixed_scales,
        f"network.shifts and network.pretrained are not for {name}, whose pooling is made for its own scales",
    )


def build_network(config: ResolvedRun, channels: int | None = None, classes: int = 10) -> Network:
    """The network of a resolved configuration, its weights drawn from the training's seed."""
    network = config.network
    require_network(network)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.training.seed)
        made = _build(config, channels, classes)
        if network.initialisation == "central":
            _fade(made)
        elif network.initialisation is not None and network.initialisation != "torch":
            torch.manual_seed(config.training.seed)
            _initialise(made, network.initialisation)
    for module in () if network.is_module else made.modules():
        if isinstance(module, nn.Dropout):
            module.p = network.dropout
    return made


def _initialise(network: Network, how: Initialisation) -> None:
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            if how == "he":
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            else:
                nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


@torch.no_grad()
def _fade(network: Network) -> None:
    """Weaken what the first dense layer sees at the window's edge.

    A network that looks everywhere chooses by itself which place of its window objects take. From such a
    start it chooses the middle, and parts of objects at the edge, which fine channels are full of, count
    less.
    """
    backbone: Any = network.backbone
    refuse(
        not isinstance(backbone, ConvBackbone),
        f"network.initialisation central is for the paper's backbone; got {type(backbone).__name__}",
    )
    along = 1 - FADED * torch.linspace(-1, 1, backbone.side) ** 4
    profile = torch.outer(along, along)
    weight = backbone.dense.weight.view(backbone.hidden, -1, backbone.side, backbone.side)
    weight.mul_(profile / profile.square().mean().sqrt())


def tested_network(config: ResolvedRun, trained: Network) -> Network:
    """What is evaluated and kept of a run: the trained network as it is to be tested.

    So with all channels where one was trained, with shifted windows, or averaged over scales.
    """
    if config.network.average_scales:
        from scalechannels.plain import PlainNetwork, averaged_over_scales

        assert isinstance(trained, PlainNetwork)
        data, sizes = config.data, _grid(config.network)
        image, outside = data.about.image, data.about.outside
        return averaged_over_scales(trained, sizes, data.sizes[0], window=image, outside=outside)
    if config.network.pretrained is None and not config.network.shifts:
        return trained
    backbone: Any = trained.backbone
    whole = replace(config, network=replace(config.network, pretrained=None))
    made = build_network(whole, backbone.channels, backbone.classes)
    made.load_state_dict(trained.state_dict())  # the channels share all weights, so they are the same
    return made.to(next(trained.parameters()).device)


def _build(config: ResolvedRun, channels: int | None, classes: int) -> Network:
    network, data = config.network, config.data.about
    if data.side is None:
        return _for_own_images(config, channels, classes)
    if network.is_module:
        from scalechannels.plain import PlainNetwork

        offered = {"channels": channels or 1, "classes": classes, "image": data.image, "grid": _grid(network)}
        return PlainNetwork(build_module(network.name, network.file, **offered))
    backbone = _stronger(network, channels, classes)
    if network.name == "cnn":
        from scalechannels.plain import PlainNetwork, cnn

        if backbone is None and data.backbone == "mnist" and data.image < EIGHT_BLOCKS:
            from scalechannels.backbones.sized import FEATURES, sized_backbone

            backbone = sized_backbone(data.image, channels or 1, classes, FEATURES * network.width)
        if backbone:
            return PlainNetwork(backbone)
        return cnn(
            data=data.backbone, image_size=data.image, channels=channels, classes=classes, width=network.width
        )
    grid = _grid(network) if network.pretrained is None else ScaleGrid.of(network.pretrained)
    if network.name == "swmax":
        return swmax(
            grid,
            channels=channels or 1,
            classes=classes,
            window=data.side,
            outside=data.outside,
            norm=network.batch_norm,
            margin=network.margin or 0,
            centred=bool(network.centred),
            drop_features=bool(network.drop_features),
        )
    pool = POOLS[network.name].over(len(grid), classes)
    if network.look == "everywhere":
        pads = backbone is not None or data.backbone != "mnist"
        refuse(
            pads,
            f"network.look everywhere needs a backbone without padding, which {data.title} does not have",
        )
        backbone = mnist_backbone(
            window=data.side, channels=channels or 1, classes=classes, width=network.width
        )
        return _everywhere(backbone, grid, pool, data.side, config, outside=data.outside)
    return paper_network(
        grid,
        pool,
        data=data.backbone,
        window=data.side,
        outside=data.outside,
        channels=None if backbone else channels,
        classes=classes,
        antialias=network.antialias,
        blur=network.blur,
        shifts=network.shifts,
        width=1 if backbone else network.width,
        backbone=backbone,
    )


def _stronger(network: ResolvedNetwork, channels: int | None, classes: int) -> nn.Module | None:
    """The backbone that was asked for; None where it is the paper's."""
    if network.backbone == "residual":
        from scalechannels.backbones.residual import ResidualBackbone

        features = RESIDUAL_FEATURES * network.width
        return ResidualBackbone(features, channels=channels or 3, classes=classes)
    if network.backbone == "efficientnet-lite0":
        from scalechannels.backbones.efficientnet_lite import EfficientNetLite0

        grey = channels == 1
        refuse(grey, "efficientnet-lite0 takes colour images; these are grey (yours: add --data.colour rgb)")
        return EfficientNetLite0(classes=classes, weights=_imagenet_weights())
    return None


def _imagenet_weights() -> str:
    """The file of weights in the folder of data, for machines without the package; else the package's."""
    from scalechannels.backbones.efficientnet_lite import FILE

    folder = os.environ.get(ENVIRONMENT_VARIABLE)
    file = Path(folder).expanduser() / FILE if folder else None
    return str(file) if file is not None and file.is_file() else "imagenet"


def _everywhere(
    backbone: nn.Module, grid: ScaleGrid, pool: nn.Module, window: int, config: ResolvedRun, **options: Any
) -> ScaleChannelNetwork:
    """A network that looks everywhere; its backbone has to slide."""
    network = config.network
    return ScaleChannelNetwork(
        backbone,
        grid,
        pool,
        window,
        look="everywhere",
        places=network.places,
        norm=network.batch_norm,
        centred=bool(network.centred),
        area_power=network.area_power,
        blur=network.blur,
        **{"antialias": network.antialias, **options},
    )


def _for_own_images(config: ResolvedRun, channels: int | None, classes: int) -> Network:
    """Scale channels, or beside them a plain CNN that costs as much. Windows are always anti-aliased.

    A plain CNN for resized images has the window that they are resized to, and twice the features of a
    channel's backbone.

    The plain CNN has one window, four times as wide as a channel's, at the resolution at which the channel of
    the training size sees an object. Its features are widened or narrowed until it needs as many
    multiplications as all channels together. With a stronger backbone all have this one.
    """
    from scalechannels.backbones.sized import equal_cost_backbone, multiplications, sized_backbone

    network, window, grid = config.network, config.window, _grid(config.network)
    channels = channels or (1 if config.data.own.colour == "grey" else 3)
    stronger = _stronger(network, channels, classes)
    if config.data.resize is not None:
        from scalechannels.plain import PlainNetwork

        if stronger is not None:
            return PlainNetwork(stronger, resize=True, window=config.data.resize)
        wider = sized_backbone(config.data.resize, channels, classes, RESIZED_FEATURES)
        return PlainNetwork(wider, resize=True)
    narrow = sized_backbone(window, channels, classes)
    backbone = stronger or narrow
    if network.name == "cnn":
        cost = len(grid) * multiplications(narrow)
        plain = stronger or equal_cost_backbone(FIELD * window, channels, classes, cost)
        single = ScaleGrid.of(config.training_scale)
        return ScaleChannelNetwork(plain, single, MaxOverScales(), FIELD * window, antialias=True)
    pool = POOLS[network.name].over(len(grid), classes)
    if network.look == "everywhere":
        return _everywhere(backbone, grid, pool, window, config, antialias=True)
    return ScaleChannelNetwork(
        backbone, grid, pool, window, antialias=True, blur=network.blur, shifts=network.shifts
    )


def _grid(network: ResolvedNetwork) -> ScaleGrid:
    return ScaleGrid(network.low, network.high, ratio=network.ratio)
