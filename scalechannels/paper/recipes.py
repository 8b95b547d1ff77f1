"""What an experiment is made of, and the configurations that the paper's experiments vary.

The configurations are those of the paper; where it leaves something open, the choice is stated here:
- few samples: the recipe for 10,000 images, which come as often as needed: 20 epochs of 625 steps for every
  size of the training set.
- SWMax with batch norm has 5 channels, ratio √2 on [1, 4], as the network without that it is compared with,
  and starts at the rate of the other networks, 3e-3: the paper lowers it for the network without.
- a pretrained channel is the one of the training size, trained alone; the others take its weights.
- equalised blur: 2/3 window pixels squared, what bilinear interpolation has at the smallest scale, 1/2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from scalechannels.scales import ScaleGrid
from scalechannels.training.config import (
    DataConfig,
    NetworkConfig,
    NetworkName,
    RunConfig,
    TrainingConfig,
)

Renderer = Literal["table", "ranking", "curves", "samples", "selection", "pictures", "windows", "code"]
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
ROOT2, ROOT4 = 2**0.5, 2**0.25
SAMPLES = (100, 300, 1_000, 3_000, 10_000)
EPOCH_IMAGES = 10_000
EQUAL_BLUR = 2 / 3
AVERAGED: dict[str, Any] = {"smoothing": 0.1, "average": 0.999, "average_corrected": False}
"""Smoothed targets and averaged weights, as the committed runs have them."""
OURS = "not in the paper"
"""Where our own experiments stand."""


@dataclass(frozen=True)
class Curve:
    """What one line shows: a configuration of seed 0, or several along an axis."""

    label: str
    configs: tuple[RunConfig, ...]
    reference: bool = False
    """Drawn dashed and grey, to compare with."""
    colour: int | None = None
    """Its place among the colours; by default its place in the panel."""
    dashed: bool = False

    def runs(self, seeds: int) -> tuple[RunConfig, ...]:
        return tuple(seeded(config, seed) for config in self.configs for seed in range(seeds))


@dataclass(frozen=True)
class Panel:
    """Curves that share axes."""

    title: str
    curves: tuple[Curve, ...]
    shown: tuple[float, float] = (0.0, 100.0)
    """The accuracies that the vertical axis spans."""


@dataclass(frozen=True)
class Experiment:
    """A table, a figure, or a statement of the text."""

    id: str
    title: str
    renderer: Renderer
    panels: tuple[Panel, ...] = ()
    caption: str = ""
    seeds: int = 1
    tested: tuple[tuple[float, float], ...] = ()
    """Test sets with all sizes of a range, beside those at every single size."""
    over: str = ""
    """The range of test sizes that a ranking is about."""
    where: str = ""
    """Its section, where it has no number of its own."""

    @property
    def place(self) -> str:
        """Where it stands in the paper: Figure 5."""
        return self.where or self.id.capitalize().replace("Table", "Table ").replace("Figure", "Figure ")

    @property
    def is_table(self) -> bool:
        return self.renderer in ("table", "ranking")

    def runs(self, seeds: int | None = None) -> tuple[RunConfig, ...]:
        """Its runs, each once, by default with its own number of seeds."""
        count = self.seeds if seeds is None else seeds
        if count < 1:
            raise ValueError(f"at least one seed is needed, got {count}")
        curves = (curve for panel in self.panels for curve in panel.curves)
        return tuple(dict.fromkeys(run for curve in curves for run in curve.runs(count)))


def seeded(config: RunConfig, seed: int) -> RunConfig:
    return replace(config, training=replace(config.training, seed=seed))


def scales_of(config: RunConfig) -> list[float]:
    """The scales of a network's channels; the plain CNN has one view."""
    network = config.resolve().network
    assert network.low is not None
    assert network.high is not None
    return [1.0] if network.name == "cnn" else list(ScaleGrid(network.low, network.high, ratio=network.ratio))


def _run(data: DataConfig, network: NetworkConfig, training: TrainingConfig | None = None) -> RunConfig:
    """The recipe in place of every None, so that equal runs are equal; the precision is the device's."""
    config = RunConfig(data, network, training or TrainingConfig())
    values = config.resolve().as_dict()
    values["training"]["precision"] = config.training.precision
    return RunConfig.from_dict(values)


def mnist(name: NetworkName, train: Train | tuple[float, ...], **network: Any) -> RunConfig:
    """A run on MNIST Large Scale by the paper's recipe."""
    sizes = TRAINED[train] if isinstance(train, str) else train
    return _run(DataConfig("mnist", sizes), NetworkConfig(name, **network))


def main(name: NetworkName, train: Train) -> RunConfig:
    """A run of table 1: 17 channels on [1/2, 8], but FovConc 3 on [1, 4] for single sizes."""
    narrow = {"low": 1.0, "high": 4.0, "ratio": 2.0} if name == "fovconc" and train != "tr14" else {}
    return mnist(name, train, **narrow)


def few(name: NetworkName, samples: int) -> RunConfig:
    """A run on few digits of sizes in [1, 4]."""
    data = DataConfig("mnist", TRAINED["tr14"], samples=samples)
    return _run(data, NetworkConfig(name), TrainingConfig(images=EPOCH_IMAGES))


def unnormed() -> RunConfig:
    """SWMax with 5 channels, that the two with batch norm are compared with."""
    return mnist("swmax", "tr2", low=1.0, high=4.0, ratio=ROOT2)


def normed(batch_norm: Literal["joint", "each"]) -> RunConfig:
    """SWMax with one of the two batch norms, 5 channels."""
    network = NetworkConfig("swmax", low=1.0, high=4.0, ratio=ROOT2, batch_norm=batch_norm)
    return _run(DataConfig("mnist", TRAINED["tr2"]), network, TrainingConfig(rate=3e-3))


def cifar(name: NetworkName, ratio: float = ROOT4) -> RunConfig:
    return _run(DataConfig("cifar10"), NetworkConfig(name, ratio=ratio))


def all_sizes() -> RunConfig:
    """The plain CNN with augmentation by scale: every image at another size in each epoch."""
    return _run(DataConfig("mnist", (0.5, 8.0), redraw=True), NetworkConfig("cnn"))


def better(train: Train, samples: int | None = None, *, width: int = 1, shifts: int = 0) -> RunConfig:
    """FovLSE with what won on the validation set: see docs/notebook.md."""
    images = None if samples is None else EPOCH_IMAGES
    return _run(
        DataConfig("mnist", TRAINED[train], samples=samples),
        NetworkConfig("fovlse", antialias=True, width=width, shifts=shifts),
        TrainingConfig(**AVERAGED, visible=0.5, images=images),
    )


def better_cifar() -> RunConfig:
    """FovLSE with what won on the validation images of CIFAR-10, 5 channels: see docs/notebook.md."""
    return _run(
        DataConfig("cifar10"),
        NetworkConfig("fovlse", ratio=ROOT2, antialias=True),
        TrainingConfig(**AVERAGED, visible=0.5, detail=0.5),
    )


def residual_cifar(name: Literal["cnn", "fovavg", "fovlse"]) -> RunConfig:
    """A stronger backbone, trained with random flips and crops, which the paper does not use.

    FovLSE has what won. The others have what helps any network (smoothed targets, averaged weights, flips,
    crops), so that these do not make the difference.
    """
    ours = name == "fovlse"
    own: dict[str, Any] = {"visible": 0.5, "detail": 0.5} if ours else {}
    recipe = {"epochs": 60, "period": 60, "floor": 0.0, **AVERAGED}
    return _run(
        DataConfig("cifar10"),
        NetworkConfig(name, ratio=ROOT2, antialias=ours, backbone="residual", width=2),
        TrainingConfig(flips=True, crops=4, **recipe, **own),
    )
