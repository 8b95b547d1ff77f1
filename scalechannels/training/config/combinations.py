"""Which options go together: one that would do nothing, or the wrong thing, is an error before any work."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scalechannels.training.config import RunConfig


def require_combination(config: RunConfig) -> None:
    """A clear error unless the network and the training fit each other and the data."""
    _require_of_network(config)
    _require_of_data(config)
    if config.data.redraw and config.training.visible < 1:
        raise ValueError(
            "training.visible cuts objects whose size it knows, and data.redraw draws another one in each "
            "epoch; choose one of them"
        )


def _require_of_network(config: RunConfig) -> None:
    name, training = config.network.name, config.training
    if name not in ("cnn", "swmax"):
        return
    cut = training.visible < 1 and config.data.name not in ("cifar10", "folder")  # where a cnn has a window
    used = {"jitter": training.jitter > 0, "detail": training.detail < 1}
    for option, is_used in {**used, "visible": cut}.items():
        if is_used:
            raise ValueError(f"training.{option} is for foveated networks, not {name}")


def _require_of_data(config: RunConfig) -> None:
    data, network, training = config.data, config.network, config.training
    own, cifar = data.name == "folder", data.name == "cifar10"
    if not cifar:
        if network.backbone != "paper":
            raise ValueError(
                f"network.backbone {network.backbone} is for cifar10, not for {data.name}; "
                "own training loops can wrap it: fovlse(grid, backbone=ResidualBackbone(…))"
            )
        if training.flips or training.crops:
            raise ValueError(f"training.flips and training.crops are for cifar10, not for {data.name}")
    if own:
        if network.name == "swmax" or network.pretrained is not None or network.antialias:
            raise ValueError(
                "own images are learnt by foveated networks or the plain cnn, whose windows are always "
                "anti-aliased: no swmax, network.pretrained or network.antialias"
            )
        if network.width > 1 or network.average_scales:
            raise ValueError(
                "network.width and network.average_scales are for the paper's networks, not for own images"
            )
        if training.detail < 1:
            raise ValueError("training.detail is for strokes, mnist and cifar10, not for own images")
    elif network.window is not None:
        raise ValueError(f"network.window is for own images; {data.name} has a window of its own")
    if cifar:
        if network.name == "swmax":
            raise ValueError(
                "swmax looks for objects over space, which CIFAR-10 does not have; choose another"
            )
        if network.backbone == "paper" and network.width > 1:
            raise ValueError("network.width is for the MNIST and the residual backbone, not for CIFAR-10's")
        if network.backbone == "paper" and network.dropout:
            raise ValueError(
                "network.dropout is for the MNIST and the residual backbone; CIFAR-10's has none"
            )
        if training.jitter:
            raise ValueError("training.jitter is for windows in memory; cifar10 has training.crops")
    if network.average_scales and (cifar or len(data.sizes) > 1):
        raise ValueError("network.average_scales is for a network that learns from digits of one size")
