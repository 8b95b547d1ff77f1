"""Which options go together: one that would do nothing, or the wrong thing, is an error before any work."""

from __future__ import annotations

from scalechannels.training.config.checks import refuse
from scalechannels.training.config.data import DataConfig
from scalechannels.training.config.network import NetworkConfig
from scalechannels.training.config.training import TrainingConfig


def require_combination(data: DataConfig, network: NetworkConfig, training: TrainingConfig) -> None:
    """A clear error unless the network and the training fit each other and the data."""
    own, cifar = data.name == "folder", data.name == "cifar10"
    paper, name = network.backbone == "paper", network.name
    foveated = name not in ("cnn", "swmax")
    refuse(
        *(
            (not foveated and used, f"training.{option} is for foveated networks, not {name}")
            for option, used in {
                "jitter": training.jitter > 0,
                "detail": training.detail < 1,
                "visible": training.visible < 1 and not (cifar or own),  # where a cnn has a window
            }.items()
        ),
        (
            not cifar and not paper,
            f"network.backbone {network.backbone} is for cifar10, not for {data.name}; "
            "own training loops can wrap it: fovlse(grid, backbone=ResidualBackbone(…))",
        ),
        (
            not cifar and (training.flips or training.crops > 0),
            f"training.flips and training.crops are for cifar10, not for {data.name}",
        ),
        (
            own and (name == "swmax" or network.pretrained is not None or network.antialias),
            "own images are for foveated networks or the plain cnn, whose windows are always "
            "anti-aliased: no swmax, network.pretrained or network.antialias",
        ),
        (
            own and (network.width > 1 or network.average_scales),
            "network.width and network.average_scales are for the paper's networks, not for own images",
        ),
        (
            own and training.detail < 1,
            "training.detail is for strokes, mnist and cifar10, not for own images",
        ),
        (
            not own and network.window is not None,
            f"network.window is for own images; {data.name} has a window of its own",
        ),
        (
            cifar and name == "swmax",
            "swmax looks for objects over space, which CIFAR-10 does not have; choose another",
        ),
        (
            cifar and paper and network.width > 1,
            "network.width is for the MNIST and the residual backbone, not for CIFAR-10's",
        ),
        (
            cifar and paper and bool(network.dropout),
            "network.dropout is for the MNIST and the residual backbone; CIFAR-10's has none",
        ),
        (
            cifar and training.jitter > 0,
            "training.jitter is for windows in memory; cifar10 has training.crops",
        ),
        (
            network.average_scales and (cifar or len(data.sizes) > 1),
            "network.average_scales is for a network that is trained on digits of one size",
        ),
        (
            data.redraw and training.visible < 1,
            "training.visible crops objects whose size it knows, and data.redraw draws another one in each "
            "epoch; choose one of them",
        ),
    )
