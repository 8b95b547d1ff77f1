"""What a run is: frozen dataclasses whose fields are the options of the command line and of the config file.

`RunConfig` is what the user said: a field that is None takes the paper's recipe for the network and the data.
`resolve` fills these in and gives a `ResolvedRun`, which is what is trained, saved and compared. A run's name
is derived from all of its fields.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from typing_extensions import Self

from scalechannels.rivals.named import source_checksum
from scalechannels.scales import ScaleGrid
from scalechannels.training.config.data import OBJECTS, DataConfig
from scalechannels.training.config.network import RATIO, NetworkConfig, NetworkName, ResolvedNetwork
from scalechannels.training.config.options import changed, filled, from_dict, read_toml, refuse, to_toml
from scalechannels.training.config.training import FLOOR, ResolvedTraining, TrainingConfig


@dataclass(frozen=True)
class RunConfig:
    """A whole run, as the user said it."""

    data: DataConfig = field(default_factory=DataConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def resolve(self, device: str = "cpu", looked: Any = None) -> ResolvedRun:
        """The same run with the recipe in place of every None; own images are read for that.

        looked     own images that were read before, see `chosen_from_images`
        """
        data, network, training, about = self.data, self.network, self.training, self.data.about
        self._require_combination()
        if about.of_user:
            from scalechannels.training.config.own_images import chosen_from_images

            data, network, training = chosen_from_images(data, network, training, looked)
        side = about.image if data.placed else None
        objects = None if data.find is None else OBJECTS
        data = filled(DataConfig, data, samples=about.samples, side=side, objects=objects)
        everywhere = network.look == "everywhere" and not about.of_user
        sliding: dict[str, Any] = {"centred": True} if everywhere else {}
        if network.name == "swmax":
            sliding = {"margin": 8, "centred": True, "drop_features": True}
        fovconc = network.name == "fovconc" and not about.of_user
        resolved = filled(
            ResolvedNetwork,
            network,
            low=about.low,
            high=about.high,
            dropout=0.0 if network.is_module else about.dropout,  # a module has its own
            ratio=RATIO,
            backbone="paper",
            antialias=False,
            checksum=self._source_checksum(),
            initialisation="glorot" if fovconc else "central" if everywhere else None,
            **sliding,
        )
        low, high = resolved.low, resolved.high
        refuse(low > high, f"network.low must not exceed network.high; got {low:g} and {high:g}")
        try:
            grid = ScaleGrid(low, high, ratio=resolved.ratio)
        except ValueError as error:
            raise ValueError(f"network.low, network.high and network.ratio do not fit: {error}") from error
        alone = network.pretrained
        refuse(
            alone is not None and not any(math.isclose(alone, scale, rel_tol=1e-6) for scale in grid),
            f"network.pretrained must be the scale of a channel, {grid.minimum:g} to {grid.maximum:g} in "
            f"steps of {resolved.ratio:.5g}; got {alone}",
        )
        schedule = training.schedule or about.schedule
        return ResolvedRun(
            data,
            resolved,
            filled(
                ResolvedTraining,
                training,
                epochs=about.epochs,
                batch=about.batch,
                rate=3e-4 if network.name == "swmax" else about.rate,
                schedule=schedule,
                period=2 if schedule == "step" else about.period or training.epochs or about.epochs,
                floor=FLOOR,
                precision="bfloat16" if device.startswith("cuda") else "float32",
                smoothing=0.0,
                average=0.0,
                average_corrected=bool(training.average),
                visible=1.0,
                detail=1.0,
                flips=False,
                crops=0,
                class_weights="none",
            ),
        )

    def _source_checksum(self) -> str | None:
        """Of the file of a user's own module, an error where it has changed since the run began."""
        network = self.network
        if not network.is_module:
            return None
        found = source_checksum(network.name, network.file)
        refuse(
            network.checksum not in (None, found),
            f"'{network.file or network.name}' is not the file that this run began with (its checksum "
            "differs): put the old one back, or start a new run without the old run's config file",
        )
        return found

    def _require_combination(self) -> None:
        """An error for options that would do nothing, or the wrong thing, together."""
        data, network, training, name = self.data, self.network, self.training, self.network.name
        about, backbone = data.about, self.network.backbone or "paper"
        refuse(
            training.jitter > 0
            and (
                about.filled
                or name in ("cnn", "swmax")
                or network.is_module
                or network.look == "everywhere"
                or training.flips
                or bool(training.crops)
                or training.rotation > 0
                or training.stretch > 0
                or training.colour > 0
            ),
            "training.jitter works only with foveated networks, not with cifar10, and not together with "
            "training.flips, crops, rotation, stretch or colour; use training.crops instead",
        )
        refuse(
            training.decoys > 1 and network.look != "everywhere",
            "training.decoys needs --network.look everywhere",
        )
        refuse(
            training.colour > 0 and about.values != "unit",
            f"training.colour changes the light of photographs, and {about.title} has none; remove it",
        )
        refuse(
            (training.visible or 1) < 1 and data.places == "anywhere",
            "training.visible crops about the centre of the image, and the objects are anywhere; remove it",
        )
        refuse(
            (about.filled or about.backbone == "cifar10") and name == "swmax",
            f"swmax searches for small objects in large images; {about.title} has none. "
            "Choose another network",
        )
        if about.backbone == "cifar10":
            if backbone == "paper":
                larger = name == "cnn" and not about.filled
                refuse(
                    larger,
                    "the plain CNN of CIFAR-10 takes its 32x32 images; add --network.backbone residual",
                )
                refuse(network.width > 1, "network.width is not for the paper's backbone of CIFAR-10")
                refuse(bool(network.dropout), "network.dropout is not for the paper's backbone of CIFAR-10")
        else:
            refuse(
                backbone != "paper" and not about.of_user,
                f"network.backbone {backbone} works only with cifar10, emoji and your own images; got "
                f"{data.name}. In your own training loop you can use it: fovlse(grid, "
                "backbone=ResidualBackbone(…))",
            )
        weighted = backbone == "efficientnet-lite0"
        refuse(weighted and network.width > 1, "network.width is not for efficientnet-lite0; remove it")
        given = weighted and network.initialisation is not None
        refuse(given, "network.initialisation would overwrite the weights from ImageNet; remove it")
        if about.of_user:
            least = 32 if weighted else 11
            side = least if network.window is None else network.window
            refuse(not least <= side <= 256, f"network.window must be from {least} to 256 pixels; got {side}")
            padded = backbone != "paper" and network.look == "everywhere"
            refuse(padded, f"network.look everywhere needs a backbone without padding, not {backbone}")
            single = network.pretrained is not None
            unfit = name == "swmax" or network.is_module
            refuse(unfit, f"your own images need a foveated network or cnn; got network.name {name}")
            refuse(single, "network.pretrained does not apply to your own images; remove it")
            resized = data.resize is not None
            refuse(resized and name != "cnn", f"data.resize needs network.name cnn; got {name}")
            if resized:
                side = data.resize or 0
                refuse(
                    not least <= side <= 256, f"data.resize must be from {least} to 256 pixels; got {side}"
                )
            refuse(network.width > 1, "network.width does not apply to your own images; remove it")
            averaged = network.average_scales
            refuse(averaged, "network.average_scales does not apply to your own images; remove it")
        else:
            given = network.window is not None
            refuse(given, "network.window is only for your own images; remove it")
            refuse(
                bool(network.antialias) and name in ("swmax", "cnn"),
                f"network.antialias works only with foveated networks; got {name}",
            )
        refuse(
            training.pretrained_share != 0.1 and backbone != "efficientnet-lite0",
            "training.pretrained_share needs --network.backbone efficientnet-lite0, which has such weights",
        )
        refuse(
            training.patience is not None and not about.of_user,
            f"training.patience works only with your own images; got {data.name}",
        )
        refuse(
            training.patience is not None and data.checksum is not None and data.test is None,
            "training.patience needs validation images beside those of the test, and this run of an earlier "
            "version has none; start a new one without its config file",
        )
        refuse(
            network.average_scales and len(data.sizes) > 1,
            "network.average_scales is for a network that is trained on one size",
        )

    @property
    def learnt(self) -> Self:
        """The run that trains the same weights: runs that differ only in how they are tested share it.

        It matters for runs that are trained in one call; a finished run is not looked up.
        """
        return replace(self, network=replace(self.network, shifts=0, average_scales=False))

    @property
    def shape(self) -> Self:
        """What runs have in common that can be trained as one.

        Beside the training images and the seed these may differ: a pool without weights, how the windows are
        sampled and count, the first weights, the targets and what each class weighs, the averaging, what is
        done to the windows, and the testing.
        """
        pooled = not (self.network.name in ("fovconc", "swmax", "cnn") or self.network.is_module)
        name: NetworkName = "fovavg" if pooled else self.network.name
        samples = self.data.samples if self.training.images is None else None
        sizes = (0.5, 1.0) if self.data.redraw else (1.0,)  # which all data have
        network = self.learnt.network
        return replace(
            self,
            data=replace(self.data, sizes=sizes, seed=0, samples=samples),
            network=replace(
                network, name=name, initialisation=None, antialias=False, blur=None, area_power=0.0
            ),
            training=replace(
                self.training,
                seed=0,
                smoothing=0.0,
                average=0.0,
                average_corrected=False,
                visible=1.0,
                detail=1.0,
                jitter=0,
                class_weights="none",
            ),
        )

    @property
    def step(self) -> Self:
        """What runs have in common whose steps do the same, on other images and from other weights."""
        sizes = (0.5, 1.0) if self.data.redraw else (1.0,)  # which all data have
        data = replace(self.data, sizes=sizes, seed=0)
        return replace(self, data=data, training=replace(self.training, seed=0))

    @property
    def name(self) -> str:
        """Readable, and unique: it ends with a digest of every field that is not at its default.

        So a field that a later version adds leaves the names of the runs that do not use it.
        """
        sizes = "-".join(f"{size:g}" for size in self.data.sizes)
        canonical = RunConfig.from_dict(self.as_dict())  # 2 and 2.0 are the same size
        digest = hashlib.sha256(json.dumps(changed(canonical), sort_keys=True).encode()).hexdigest()[:8]
        return f"{self.network.label}-{self.data.name}-tr{sizes}-seed{self.training.seed}-{digest}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The run of a nested dictionary; unknown keys and wrong types are errors."""
        return from_dict(cls, values)

    def to_toml(self) -> str:
        return to_toml(self.as_dict())

    @classmethod
    def from_toml(cls, path: Path | str) -> Self:
        """The run of a config file."""
        values = read_toml(path)
        try:
            return cls.from_dict(values)
        except ValueError as error:
            raise ValueError(f"'{path}': {error}") from error


@dataclass(frozen=True)
class ResolvedRun(RunConfig):
    """A run in which nothing is open: only these are trained, saved and compared."""

    data: DataConfig
    network: ResolvedNetwork
    training: ResolvedTraining

    @property
    def window(self) -> int:
        """Own images: the side of a channel's window in pixels."""
        if self.network.window is None:
            raise ValueError(f"{self.data.name} has a window of its own, own images have network.window")
        return self.network.window

    @property
    def training_scale(self) -> float:
        """Own images: σ of the channel whose window an object of the training size fills."""
        return self.data.own.object_pixels / self.window
