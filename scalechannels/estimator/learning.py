"""From images in memory to a trained, calibrated network: what `scalechannels train --data FOLDER` does.

The candidates, what is chosen from the images, the recipe and the loop are those of the command. Limits: one
candidate is trained, for epochs that depend on no clock; nothing is kept for a report.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from scalechannels.data.arrays import ImageArrays, from_zero_to_one
from scalechannels.data.frames import reduced
from scalechannels.data.survey import survey
from scalechannels.network import require_finite
from scalechannels.report.calibration import fitted_temperature
from scalechannels.report.candidates import (
    AUGMENTED,
    CENTRE,
    EVERYWHERE,
    RESIZED,
    candidates,
    with_epochs,
)
from scalechannels.report.conditions import Condition, conditions, picture
from scalechannels.report.trial import answered
from scalechannels.saving.saved_network import load
from scalechannels.training.config import ResolvedRun, RunConfig
from scalechannels.training.config.own_images import VALIDATION, factors, in_parts
from scalechannels.training.fit import fit

OFFERED = (CENTRE, EVERYWHERE, RESIZED, AUGMENTED)
"""The networks to choose from, by the names that `train` calls them."""
MEASURED = 400
"""Images that are held out and asked at all sizes; of more, as many are taken evenly."""
OF_FILES = [
    f"data.{name}" for name in ("validation", "test", "checksum", "colour", "skip_corrupt", "max_pixels")
]
"""Options of `train` that are of no use to arrays."""


def run_config(
    options: Mapping[str, Mapping[str, Any]] | None, said: Mapping[str, Mapping[str, Any]]
) -> RunConfig:
    """The configuration of `options`, tables as in a config file, and of what parameters say beside them."""
    tables = {name: dict(table) for name, table in (options or {}).items()}
    fixed = {name: dict(table) for name, table in said.items()}
    fixed["data"] |= {"name": "folder", "folder": "arrays"}  # nothing is read from there
    known = [f"{name}.{key}" for name, table in fixed.items() for key in table] + OF_FILES
    if twice := [one for name, table in tables.items() for key in table if (one := f"{name}.{key}") in known]:
        raise ValueError(
            f"options must not have {', '.join(twice)}: the classifier's parameters and X say it"
        )
    for name, table in fixed.items():
        tables[name] = {**tables.get(name, {}), **{key: one for key, one in table.items() if one is not None}}
    return RunConfig.from_dict(tables)


def planned(config: RunConfig, images: ImageArrays, network: str, device: torch.device) -> ResolvedRun:
    """The run of one candidate, with everything chosen from the images."""
    if network not in OFFERED:
        raise ValueError(f"network must be one of {', '.join(map(repr, OFFERED))}; got {network!r}")
    if config.network.name == "cnn":
        raise ValueError("options must not have network.name cnn: say network='resized CNN' for that")
    try:
        learnt = len(images.parts(0, 0, config.data.seed).learnt)
    except ValueError as error:  # a class has no image to hold out
        raise ValueError(f"{error}: give more, or validation_fraction=0") from error
    seen = survey(images)
    if config.training.class_weights is None and not seen.balanced:
        config = replace(config, training=replace(config.training, class_weights="balanced"))
    config = replace(config, data=replace(config.data, validation=images.held_out or VALIDATION))
    base = config.resolve(device.type, (images, seen))
    found, left_out = candidates(base, config.training)
    if network not in found:
        raise ValueError(f"the {network} is not for these images: {left_out[network]}")
    run = with_epochs(found[network], base.training.epochs, learnt, config.training)
    run.resolve()  # an error for options that this candidate cannot take
    if run.training.patience is not None and not images.held_out:
        raise ValueError("training.patience needs images to judge by: give validation_fraction above 0")
    return run


def learn(
    config: RunConfig, images: ImageArrays, network: str, device: torch.device, quiet: bool
) -> tuple[Any, list[float]]:
    """The trained network, measured on the images that are held out, and the mean loss of each epoch.

    PyTorch's random numbers stay where they were.
    """
    with tempfile.TemporaryDirectory() as folder, torch.random.fork_rng(_numbered(device)):
        run = planned(config, images, network, device)
        options: dict[str, Any] = {"images": images, "quiet": quiet, "sizes": []}
        (done,) = fit([run], folder, device=device, **options)
        trained, history = load(Path(done.folder)), done.result()["history"]
    measured = _measured(trained.to(device), run, images)
    trained.usage |= {"object_size": run.data.own.object_size, **measured}
    return trained.cpu(), [entry["loss"] for entry in history]


def _measured(network: Any, run: ResolvedRun, images: ImageArrays) -> dict[str, float]:
    """The temperature and the deciding scale, on the images that are held out; nothing where none are."""
    held = in_parts(images, run.data)[1]
    if not len(held):
        return {}
    chosen = range(0, len(held), -(-len(held) // MEASURED))
    read = [reduced(held[index][0], run.data.own.reduce) for index in chosen]
    labels = torch.tensor([held.labels[index] for index in chosen])
    sizes = [one for one in conditions(*factors(run.data)) if one.group == "size"]
    shown = partial(picture, images=run.data.images or "crops", object_pixels=run.data.own.object_pixels)
    device = next(network.parameters()).device
    said = [answered(network, (shown(one, size, number=0) for one in read), device) for size in sizes]
    found = {
        "temperature": fitted_temperature(torch.cat([one.logits for one in said]), labels.repeat(len(sizes)))
    }
    scales = said[sizes.index(Condition("size", 1.0))].scales
    return found if scales is None else {**found, "own_scale": float(scales.median())}


def probabilities(network: Any, images: Sequence[Tensor], device: torch.device) -> Tensor:
    """What a network says of images (C, H, W) of any sizes, from 0 to 1 or as bytes: (N, K)."""
    usage = network.usage
    taken = (reduced(from_zero_to_one(one), usage["reduce"]) for one in images)
    logits = answered(network.to(device), taken, device).logits
    require_finite(logits)
    return (logits.double() / usage.get("temperature", 1.0)).softmax(1)


def _numbered(device: torch.device) -> list[int]:
    """The GPUs whose random numbers a training draws."""
    return [device.index or 0] if device.type == "cuda" else []
