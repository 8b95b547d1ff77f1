"""Own images: a network with scale channels and a plain CNN, trained, tested and reported on."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch

from scalechannels.backbones.sized import multiplications
from scalechannels.data.frames import reduced, simulated
from scalechannels.data.sizes import size_name
from scalechannels.files import atomic_path, make_folder, write_text
from scalechannels.report.own_images import CHANNELS, PLAIN, columns_of, curves_of, own_images_page, verdict
from scalechannels.scales import ScaleGrid
from scalechannels.training.build import build_network, require_network
from scalechannels.training.config import ResolvedRun, RunConfig
from scalechannels.training.config.own_images import factors
from scalechannels.training.config.sections import FIELD
from scalechannels.training.datasets import open_data
from scalechannels.training.fit import fit
from scalechannels.training.retest import is_tested
from scalechannels.training.runs import Run

REPORT, NUMBERS, CURVES = "report.html", "report.json", "accuracy.png"
SHOWN = 2
"""Test images in the report's pictures."""
PICTURE = 168
"""Pixels of such a picture's side."""


def train_own_images(
    config: RunConfig, out: Path, device: str, *, compare: bool = True, **options: Any
) -> Path:
    """Train, test and report; the report's path. `options` are those of `fit`."""
    require_network(config.network)
    # Both runs are tested at these, whatever they were tested at before.
    options["sizes"] = options.get("sizes") or config.data.about.test_sizes
    writes = int(os.environ.get("RANK", 0)) == 0  # of several processes, one speaks and writes
    say = print if writes else lambda *_, **__: None
    wanted = config.resolve(torch.device(device).type)
    configs = {(PLAIN if wanted.network.name == "cnn" else CHANNELS): wanted}
    if compare and wanted.network.name != "cnn":
        configs[PLAIN] = replace(wanted, network=replace(wanted.network, name="cnn", blur=None))
    say(described(wanted), flush=True)
    make_folder(out)  # before anybody is told that it is training
    known = {name: Run(one, out / one.name) for name, one in configs.items()}
    done = {name: run.done for name, run in known.items()}
    for name, run in known.items():
        epochs = run.config.training.epochs
        begun = f"training, {epochs} {'epoch' if epochs == 1 else 'epochs'} …"
        if done[name]:
            tested = is_tested(run, "validation", options["sizes"])
            begun = "already trained and tested" if tested else "already trained; testing at other sizes …"
        say(f"{name}: {begun}", flush=True)
    # One call for both: several processes come together once.
    trained = fit(list(configs.values()), out, device=device, split="validation", **options)
    runs = dict(zip(configs, trained, strict=True))
    for name, run in runs.items():
        if not done[name]:
            say(f"{name}: {run.result()['seconds']['training']:.0f} s", flush=True)
    folder = next(iter(runs.values())).folder
    if writes:
        result = write_report(runs, folder)
        say(f"\n{_table(columns_of(result))}\n\n{result['verdict']}")
        say(f"The report: {folder / REPORT}")
        say(f"Classify:   scalechannels predict {folder} IMAGES")
        if len(wanted.data.deploy_pixel_sizes or ()) == 1:
            print(
                "note: with one known pixel size you do not need scale channels: resample each image and use "
                "a plain network",
                file=sys.stderr,
            )
    return folder / REPORT


def described(config: ResolvedRun) -> str:
    """What was found and chosen, before it is trained on."""
    images, network, own = config.data.own, config.network, config.training_scale
    assert network.window is not None
    grid = ScaleGrid(network.low, network.high, ratio=network.ratio)
    shrunk = f", shrunk to {images.object_pixels:.3g} (factor {images.reduce})" if images.reduce > 1 else ""
    seen = (
        f"no channels, one window of {FIELD * network.window} pixels"
        if network.name == "cnn"
        else f"{len(grid)} channels, for {grid.minimum / own:.3g} to {grid.maximum / own:.3g} times that "
        f"size (σ = {grid.minimum:.3g} to {grid.maximum:.3g}), windows of {network.window} pixels"
    )
    objects = f"objects of {images.object_size:g} pixels{shrunk}"
    return f"{images.folder}: {images.colour} images, {objects}\n{seen}"


def _table(columns: Mapping[str, Mapping[float, float]]) -> str:
    lines = [f"{'size':>8}" + "".join(f"{name:>18}" for name in columns)]
    for size in sorted(next(iter(columns.values()))):
        cells = "".join(f"{column[size]:>16.1f} %" for column in columns.values())
        lines.append(f"{size_name(size):>8}{cells}" + ("  own size" if abs(size - 1) < 1e-6 else ""))
    return "\n".join(lines)


def write_report(runs: dict[str, Run], folder: Path) -> dict[str, Any]:
    """The report beside the first run, made of the runs' results; what it says."""
    data = open_data(next(iter(runs.values())).config.data)
    result = gathered(runs, data)
    result["verdict"] = verdict(result).text
    text = own_images_page(result, _examples(data), [str(run.folder) for run in runs.values()])
    curves = curves_of(result, "Trained at one size, tested at others")
    write_text(folder / NUMBERS, json.dumps(result, indent=1) + "\n")
    with atomic_path(folder / CURVES) as path:
        curves.savefig(path, format="png", dpi=110)
    write_text(folder / REPORT, text)
    return result


def gathered(runs: dict[str, Run], data: Any) -> dict[str, Any]:
    """All that the report says, from the results of runs on the same images."""
    config = next(iter(runs.values())).config
    results = {name: run.result() for name, run in runs.items()}
    # Compared at the sizes that all were tested at; one may have further ones.
    common = set.intersection(*(set(column) for column in columns_of({"runs": results}).values()))
    for result in results.values():
        evaluation = result["evaluation"]
        kept = (entry for entry in evaluation["sizes"] if entry["size"] in common)
        evaluation["sizes"] = sorted(kept, key=itemgetter("size"))
    networks: dict[str, Any] = {
        name: build_network(run.config, None, len(data.classes)) for name, run in runs.items()
    }
    seen = networks[next(iter(runs))]
    tested = next(iter(results.values()))["evaluation"]["sizes"]
    return {
        "folder": config.data.folder,
        "classes": list(data.classes),
        "images": {
            "learnt": len(data.learnt),
            "kept": len(data.kept),
            "tested": tested[0]["images"] if tested else 0,
        },
        "factors": list(factors(config.data)),
        "grid": list(seen.grid),  # one scale alone for the plain CNN
        "training_scale": config.training_scale,
        "window": seen.backbone.window,
        "multiplications": {
            name: len(network.grid) * multiplications(network.backbone) for name, network in networks.items()
        },
        "runs": results,
    }


def _examples(data: Any) -> list[tuple[Any, float]]:
    """For each power of two, some test images one below the other, in the plain CNN's field."""
    kept = data.kept
    spread = [round(k * (len(kept) - 1) / SHOWN) for k in range(SHOWN)]  # of different classes
    shown = [reduced(kept[index][0], data.reduce) for index in spread]
    smaller = max(1, data.field // PICTURE)
    examples = []
    for size in (0.25, 0.5, 1.0, 2.0, 4.0):
        frames = [reduced(simulated(image, size, data.field), smaller) for image in shown]
        stacked = torch.cat(frames, dim=1)  # (C, SHOWN·side, side)
        examples.append((stacked[0] if len(stacked) == 1 else stacked, size))
    return examples
