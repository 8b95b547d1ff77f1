"""From a NetworkConfig to a network with fresh weights."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from scalechannels.backbones.paper import CifarBackbone, ConvBackbone
from scalechannels.backbones.residual import ResidualBackbone
from scalechannels.constructors import Data, PaperOptions, cnn, fovavg, fovconc, fovlse, fovmax, swmax
from scalechannels.plain import PlainNetwork, averaged_over_scales
from scalechannels.saving.saved_network import Network
from scalechannels.scales import ScaleGrid
from scalechannels.training.config import Initialisation, RunConfig
from scalechannels.training.own_network import own_network

RESIDUAL_FEATURES = 32
"""Of the residual backbone's first convolution, at the width 1."""


def build_network(config: RunConfig, channels: int | None = None, classes: int = 10) -> Network:
    """The network of a resolved configuration, its weights drawn from the training's seed."""
    network = config.network
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.training.seed)
        made = _build(config, channels, classes)
        if network.initialisation is not None and network.initialisation != "torch":
            torch.manual_seed(config.training.seed)
            _initialise(made, network.initialisation)
    for module in made.modules():
        if isinstance(module, nn.Dropout):
            module.p = network.dropout or 0.0
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


def tested_network(config: RunConfig, trained: Network) -> Network:
    """What is evaluated and kept of a run: the trained network as it is to be tested.

    So with all channels where one was trained, with shifted windows, or averaged over scales.
    """
    if config.network.average_scales:
        assert isinstance(trained, PlainNetwork)
        sizes = ScaleGrid(config.network.low or 1, config.network.high or 1, ratio=config.network.ratio)
        return averaged_over_scales(trained, sizes, config.data.sizes[0])
    if config.network.pretrained is None and not config.network.shifts:
        return trained
    backbone = trained.backbone
    assert isinstance(backbone, ConvBackbone | CifarBackbone | ResidualBackbone)
    whole = replace(config, network=replace(config.network, pretrained=None))
    made = build_network(whole, backbone.channels, backbone.classes)
    made.load_state_dict(trained.state_dict())  # the channels share all weights, so they are the same
    return made.to(next(trained.parameters()).device)


def _build(config: RunConfig, channels: int | None, classes: int) -> Network:
    network = config.network
    if config.data.name == "folder":
        return own_network(config, channels, classes)
    data: Data = "cifar10" if config.data.name == "cifar10" else "mnist"
    backbone: ResidualBackbone | None = None
    if network.backbone == "residual":
        backbone = ResidualBackbone(
            RESIDUAL_FEATURES * network.width, channels=channels or 3, classes=classes
        )
    if network.name == "cnn":
        return PlainNetwork(backbone) if backbone else cnn(data=data, channels=channels, classes=classes)
    if network.low is None or network.high is None:
        raise ValueError("resolve the configuration first")
    grid = ScaleGrid(network.low, network.high, ratio=network.ratio)
    if network.pretrained is not None:
        grid = ScaleGrid.of(network.pretrained)
    if network.name == "swmax":
        return swmax(
            grid,
            channels=channels or 1,
            classes=classes,
            norm=network.batch_norm,
            margin=network.margin or 0,
            centred=bool(network.centred),
            drop_features=bool(network.drop_features),
        )
    options: PaperOptions = {
        "data": data,
        "classes": classes,
        "antialias": network.antialias,
        "blur": network.blur,
        "shifts": network.shifts,
    }
    if backbone is not None:
        options["backbone"] = backbone
    else:
        options["width"] = network.width
        if channels is not None:
            options["channels"] = channels
    constructor = {"fovavg": fovavg, "fovmax": fovmax, "fovlse": fovlse, "fovconc": fovconc}[network.name]
    return constructor(grid, **options)
