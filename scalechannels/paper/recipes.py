"""The configurations that the paper's experiments vary.

They are those of the paper; where it leaves something open, the choice is stated here or in
`experiments.toml`. Few samples: the recipe for 10,000 images, which come as often as needed: 20 epochs of 625
steps for every size of the training set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, Literal

from scalechannels.scales import ScaleGrid
from scalechannels.training.config import DataConfig, DataName, NetworkName, RunConfig, TrainingConfig

Train = Literal["tr1", "tr2", "tr4", "tr14"]
TRAINED: dict[Train, tuple[float, ...]] = {"tr1": (1.0,), "tr2": (2.0,), "tr4": (4.0,), "tr14": (1.0, 4.0)}
SINGLE: tuple[Train, ...] = ("tr1", "tr2", "tr4")
NETWORKS: dict[NetworkName, str] = {
    "fovavg": "FovAvg",
    "fovmax": "FovMax",
    "fovconc": "FovConc",
    "swmax": "SWMax",
    "cnn": "CNN",
}
"""The paper's networks, in the order of its table, and how it writes them."""
WRITTEN: dict[NetworkName, str] = {**NETWORKS, "fovlse": "FovLSE"}
"""All networks of the experiments, as tables and figures write them."""
ROOT2, ROOT4 = 2**0.5, 2**0.25
SAMPLES = (100, 300, 1_000, 3_000, 10_000)
EPOCH_IMAGES = 10_000
THIRD = 2 ** (1 / 3)
PLACED: dict[str, tuple[float, ...]] = {
    "size 1": (1.0,),
    "lower third": (0.5, 1 / THIRD),
    "middle third": (1 / THIRD, THIRD),
    "upper third": (THIRD, 2.0),
    "all sizes": (0.5, 2.0),
}
"""What networks for objects anywhere are trained on; thirds of the range are so on a logarithmic scale."""
AVERAGED: dict[str, Any] = {"smoothing": 0.1, "average": 0.999, "average_corrected": False}
"""Smoothed targets and averaged weights, as the committed runs have them."""


def seeded(config: RunConfig, seed: int) -> RunConfig:
    return replace(config, training=replace(config.training, seed=seed))


def scales_of(config: RunConfig) -> list[float]:
    """The scales of a network's channels; the plain CNN has one view."""
    network = config.resolve().network
    return [1.0] if network.name == "cnn" else list(ScaleGrid(network.low, network.high, ratio=network.ratio))


def _run(data: DataName, network: NetworkName, **options: Any) -> RunConfig:
    """The recipe in place of every None, so that equal runs are equal; the precision is the device's.

    options   of the data, the training or the network: which of these, their names tell. The pooling over
              places is `over_places`, since `places` is where the objects are
    """
    sections: dict[str, dict[str, Any]] = {
        "data": {"name": data},
        "training": {},
        "network": {"name": network},
    }
    known = {field.name: "data" for field in fields(DataConfig)}
    known |= {field.name: "training" for field in fields(TrainingConfig)}
    for option, value in options.items():
        name = "places" if option == "over_places" else option
        sections[known.get(option, "network")][name] = value
    values = RunConfig.from_dict(sections).resolve().as_dict()
    values["training"]["precision"] = None
    return RunConfig.from_dict(values)


def mnist(network: NetworkName, train: Train | Sequence[float], **options: Any) -> RunConfig:
    """A run on MNIST Large Scale by the paper's recipe."""
    sizes = TRAINED[train] if isinstance(train, str) else train
    return _run("mnist", network, sizes=sizes, **options)


def main(network: NetworkName, train: Train) -> RunConfig:
    """A run of table 1: 17 channels on [1/2, 8], but FovConc 3 on [1, 4] for single sizes."""
    narrow = {"low": 1.0, "high": 4.0, "ratio": 2.0} if network == "fovconc" and train != "tr14" else {}
    return mnist(network, train, **narrow)


def few(network: NetworkName, samples: int) -> RunConfig:
    """A run on few digits of sizes in [1, 4]."""
    return mnist(network, "tr14", samples=samples, images=EPOCH_IMAGES)


def cifar(network: NetworkName, ratio: float = ROOT4, **options: Any) -> RunConfig:
    return _run("cifar10", network, ratio=ratio, **options)


def better(train: Train, samples: int | None = None, *, width: int = 1, shifts: int = 0) -> RunConfig:
    """FovLSE with what won on the validation set: see docs/notebook.md."""
    network = {"antialias": True, "width": width, "shifts": shifts}
    images = None if samples is None else EPOCH_IMAGES
    return mnist("fovlse", train, **network, **AVERAGED, visible=0.5, samples=samples, images=images)


def better_cifar() -> RunConfig:
    """FovLSE with what won on the validation images of CIFAR-10, 5 channels: see docs/notebook.md."""
    return cifar("fovlse", ROOT2, antialias=True, **AVERAGED, visible=0.5, detail=0.5)


def residual(network: NetworkName, *, epochs: int = 60, **options: Any) -> RunConfig:
    """A stronger backbone, trained with random flips and crops, which the paper does not use."""
    training = {"epochs": epochs, "period": epochs, "floor": 0.0, "flips": True, "crops": 4}
    return cifar(network, ROOT2, backbone="residual", **training, **options)


def residual_cifar(network: Literal["cnn", "fovavg", "fovlse"]) -> RunConfig:
    """The same, wide. FovLSE has what won; the others have smoothed targets and averaged weights as well."""
    own: dict[str, Any] = {"antialias": True, "visible": 0.5, "detail": 0.5} if network == "fovlse" else {}
    return residual(network, width=2, **AVERAGED, **own)


def placed(network: NetworkName, train: str, places: str = "anywhere", **options: Any) -> RunConfig:
    """A run on 500 digits of MNIST, which come 16 times each at other places (and sizes) of 64 x 64 images.

    Places and sizes are drawn again in every epoch, where there is something to draw: training on all sizes
    is augmentation by scale. All networks have the same images, epochs and schedule, and what 500 digits ask
    for: they are turned and stretched, targets are smoothed and weights averaged. SWMax has the paper's
    batch and rate, as it does not converge in few large steps. Chosen on validation images with the network
    that looks everywhere, see docs/anywhere.md.
    """
    sizes = PLACED[train]
    recipe: dict[str, Any] = {"batch": 128, "low": 0.5, "high": 4.0, "ratio": ROOT2}
    if network == "swmax":
        recipe["batch"] = 16
    data = {"places": places, "side": 64, "samples": 8_000, "distinct": 500}
    redraw = places == "anywhere" or len(sizes) > 1
    training = {"epochs": 30, "schedule": "cosine", "period": 30, "rotation": 20.0, "stretch": 0.3}
    training |= {"smoothing": 0.1, "average": 0.99}
    return _run("mnist", network, sizes=sizes, redraw=redraw, **{**recipe, **data, **training, **options})


RECIPES: dict[str, Callable[..., RunConfig]] = {
    recipe.__name__: recipe
    for recipe in (mnist, main, few, cifar, better, better_cifar, residual, residual_cifar, placed)
}
"""By the names that `experiments.toml` has for them."""
