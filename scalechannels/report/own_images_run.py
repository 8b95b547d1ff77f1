"""`scalechannels train --data FOLDER`: scale channels and a plain CNN on own images, and a report of both."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalechannels.training.config import ResolvedRun, RunConfig

if TYPE_CHECKING:
    from scalechannels.training.runs import Run

REPORT, FIGURES, CURVES = "report.html", "report.json", "accuracy.png"
SHOWN = 2
"""Test images in the report's pictures."""
PICTURE = 168
"""Pixels of such a picture's side."""


def train_own_images(
    config: RunConfig, out: Path, device: str | None = None, *, compare: bool = True, **options: Any
) -> Path:
    """Train, test and report; the report's path. `options` are those of `fit`."""
    import torch

    from scalechannels.cli import require_device
    from scalechannels.training.datasets import default_sizes
    from scalechannels.training.fit import fit
    from scalechannels.training.retest import is_tested
    from scalechannels.training.runs import Run

    # Said to both runs, so that the report has the same sizes of both, whatever they were tested on before.
    options["sizes"] = options.get("sizes") or default_sizes(config.data)
    place = require_device(device)
    say = print if int(os.environ.get("RANK", 0)) == 0 else _nothing
    wanted = config.resolve(torch.device(place).type)
    configs = {("plain CNN" if wanted.network.name == "cnn" else "scale channels"): wanted}
    if compare and wanted.network.name != "cnn":
        configs["plain CNN"] = replace(wanted, network=replace(wanted.network, name="cnn", blur=None))
    say(described(wanted), flush=True)
    known = {name: Run(one, out / one.name) for name, one in configs.items()}
    done = {name: run.done for name, run in known.items()}
    for name, run in known.items():
        begun = f"training, {run.config.training.epochs} epochs …"
        if done[name]:
            tested = is_tested(run, "validation", options["sizes"])
            begun = "done before" if tested else "trained before, tested anew on other sizes …"
        say(f"{name}: {begun}", flush=True)
    # One call for both: several processes come together once.
    trained = fit(list(configs.values()), out, device=place, split="validation", **options)
    runs = dict(zip(configs, trained, strict=True))
    for name, run in runs.items():
        if not done[name]:
            say(f"{name}: {run.result()['seconds']['training']:.0f} s", flush=True)
    folder = next(iter(runs.values())).folder
    if say is print:
        result = write_report(runs, folder)
        say(f"\n{_table(result)}\n\n{result['verdict']}")
        say(f"The report: {folder / REPORT}")
        say(f"Classify:   scalechannels predict {folder} IMAGES")
        if all(
            one.data.deploy_pixel_sizes and len(one.data.deploy_pixel_sizes) == 1 for one in configs.values()
        ):
            print(
                "note: with one known pixel size there is a simpler way: resample each image by it, and "
                "recognise it with a plain network",
                file=sys.stderr,
            )
    return folder / REPORT


def described(config: ResolvedRun) -> str:
    """What was found and chosen, before it is trained on."""
    from scalechannels.scales import ScaleGrid
    from scalechannels.training.config.data import FIELD

    data, network = config.data, config.network
    assert data.reduce is not None
    assert network.window is not None
    assert network.low is not None
    assert network.high is not None
    grid = ScaleGrid(network.low, network.high, ratio=network.ratio)
    own = config.training_scale
    reduction = f", made {data.reduce} times smaller" if data.reduce > 1 else ""
    seen = (
        f"no channels, one window of {FIELD * network.window} pixels"
        if network.name == "cnn"
        else f"{len(grid)} channels, from {grid.minimum / own:.3g} to {grid.maximum / own:.3g} times that "
        f"size, windows of {network.window} pixels"
    )
    return f"{data.folder}: {data.colour} images{reduction}, objects of {data.object_size:g} pixels\n{seen}"


def write_report(runs: dict[str, Run], folder: Path) -> dict[str, Any]:
    """The report beside the first run, made of the runs' results; what it says."""
    from scalechannels.files import atomic_path
    from scalechannels.report.curves import accuracy_curves
    from scalechannels.report.own_images import columns_of, own_images_page, verdict

    result = _result(runs)
    result["verdict"] = verdict(result).text
    text = own_images_page(
        result, _examples(next(iter(runs.values())).config), [str(r.folder) for r in runs.values()]
    )
    curves = accuracy_curves(
        columns_of(result),
        [1.0],
        "Learnt at one size, tested at others",
        objects="objects",
        guessing=100 / len(result["classes"]),
    )
    with atomic_path(folder / FIGURES) as path:
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    with atomic_path(folder / CURVES) as path:
        curves.savefig(path, format="png", dpi=110)
    with atomic_path(folder / REPORT) as path:
        path.write_text(text, encoding="utf-8")
    return result


def _keep_common_sizes(results: Iterable[dict[str, Any]]) -> None:
    """Networks are compared at the sizes that all of them were tested at; one may have further ones."""
    evaluations = [result["evaluation"] for result in results]
    common = set.intersection(*({entry["size"] for entry in one["sizes"]} for one in evaluations))
    for one in evaluations:
        one["sizes"] = sorted(
            (entry for entry in one["sizes"] if entry["size"] in common), key=lambda entry: entry["size"]
        )


def _result(runs: dict[str, Run]) -> dict[str, Any]:
    import torch

    from scalechannels.backbones.sized import multiplications
    from scalechannels.training.build import build_network
    from scalechannels.training.config.own_images import factors
    from scalechannels.training.datasets import open_data

    first = next(iter(runs.values()))
    config = first.config
    data: Any = open_data(config.data, torch.device("cpu"))
    results = {name: run.result() for name, run in runs.items()}
    _keep_common_sizes(results.values())
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


def _examples(config: ResolvedRun) -> list[tuple[Any, float]]:
    """For each power of two, some test images one below the other, in the plain CNN's field."""
    import torch

    from scalechannels.data.frames import reduced, simulated
    from scalechannels.training.datasets import open_data

    data: Any = open_data(config.data, torch.device("cpu"))
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


def _table(result: dict[str, Any]) -> str:
    from scalechannels.report.own_images import columns_of
    from scalechannels.report.text import size_name

    columns = columns_of(result)
    lines = [f"{'size':>8}" + "".join(f"{name:>18}" for name in columns)]
    for size in sorted(next(iter(columns.values()))):
        cells = "".join(f"{column[size]:>16.1f} %" for column in columns.values())
        lines.append(f"{size_name(size):>8}{cells}" + ("  own size" if abs(size - 1) < 1e-6 else ""))
    return "\n".join(lines)


def _nothing(*_: Any, **__: Any) -> None:
    """Said by processes other than the one that writes."""
