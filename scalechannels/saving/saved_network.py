"""A network in a folder: writing it, opening it, and everything that is needed to use it.

    model.safetensors, config.json, README.md   what `save_pretrained` writes
    config.toml, result.json                    beside them where a run trained it: its data and classes
    detector.json                               beside them where it detects: its classes and its background

config.json holds, for the network and each of its parts, {"class": name, "arguments": {…}}. The parts of this
library rebuild themselves; a user's own backbone is named there and has to be given again when loading. It
also holds the network's `usage`, which is saved with it however it was loaded; the networks of the first
edition have theirs in the files of the run or the detector.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import huggingface_hub
import safetensors.torch
import torch
from torch import nn
from typing_extensions import Self

from scalechannels.pooling import POOLS
from scalechannels.saving.usage import (
    CONFIG,
    DETECTOR,
    RESULT,
    RUN,
    WEIGHTS,
    data_of,
    numbers_of,
    read_table,
    usage_of,
    used,
)
from scalechannels.scales import ScaleGrid

SHIPPED = Path(__file__).parents[1] / "weights"
"""The networks that come with the package, each in a folder of its name."""
HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")
HUB_OPTIONS = ("revision", "cache_dir", "force_download", "local_files_only", "token")
DETECTORS = "detection.detector"
NETWORKS = {"ScaleChannelNetwork": "network", "PlainNetwork": "plain"}
FLOATS = ("F64", "F32", "F16", "BF16")
"""The types that weights may have in a file."""
PARTS = {
    "ScaleGrid": "scales",
    "ConvBackbone": "backbones.paper",
    "CifarBackbone": "backbones.paper",
    "ResidualBackbone": "backbones.residual",
    "LibraryBackbone": "backbones.zoo",
    "EfficientNetLite0": "backbones.efficientnet_lite",
    "GaussianDerivativeNetwork": "rivals.gaussian_derivatives",
    "ScaleSteerableNetwork": "rivals.steerable",
    "RieszNetwork": "rivals.riesz",
    "SpatialTransformer": "rivals.transformer",
}
"""The parts that a config may name beside the poolings, and their modules."""


class Network(
    nn.Module,
    huggingface_hub.PyTorchModelHubMixin,
    library_name="scalechannels",
    license="mit",
    pipeline_tag="image-classification",
    model_card_template=Path(__file__).with_name("model_card.md").read_text(encoding="utf-8"),
):
    """What all networks share: `save_pretrained(folder)` and `from_pretrained(folder)`."""

    look: Literal["whole", "centre", "everywhere"]
    """What it sees: the whole image at one scale, or windows at its centre or everywhere."""
    usage: dict[str, Any] | None = None
    """How it is used, see `saving/usage.py`; None where nobody has said it."""

    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments; parts are given as they are."""
        raise TypeError(f"{type(self).__name__} does not say how it is rebuilt")

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | os.PathLike[str], **options: Any) -> Self:
        """The network that `save_pretrained` wrote to this folder, or that has this name, in eval mode.

        A name is that of a shipped network, such as "fovlse-mnist", or of one on the hub, "owner/name".
        `options` are parts that only the user can build, such as backbone=MyBackbone(), those of the hub, and
        map_location.

        Example:
            >>> import tempfile
            >>> from scalechannels import ScaleChannelNetwork, ScaleGrid, fovlse
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     fovlse(ScaleGrid.of(1, 2)).save_pretrained(folder)
            ...     again = ScaleChannelNetwork.from_pretrained(folder)
            >>> again.grid
            ScaleGrid.of(1, 2)
        """
        place, device = os.fspath(pretrained_model_name_or_path), options.pop("map_location", "cpu")
        hub = {name: options.pop(name) for name in HUB_OPTIONS if name in options}
        if os.path.exists(place) or not HUB_NAME.fullmatch(place):
            folder = find_network(place)
        else:
            folder = Path(huggingface_hub.snapshot_download(place, allow_patterns=[CONFIG, WEIGHTS], **hub))
        return _rebuild(folder, options, cls).to(device)

    def _save_pretrained(self, save_directory: Path) -> None:
        from scalechannels.files import atomic_path, write_tensors, write_text

        # Copies: the file's format takes no two names for one tensor, which tied weights are.
        weights = {
            name: value.detach().clone(memory_format=torch.contiguous_format)
            for name, value in self.state_dict().items()
        }
        if broken := not_finite(self):  # saved all the same, so that a failed training can be looked into
            warnings.warn(f"{broken} is not finite: this network cannot be used", stacklevel=2)
        with atomic_path(save_directory / WEIGHTS) as path:
            write_tensors(path, weights, {"format": "pt"})
        described = describe(self)
        for name, part in described["arguments"].items():
            if isinstance(part, dict) and part.get("foreign") and part["class"].startswith("scalechannels."):
                warnings.warn(
                    f"layers of the {name} were changed after it was made, so only you can build it: to load "
                    f"this network, give it, as in scalechannels.load(…, {name}=…)",
                    stacklevel=2,
                )
        config = {**described, **({} if self.usage is None else {"usage": self.usage})}
        write_text(save_directory / CONFIG, json.dumps(config, indent=2) + "\n")


@dataclass(frozen=True)
class SavedNetwork:
    """A saved network and what its folder says of how to use it."""

    folder: Path
    network: Any
    classes: list[str] | None
    """The names of the objects; None where nothing says them."""
    background: int | None
    """The logit that means no object, for a detector."""
    values: Literal["digits", "unit"]
    """What it was trained on: −0.76 to 0.76, or 0 to 1."""
    reduce: int
    """How many times smaller it takes an image; 1 but for large objects of own images."""
    detector: dict[str, Any] | None
    """The rules of a detector that was trained on boxes."""
    sizes: tuple[float, ...] | None
    """The sizes that a run trained it on."""
    deployed: tuple[float, ...] | None
    """The pixel sizes that set the channels of a run."""
    temperature: float = 1.0
    """What logits are divided by before the softmax, so that probabilities mean what they say."""
    object_size: float | None = None
    """The size of the training objects, in pixels of the files."""
    own_scale: float | None = None
    """σ of the channel that decides for objects of that size, the median; of the reduced image."""

    @classmethod
    def open(cls, place: str | os.PathLike[str]) -> SavedNetwork:
        """The network of a folder, or a shipped one by its name; a run has to be finished.

        It computes in float32, whatever precision it was saved in: so does what reads images.
        """
        folder = find_network(place)
        is_run = (folder / RUN).exists()
        if is_run and not (folder / CONFIG).exists():
            raise FileNotFoundError(
                f"the run in '{folder}' is not finished; resume it with scalechannels train "
                f"--config {folder / RUN} --out {folder.parent}"
            )
        network: Any = _rebuild(folder, {}).float()
        if broken := not_finite(network):
            raise ValueError(
                f"'{folder / WEIGHTS}' cannot be used: {broken} is not finite; its training failed"
            )
        data = data_of(folder)
        return cls(
            folder,
            network,
            **used(network),
            sizes=numbers_of(folder, data, "sizes") or (1.0,) if is_run else None,
            deployed=numbers_of(folder, data, "deploy_pixel_sizes"),
        )

    @property
    def names(self) -> list[str] | None:
        """What every logit means: the classes and, of a detector, the background."""
        if self.classes is None or self.background is None:
            return self.classes
        return [*self.classes[: self.background], "background", *self.classes[self.background :]]

    @property
    def threshold(self) -> float:
        """The least probability of an object by default; high without a background."""
        if self.detector is not None:
            return float(self.detector["threshold"])
        return 0.9 if self.background is None else 0.5

    @property
    def grey(self) -> bool:
        """Whether it takes grey images (B, 1, H, W)."""
        return getattr(self.network.backbone, "channels", 3) == 1

    def sizes_at(self, scale: float) -> tuple[float | None, float | None]:
        """What an object measures for which the channel σ of the reduced image decides.

        In times of the training objects, and in pixels of the image; None where nobody measured it. Right to
        about half an octave.
        """
        size = scale / self.own_scale if self.own_scale else None
        return size, None if size is None or self.object_size is None else size * self.object_size

    @property
    def scales(self) -> list[float]:
        """σ of its channels, in pixels before an image is reduced; empty without channels."""
        return [scale * self.reduce for scale in getattr(self.network, "grid", ())]


def load(folder: str | os.PathLike[str], **parts: Any) -> Any:
    """The network that `save_pretrained(folder)` wrote, or a shipped one by its name, in eval mode.

    Of a detector that was trained on boxes, the whole Detector. `parts` are those that only the user can
    build, such as backbone=MyBackbone().

    Example:
        >>> import scalechannels
        >>> network = scalechannels.load("fovlse-mnist")        # a shipped network
        >>> len(network.grid), network.training
        (17, False)
    """
    network = _rebuild(find_network(folder), parts)
    if (network.usage or {}).get("detector") is None:
        return network
    return import_module(f"scalechannels.{DETECTORS}").Detector(network)


def shipped_names() -> list[str]:
    """The names of the shipped networks, in alphabetical order."""
    return sorted(path.parent.name for path in SHIPPED.glob(f"*/{CONFIG}"))


def find_network(place: str | os.PathLike[str]) -> Path:
    """The folder of a network: a path that exists as it is, else the shipped network of this name.

    Law: an own folder comes first. Limit: what lies in it is not looked at here.
    """
    path = Path(place)
    if path.exists():
        return path
    names = shipped_names()
    if os.fspath(place) in names:  # a whole name, so that no path leads out of the package's folder
        return SHIPPED / path
    raise FileNotFoundError(
        f"'{place}' is neither a folder nor a shipped network; "
        f"the shipped networks are {', '.join(names) or 'missing'}"
    )


def not_finite(network: nn.Module) -> str | None:
    """The first weight that is NaN or infinite, by its name."""
    found = (name for name, value in network.state_dict().items() if not value.isfinite().all())
    return next(found, None)


def require_free(out: Path) -> None:
    """Refuse to write over a file that belongs to a run or a saved network."""
    folder, owned = out.resolve().parent, (CONFIG, DETECTOR, "report.json", RESULT)
    if out.name.lower() in owned and any((folder / sign).exists() for sign in (RUN, WEIGHTS)):
        raise ValueError(f"'{out}' is a file of the network in '{folder}'; choose another name or folder")


def describe(part: Any) -> dict[str, Any]:
    """{"class", "arguments"} of a network and its parts; of a user's own part only the class.

    A part of ours whose layers were changed is the user's own, too: its arguments would not bring it back.
    """
    from scalechannels.saving.changed import was_changed

    name = type(part).__name__
    module = isinstance(part, nn.Module) and not isinstance(part, Network)
    # By identity, not by name: a user's own class may be called like one of ours.
    if module and (_class(name) is not type(part) or was_changed(part)):
        return {"class": f"{type(part).__module__}.{type(part).__qualname__}", "foreign": True}
    return {
        "class": name,
        "arguments": {
            key: describe(value) if isinstance(value, (nn.Module, ScaleGrid)) else value
            for key, value in part.arguments().items()
        },
    }


def of_today(config: dict[str, Any]) -> dict[str, Any]:
    """The config as of today; in the first edition, looking everywhere was a class."""
    arguments = config.get("arguments")
    if config["class"] != "SlidingWindowNetwork" or not isinstance(arguments, dict):
        return config
    pool = {"class": "MaxOverScales", "arguments": {}}
    backbone: Any = arguments.get("backbone")
    inside = backbone.get("arguments") if isinstance(backbone, dict) else None
    window = inside.get("window", 28) if isinstance(inside, dict) else 28
    more = {"pool": pool, "window": window, "look": "everywhere"}
    return {"class": "ScaleChannelNetwork", "arguments": {**arguments, **more}}


def _class(name: str) -> Any:
    """The class of this name that a config may have; None for others."""
    if home := {**NETWORKS, **PARTS}.get(name):
        return getattr(import_module(f"scalechannels.{home}"), name)
    return {pool.__name__: pool for pool in POOLS.values()}.get(name)


def _rebuild(folder: Path, given: dict[str, Any], wanted: type[Any] | None = None) -> Any:
    """The network of a folder, in eval mode; of the wanted class, if one is given."""
    path = folder / CONFIG
    if not path.is_file():
        runs = sorted(found.parent for found in folder.glob(f"*/{RUN}"))
        example = f", such as {runs[0]}" if runs else ", or one that save_pretrained() wrote"
        trouble = "it is a file" if folder.is_file() else f"it has no {CONFIG}"
        raise FileNotFoundError(f"'{folder}' is not a saved network: {trouble}. Give a run's folder{example}")
    config = read_table(path)
    if "class" not in config:
        raise ValueError(f"'{path}' does not describe a network of scalechannels: it names no class")
    if not (isinstance(config["class"], str) and config["class"].isprintable()):
        raise ValueError(f"'{path}' is damaged: its class must be text; got {config['class']!r:.80}")
    config = of_today(config)
    name, arguments = config["class"], config.get("arguments", {})
    if wanted is None and name not in NETWORKS:
        raise ValueError(
            f"the class of the network in '{folder}' must be {' or '.join(NETWORKS)}; got '{name}'"
        )
    network_class = wanted or _class(name)
    if name != network_class.__name__:
        raise ValueError(
            f"'{folder}' holds a {name}, not a {network_class.__name__}; "
            "scalechannels.load finds the class by itself"
        )
    ours = network_class is _class(name)
    if ours:  # of a user's own class, only its constructor knows
        from scalechannels.saving.accepted import require_arguments

        try:
            require_arguments(network_class, arguments, _class, given)
        except ValueError as error:
            raise ValueError(f"the config of '{folder}' {error}") from error
    arguments = dict(arguments)
    if unknown := sorted(set(given) - set(arguments)):
        raise TypeError(f"arguments must be among {', '.join(sorted(arguments))}; got {', '.join(unknown)}")

    def made() -> Any:
        parts = {
            key: _rebuild_part(key, value, folder) if isinstance(value, dict) and "class" in value else value
            for key, value in arguments.items()
            if key not in given
        }
        return _made(network_class, {**parts, **given}, folder)

    others = [value for key, value in arguments.items() if key not in given]
    if ours and not any(isinstance(one, dict) and one.get("class") == "LibraryBackbone" for one in others):
        # First without memory for weights: what the file does not hold is never allocated.
        with torch.device("meta"):
            _require_weights(made(), folder / WEIGHTS)
    network = made()
    _require_weights(network, folder / WEIGHTS)
    _load_weights(network, folder / WEIGHTS)
    network.usage = usage_of(folder, config, network)
    return network.eval()


def _made(part_class: Any, arguments: dict[str, Any], folder: Path) -> Any:
    try:
        return part_class(**arguments)
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RuntimeError) as error:
        raise ValueError(f"the config of '{folder}' does not fit {part_class.__name__}: {error}") from error


def _grid(factors: list[float]) -> ScaleGrid:
    return ScaleGrid.of(*factors)


def _rebuild_part(key: str, part: dict[str, Any], folder: Path) -> Any:
    name = part["class"]
    if part.get("foreign"):
        whose = f"a {key} of changed layers" if name.startswith("scalechannels.") else f"your own {key}"
        raise ValueError(
            f"the network in '{folder}' was saved with {whose}, {name}, which only you can build: "
            f"pass from_pretrained(…, {key}={name.rsplit('.', 1)[-1]}(…))"
        )
    if name == "ScaleGrid":
        return _made(_grid, part["arguments"], folder)
    if (part_class := _class(name)) is None or name in NETWORKS:
        raise ValueError(
            f"the parts of '{folder}' must be poolings or among {', '.join(PARTS)}; got '{name}'"
        )
    return _made(part_class, part.get("arguments", {}), folder)


def _require_weights(network: nn.Module, path: Path) -> None:
    """An error unless the file holds this network's weights; only its header is read."""
    if not path.is_file():
        raise FileNotFoundError(f"the weights '{path}' are missing; copy the file back or train again")
    try:
        with safetensors.safe_open(path, "pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            found = {name: tuple(one.get_shape()) for name, one in slices.items()}
            kinds = {name: one.get_dtype() for name, one in slices.items()}
    except safetensors.SafetensorError as error:
        raise ValueError(f"'{path}' is damaged or cut short ({error})") from error
    weights = network.state_dict()
    expected = {name: tuple(value.shape) for name, value in weights.items()}
    missing, foreign = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    shapes = [
        f"{name} {found[name]} instead of {shape}"
        for name, shape in expected.items()
        if name in found and found[name] != shape
    ]
    if missing or foreign or shapes:
        raise ValueError(
            f"'{path}' belongs to another network: missing {missing}, unexpected {foreign}, "
            f"other shapes {shapes}"
        )
    for name, value in weights.items():
        if value.is_floating_point() and kinds[name] not in FLOATS:
            raise ValueError(f"'{path}' is damaged: {name} has values of the type {kinds[name]}")


def _load_weights(network: nn.Module, path: Path) -> None:
    weights = safetensors.torch.load_file(path)
    for name, value in (*network.named_parameters(), *network.named_buffers()):
        if name in weights:  # a network saved in another precision comes back in it
            value.data = value.data.to(weights[name].dtype)
    network.load_state_dict(weights)
