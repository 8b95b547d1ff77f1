"""Saving and loading: weights as safetensors beside a config.json that rebuilds the network by itself.

config.json holds, for the network and each of its parts, {"class": name, "arguments": {…}}. The parts of this
library rebuild themselves; a user's own backbone is named there and has to be given again when loading.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
from huggingface_hub import PyTorchModelHubMixin, hf_hub_download
from torch import nn

from scalechannels import pooling
from scalechannels.backbones import paper as backbones
from scalechannels.backbones.residual import ResidualBackbone
from scalechannels.backbones.zoo import LibraryBackbone
from scalechannels.files import atomic_path
from scalechannels.saving.shipped import find_network
from scalechannels.scales import ScaleGrid

CONFIG, WEIGHTS = "config.json", "model.safetensors"
HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")
MODEL_CARD = """---
{{ card_data }}
---

A network of the Python package `scalechannels`, saved by `save_pretrained`. Load it with

    import scalechannels

    network = scalechannels.load("this folder")
    logits = network(images)  # (B, K), images (B, C, H, W)
{% if reduce %}
It learnt from images that were made {{ reduce }} times smaller along each side: do the same first
(`scalechannels.data.frames.reduced`). `scalechannels predict` does it by itself.
{% endif %}
The method: Jansson & Lindeberg, Scale-invariant scale-channel networks (2022),
https://doi.org/10.1007/s10851-022-01082-2
"""
PARTS: dict[str, Any] = {
    "ScaleGrid": lambda factors: ScaleGrid.of(*factors),
    **{
        part.__name__: part
        for part in (
            backbones.ConvBackbone,
            backbones.CifarBackbone,
            ResidualBackbone,
            LibraryBackbone,
            pooling.MaxOverScales,
            pooling.MeanOverScales,
            pooling.LogMeanExpOverScales,
            pooling.MeanProbabilityOverScales,
            pooling.ConcatScales,
        )
    },
}

AnyNetwork = TypeVar("AnyNetwork", bound="Network")


class Network(
    nn.Module,
    PyTorchModelHubMixin,
    library_name="scalechannels",
    license="mit",
    pipeline_tag="image-classification",
    model_card_template=MODEL_CARD,
):
    """What all networks share: `save_pretrained(folder)` and `from_pretrained(folder)`."""

    look: Literal["whole", "centre", "everywhere"]
    """What of an image a network sees: the whole at one scale, or windows about the centre or everywhere."""

    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments; parts are given as they are."""
        raise TypeError(f"{type(self).__name__} does not say how it is rebuilt")

    @classmethod
    def from_pretrained(
        cls: type[AnyNetwork], pretrained_model_name_or_path: str | os.PathLike[str], **options: Any
    ) -> AnyNetwork:
        """The network that `save_pretrained` wrote to this folder, or that has this name, in eval mode.

        A name is that of a shipped network, such as "fovlse-mnist", or of one on the hub, "owner/name".
        `options` are parts that only the user can build, such as backbone=MyBackbone(), and those of the hub.
        """
        place = os.fspath(pretrained_model_name_or_path)
        if os.path.exists(place) or not HUB_NAME.fullmatch(place):
            place = os.fspath(find_network(place))
        if os.path.isdir(place):
            read_config(place)  # a damaged one is named here; the hub's reader would not say which file
        return super().from_pretrained(place, **options)

    def _save_pretrained(self, save_directory: Path) -> None:
        from safetensors.torch import save_file

        # Copies: the file's format takes no two names for one tensor, which tied weights are.
        weights = {
            name: value.detach().clone(memory_format=torch.contiguous_format)
            for name, value in self.state_dict().items()
        }
        with atomic_path(save_directory / WEIGHTS) as path:
            save_file(weights, path, metadata={"format": "pt"})
        text = json.dumps(describe(self), indent=2) + "\n"
        with atomic_path(save_directory / CONFIG) as path:
            path.write_text(text, encoding="utf-8")

    @classmethod
    def _from_pretrained(
        cls: type[AnyNetwork],
        *,
        model_id: str,
        config: dict[str, Any] | None = None,
        map_location: str = "cpu",
        **given: Any,
    ) -> AnyNetwork:
        hub = {
            key: given.pop(key)
            for key in ("revision", "cache_dir", "force_download", "local_files_only", "token")
        }
        if config is None:
            raise FileNotFoundError(f"{model_id} holds no {CONFIG}; save_pretrained writes one")
        config = of_today(config)
        if config.get("class") != cls.__name__:
            raise ValueError(
                f"{model_id} holds a {config.get('class')}, not a {cls.__name__}; "
                "scalechannels.load finds the class by itself"
            )
        arguments = _build_arguments(config, given, model_id)
        try:
            network = cls(**arguments)
        except TypeError as error:
            raise ValueError(f"the config of {model_id} does not fit {cls.__name__}: {error}") from error
        folder = Path(model_id)
        weights = folder / WEIGHTS if folder.is_dir() else Path(hf_hub_download(model_id, WEIGHTS, **hub))
        _load_weights(network, weights)
        return network.to(map_location).eval()


def describe(part: Any) -> dict[str, Any]:
    """{"class", "arguments"} of a network or part, recursively; a foreign part gives its class alone."""
    name = type(part).__name__
    # By identity, not by name: a user's own class may be called like one of ours.
    if not isinstance(part, (Network, ScaleGrid)) and PARTS.get(name) is not type(part):
        return {"class": f"{type(part).__module__}.{type(part).__qualname__}", "foreign": True}
    return {
        "class": name,
        "arguments": {
            key: describe(value) if isinstance(value, (nn.Module, ScaleGrid)) else value
            for key, value in part.arguments().items()
        },
    }


def read_config(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The config of a saved network, checked to be one."""
    path = Path(folder) / CONFIG
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} is no saved network: it holds no {CONFIG}; save_pretrained writes one"
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(config, dict) or "class" not in config:
        raise ValueError(f"{path} does not describe a network of scalechannels: it names no class")
    return of_today(config)


def of_today(config: dict[str, Any]) -> dict[str, Any]:
    """A config of the first edition, which had a class of its own for networks that look everywhere."""
    if config.get("class") != "SlidingWindowNetwork":
        return config
    arguments = config["arguments"]
    pool = {"class": "MaxOverScales", "arguments": {}}
    window = arguments["backbone"].get("arguments", {}).get("window", 28)
    more = {"pool": pool, "window": window, "look": "everywhere"}
    return {"class": "ScaleChannelNetwork", "arguments": {**arguments, **more}}


def _build_arguments(config: dict[str, Any], given: dict[str, Any], place: str) -> dict[str, Any]:
    arguments = dict(config.get("arguments", {}))
    unknown = sorted(set(given) - set(arguments))
    if unknown:
        raise TypeError(f"from_pretrained got unknown arguments {unknown}; known are {sorted(arguments)}")
    for key, value in arguments.items():
        if key in given:
            arguments[key] = given[key]
        elif isinstance(value, dict) and value.get("foreign"):
            raise ValueError(
                f"{place} was saved around your own {key}, {value['class']}, which only you can build: "
                f"pass from_pretrained(…, {key}={value['class'].rsplit('.', 1)[-1]}(…))"
            )
        elif isinstance(value, dict) and "class" in value:
            if value["class"] not in PARTS:
                raise ValueError(
                    f"{place} names an unknown part {value['class']!r}; known are {sorted(PARTS)}"
                )
            arguments[key] = PARTS[value["class"]](**value["arguments"])
    return arguments


def _load_weights(network: nn.Module, path: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not path.is_file():
        raise FileNotFoundError(f"the weights {path} are missing")
    try:
        weights = load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged or cut short: {error}") from error
    expected = network.state_dict()
    missing, foreign = sorted(set(expected) - set(weights)), sorted(set(weights) - set(expected))
    shapes = [
        f"{name} {tuple(weights[name].shape)} instead of {tuple(expected[name].shape)}"
        for name in expected
        if name in weights and weights[name].shape != expected[name].shape
    ]
    if missing or foreign or shapes:
        raise ValueError(
            f"{path} belongs to another network: missing {missing}, unexpected {foreign}, "
            f"other shapes {shapes}"
        )
    for name, value in (*network.named_parameters(), *network.named_buffers()):
        if name in weights:  # a network saved in another precision comes back in it
            value.data = value.data.to(weights[name].dtype)
    network.load_state_dict(weights)
