"""Own images: a network with scale channels and a plain CNN, trained, tested and reported on."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from scalechannels.data.sizes import size_name
from scalechannels.report.own_images import CHANNELS, PLAIN, columns_of
from scalechannels.report.own_images_result import REPORT, write_report
from scalechannels.training.config import ResolvedRun, RunConfig


def train_own_images(
    config: RunConfig, out: Path, device: str, *, compare: bool = True, **options: Any
) -> Path:
    """Train, test and report; the report's path. `options` are those of `fit`."""
    import torch

    from scalechannels.training.build import require_network
    from scalechannels.training.datasets import default_sizes
    from scalechannels.training.fit import fit
    from scalechannels.training.retest import is_tested
    from scalechannels.training.runs import Run

    require_network(config.network.name)
    # Given to both runs, so that the report has the same sizes of both, whatever they were tested on before.
    options["sizes"] = options.get("sizes") or default_sizes(config.data)
    say = print if int(os.environ.get("RANK", 0)) == 0 else _nothing
    wanted = config.resolve(torch.device(device).type)
    configs = {(PLAIN if wanted.network.name == "cnn" else CHANNELS): wanted}
    if compare and wanted.network.name != "cnn":
        configs[PLAIN] = replace(wanted, network=replace(wanted.network, name="cnn", blur=None))
    say(described(wanted), flush=True)
    known = {name: Run(one, out / one.name) for name, one in configs.items()}
    done = {name: run.done for name, run in known.items()}
    for name, run in known.items():
        begun = f"training, {run.config.training.epochs} epochs …"
        if done[name]:
            tested = is_tested(run, "validation", options["sizes"])
            begun = "done before" if tested else "trained before, tested again on other sizes …"
        say(f"{name}: {begun}", flush=True)
    # One call for both: several processes come together once.
    trained = fit(list(configs.values()), out, device=device, split="validation", **options)
    runs = dict(zip(configs, trained, strict=True))
    for name, run in runs.items():
        if not done[name]:
            say(f"{name}: {run.result()['seconds']['training']:.0f} s", flush=True)
    folder = next(iter(runs.values())).folder
    if say is print:
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
    from scalechannels.scales import ScaleGrid
    from scalechannels.training.config.sections import FIELD

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


def _table(columns: Mapping[str, Mapping[float, float]]) -> str:
    lines = [f"{'size':>8}" + "".join(f"{name:>18}" for name in columns)]
    for size in sorted(next(iter(columns.values()))):
        cells = "".join(f"{column[size]:>16.1f} %" for column in columns.values())
        lines.append(f"{size_name(size):>8}{cells}" + ("  own size" if abs(size - 1) < 1e-6 else ""))
    return "\n".join(lines)


def _nothing(*_: Any, **__: Any) -> None:
    """What every process but the one that writes says."""
