"""What `train` uses where you say nothing: rows of docs/evidence.md, so that its numbers are theirs.

digits      "averaged, cropped": smoothed targets and averaged weights; foveated networks also see objects
            that reach beyond the picture. The CNN: "all sizes, averaged"
CIFAR-10    "whole", with the residual backbone. A plain CNN on one size: "averaged, cropped, blurred"; on
            several: "averaged, rescaled". With the paper's backbone the same ingredients, and the paper's
            schedule
emoji       windows are anti-aliased, as for CIFAR-10

Limit: these are all the data and networks that the ingredients were measured with. Other networks and data
keep the paper's recipe, and your own images have one that is chosen from them (`own_images.py`).
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

from scalechannels.training.config.network import NetworkConfig
from scalechannels.training.config.run import RunConfig
from scalechannels.training.config.training import TrainingConfig

Section = TypeVar("Section")
MEASURED = ("fovavg", "fovmax", "fovlse", "cnn")
"""The networks that the evidence is about."""
ALL = 50_000
"""Training images of MNIST, and of CIFAR-10."""
LONGEST = 0.999
"""The decay of the average, for as many steps as the paper's recipe has."""
SHARE = 10
"""The average spans one step in so many, at most: else it would hold weights from the beginning."""
RESIDUAL_EPOCHS = 60


def recommended(config: RunConfig) -> RunConfig:
    """The run with the recommended recipe in place of what is open; nothing that was said is changed."""
    data = config.data
    if config.network.name not in MEASURED:
        return config
    if data.about.smooth:
        return _digits(config)
    if data.name == "cifar10" and not data.placed:
        return _photographs(config)
    foveated = config.network.name != "cnn" and config.network.look == "centre"
    return _filled(config, {"antialias": True}) if data.name == "emoji" and foveated else config


def _digits(config: RunConfig) -> RunConfig:
    network, data = config.network, config.data
    cropped = network.name != "cnn" and network.look == "centre" and data.places == "centre"
    return _averaged(_filled(config, {}, {"visible": 0.5} if cropped else {}))


def _photographs(config: RunConfig) -> RunConfig:
    network = config.network
    foveated, backbone = network.name != "cnn", network.backbone or "residual"
    of_network: dict[str, Any] = {"backbone": backbone, "ratio": 2**0.5} | (
        {"antialias": True} if foveated else {}
    )
    if backbone == "efficientnet-lite0" or network.look == "everywhere":  # nobody has tried more with these
        return _filled(config, {"antialias": True} if foveated and network.look == "centre" else {})
    training: dict[str, Any] = {}
    if foveated or len(config.data.sizes) == 1:
        training = {"visible": 0.5, "detail": 0.5}
    if backbone == "residual":
        epochs = config.training.epochs or RESIDUAL_EPOCHS
        training |= {"epochs": epochs, "period": epochs, "floor": 0.0, "flips": True, "crops": 4}
    return _averaged(_filled(config, of_network, training))


def _averaged(config: RunConfig) -> RunConfig:
    """With smoothed targets and averaged weights; the number of epochs is known."""
    return _filled(config, {}, {"smoothing": 0.1, "average": decay(_steps(config))})


def decay(steps: int) -> float:
    """Of the averaged weights, for a training of so many steps."""
    return max(0.0, min(LONGEST, round(1 - SHARE / steps, 3)))


def _steps(config: RunConfig) -> int:
    """Of the training, as far as it is known before the data are opened."""
    resolved = config.resolve()
    images = resolved.training.images or resolved.data.samples or ALL
    return resolved.training.epochs * -(-images // resolved.training.batch)


def _filled(config: RunConfig, network: dict[str, Any], training: dict[str, Any] | None = None) -> RunConfig:
    """With these options where the run has None."""
    sections: tuple[NetworkConfig, TrainingConfig] = (
        _open(config.network, network),
        _open(config.training, training or {}),
    )
    return replace(config, network=sections[0], training=sections[1])


def _open(section: Section, values: dict[str, Any]) -> Section:
    """With these values where it has None."""
    open_ones = {field.name for field in fields(section) if getattr(section, field.name) is None}  # type: ignore
    return replace(section, **{name: value for name, value in values.items() if name in open_ones})  # type: ignore
