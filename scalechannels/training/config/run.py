"""What a run is: frozen dataclasses whose fields are the options of the command line and of the config file.

A field that is None takes the paper's recipe for the network and the data; `resolve` fills it in, and only
resolved configurations are trained, saved and compared. A run's name is derived from all of its fields.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scalechannels.scales import ScaleGrid
from scalechannels.training.config.combinations import require_combination
from scalechannels.training.config.data import DataConfig
from scalechannels.training.config.network import NetworkConfig, NetworkName
from scalechannels.training.config.options import (
    changed,
    filled,
    from_dict,
    read_toml,
    to_toml,
    without_retired,
)
from scalechannels.training.config.training import TrainingConfig


@dataclass(frozen=True)
class RunConfig:
    """A whole run."""

    data: DataConfig = field(default_factory=DataConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def resolve(self, device: str = "cpu") -> RunConfig:
        """The same run with the paper's recipe in place of every None; own images are looked at for that."""
        require_combination(self)
        if self.data.name == "folder":
            from scalechannels.training.own_images import filled_in

            return filled_in(self, device)
        cifar = self.data.name == "cifar10"
        schedule = self.training.schedule or ("cosine" if cifar else "step")
        network = filled(self.network, low=0.5, high=2.0 if cifar else 8.0, dropout=0.0 if cifar else 0.15)
        if network.name == "fovconc":
            network = filled(network, initialisation="glorot")
        if network.name == "swmax":
            network = filled(network, margin=8, centred=True, drop_features=True)
        ScaleGrid(network.low, network.high, ratio=network.ratio)  # an impossible one is told before any work
        rate = 1e-3 if cifar else 3e-4 if self.network.name == "swmax" else 3e-3
        return RunConfig(
            filled(self.data, samples=10_000 if self.data.name == "strokes" else None),
            network,
            filled(
                self.training,
                epochs=103 if cifar else 20,
                batch=256 if cifar else 16,
                rate=rate,
                schedule=schedule,
                period=2 if schedule == "step" else 75,
                precision="bfloat16" if device.startswith("cuda") else "float32",
            ),
        )

    @property
    def augmented(self) -> bool:
        """Whether each step sees the images in another way, so that they and not windows lie in memory."""
        training = self.training
        return self.data.name == "cifar10" and (training.flips or training.crops > 0 or training.visible < 1)

    @property
    def learnt(self) -> RunConfig:
        """The run that learns the same weights: runs that differ only in how they are tested share it.

        Where they are trained in one call; a run that is done already is not gone back to.
        """
        return dataclasses.replace(
            self, network=dataclasses.replace(self.network, shifts=0, average_scales=False)
        )

    @property
    def shape(self) -> RunConfig:
        """What runs have in common that can be trained as one.

        Beside the training images and the seed these may differ: a pool without weights, how the windows are
        sampled, the first weights, the targets, the averaging, what is done to the windows, and the testing.
        """
        pooled = self.network.name in ("fovavg", "fovmax", "fovlse")
        name: NetworkName = "fovavg" if pooled else self.network.name
        samples = self.data.samples if self.training.images is None else None
        sizes = (1.0, 2.0) if self.data.redraw else (1.0,)
        return RunConfig(
            dataclasses.replace(self.data, sizes=sizes, seed=0, samples=samples),
            dataclasses.replace(
                self.learnt.network, name=name, initialisation=None, antialias=False, blur=None
            ),
            dataclasses.replace(
                self.training, seed=0, smoothing=0.0, average=0.0, visible=1.0, detail=1.0, jitter=0
            ),
        )

    @property
    def name(self) -> str:
        """Readable, and unique: it ends with a digest of every field that is not at its default.

        So a field that a later version adds leaves the names of the runs that do not use it.
        """
        sizes = "-".join(f"{size:g}" for size in self.data.sizes)
        canonical = RunConfig.from_dict(self.as_dict())  # 2 and 2.0 are the same size
        digest = hashlib.sha256(json.dumps(changed(canonical), sort_keys=True).encode()).hexdigest()[:8]
        return f"{self.network.name}-{self.data.name}-tr{sizes}-seed{self.training.seed}-{digest}"

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RunConfig:
        """The run of a nested dictionary; unknown keys and wrong types are errors."""
        return from_dict(cls, without_retired(values), "")

    def to_toml(self) -> str:
        return to_toml(self.as_dict())

    @classmethod
    def from_toml(cls, path: Path | str) -> RunConfig:
        """The run of a config file."""
        values = read_toml(path)
        try:
            return cls.from_dict(values)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
