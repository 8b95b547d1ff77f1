"""What the recipe for objects anywhere is chosen by: trials on validation images, one line each.

    python -m benchmarks.anywhere_trials NAME … --root DATA --output trials.jsonl [--seeds 1] [--minutes 9]
        [--keep FOLDER]
    python -m benchmarks.anywhere_trials NAME … --kept FOLDER --device cpu --output trials.jsonl
    python -m benchmarks.anywhere_trials --list

A trial is the network that looks everywhere, or another one of the experiment, trained on 500 digits by the
recipe of `paper.recipes.placed` but for the options in `TRIALS` and `OTHERS`, and tested on the validation
digits. The first seed's network is also tested with other options than its own, which costs no training: see
`ALSO`. Lines that are there are not made
again, and none is begun after so many minutes. The machine needs PyTorch and NumPy alone. The second form
takes weights that --keep has kept.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.bare_machine import stand_in

stand_in()  # before the library is imported

import torch  # noqa: E402

from benchmarks.experiment_runs import Line  # noqa: E402
from scalechannels.files import append_line, json_lines  # noqa: E402
from scalechannels.paper.recipes import PLACED, placed, seeded  # noqa: E402
from scalechannels.training.build import build_network  # noqa: E402
from scalechannels.training.config import ResolvedRun, RunConfig  # noqa: E402
from scalechannels.training.distributed import joined  # noqa: E402
from scalechannels.training.group import Group, How  # noqa: E402
from scalechannels.training.runs import environment  # noqa: E402

SIZES = (0.5, 2**-0.5, 1.0, 2**0.5, 2.0)
TURNED = {"rotation": 15.0, "stretch": 0.15}
WHOLE: dict[str, Any] = {"look": "everywhere", "width": 2, "initialisation": "central", **TURNED}
MORE = {"rotation": 20.0, "stretch": 0.3}
TRIALS: dict[str, dict[str, Any]] = {
    "whole": {},
    "channels up to 8": {"high": 8.0},
    "more turned": MORE,
    "detail": {"detail": 0.5},
    "dropout 0.3": {"dropout": 0.3},
    "strongest scale": {"name": "fovmax"},
    "45 epochs": {"epochs": 45, "period": 45},
    "width 1": {"width": 1},
    "width 3": {"width": 3},
    "channels from 1/4": {"low": 0.25},
    "area": {"area_power": 1.0},
    "area 1.5": {"area_power": 1.5},
    "decoys": {"decoys": 8.0},
    "decoys, area": {"decoys": 8.0, "area_power": 1.0},
    "decoys, half area": {"decoys": 8.0, "area_power": 0.5},
    "decoys, turned": {"decoys": 8.0, **MORE},
    "decoys, area, turned": {"decoys": 8.0, "area_power": 1.0, **MORE},
    "decoys, half area, turned": {"decoys": 8.0, "area_power": 0.5, **MORE},
    "blur": {"blur": 1.0},
    "blur, decoys, area, turned": {"blur": 1.0, "decoys": 8.0, "area_power": 1.0, **MORE},
    "less blur, decoys, area, turned": {"blur": 0.6, "decoys": 8.0, "area_power": 1.0, **MORE},
}
"""What differs from the recipe."""
EARLIER: dict[str, dict[str, Any]] = {
    "parts": {"parts": 4.0},
    "parts, more turned": {"parts": 4.0, **MORE},
    "parts, 8": {"parts": 8.0},
}
"""Trials of commits before there was training.decoys: they looked finer than the channels, not coarser."""
SLIDING = {"name": "fovlse", "look": "everywhere", "low": 1.0, "high": 1.0, "width": 6}
OTHERS: dict[str, dict[str, Any]] = {
    "CNN": {"name": "cnn", "width": 10, **TURNED},
    "CNN, more turned": {"name": "cnn", "width": 10, **MORE},
    "FovLSE": {"name": "fovlse", "width": 9, **TURNED},
    "FovLSE, more turned": {"name": "fovlse", "width": 9, **MORE},
    "FovLSE, blur, more turned": {"name": "fovlse", "width": 9, "blur": 1.0, **MORE},
    "SWMax": {"name": "swmax", **TURNED},
    "SWMax, more turned": {"name": "swmax", **MORE},
    "sliding CNN": {**SLIDING, **TURNED},
    "sliding CNN, more turned": {**SLIDING, **MORE},
    "sliding CNN, decoys, more turned": {**SLIDING, "decoys": 8.0, **MORE},
}
"""The options of the other networks of the experiment."""
ALSO: dict[str, dict[str, float]] = {
    "area 0": {"area_power": 0.0},
    "area 1": {"area_power": 1.0},
    "blur 1": {"blur": 1.0},
}
"""Options to test a trained network with, beside its own."""
PIECE = 500


def config_of(name: str, train: str, seed: int) -> RunConfig:
    options = OTHERS[name].copy() if name in OTHERS else {"name": "fovlse", **WHOLE, **TRIALS[name]}
    return seeded(placed(options.pop("name"), train, **options), seed)


@torch.no_grad()
def measured(network: Any, data: Any, digits: int) -> dict[str, list[Any]]:
    """Accuracy at each size; of a network that looks everywhere also the median errors of the window that
    decides, and how often each channel decided."""
    if network.look != "everywhere":
        sets = (data.testing(size, "validation") for size in SIZES)
        return {"accuracy": [share_right(network, made, digits) for made in sets]}
    names = ("accuracy", "place_error", "octaves", "octaves_error", "scales_right", "scales_wrong")
    found: dict[str, list[Any]] = {name: [] for name in names}
    grid = torch.tensor(list(network.grid), device=next(network.parameters()).device)
    for size in SIZES:
        made = data.testing(size, "validation")
        right, off, scales = [], [], []
        for first in range(0, digits, PIECE):
            part = slice(first, min(first + PIECE, digits))
            said = network.explain(made.images[part])
            right.append(said.logits.argmax(1) == made.labels[part])
            off.append((said.places.double() - made.places[part]).norm(dim=1))
            scales.append(said.scales)
        good, scale = torch.cat(right), torch.cat(scales)
        octaves = (scale.double() / size).log2()
        values = (
            100 * good.double().mean(),
            torch.cat(off).median(),
            octaves.median(),
            (octaves - octaves.median()).abs().median(),
        )
        channel = (scale[:, None] - grid).abs().argmin(1)
        counts = [channel[which].bincount(minlength=len(grid)).tolist() for which in (good, ~good)]
        made_of = [*(round(float(value), 3) for value in values), *counts]
        for known, value in zip(found.values(), made_of, strict=True):
            known.append(value)
    return found


def share_right(network: Any, made: Any, digits: int) -> float:
    said = [network(images).argmax(1) for images in made.images[:digits].split(PIECE)]
    return round(float(100 * (torch.cat(said) == made.labels[:digits]).double().mean()), 3)


def with_options(config: ResolvedRun, weights: dict[str, Any], device: torch.device, **options: float) -> Any:
    """A network of these weights with other options than it was trained with."""
    other = replace(config, network=replace(config.network, **options))
    made = build_network(other, 1, 10)
    made.load_state_dict(weights)
    return made.to(device).eval()


def file_of(folder: Path, name: str, train: str) -> Path:
    return folder / f"{'-'.join(f'{name} {train}'.replace(',', '').replace('/', ' ').split())}.pt"


def trial(name: str, train: str, seed: int, chosen: argparse.Namespace, last: list[Group]) -> dict[str, Any]:
    begun, device = time.perf_counter(), torch.device(chosen.device)
    config = config_of(name, train, seed).resolve(device.type)
    epochs: list[float] = []
    with tempfile.TemporaryDirectory() as folder, joined(device) as processes:
        run: Any = Line(config, Path(folder), None)
        group = last.pop() if last and last[0].can_follow([run]) else None
        last.clear()
        if group is None:
            group = Group([run], device, processes, How(chosen.root, together=False, quiet=True))
        else:
            group.follow([run])
        if chosen.kept is None:
            group.train()
            epochs = sorted(entry["seconds"] for entry in group.history[0])
            weights = group.networks[0].state_dict()
        else:
            weights = torch.load(file_of(chosen.kept, name, train), map_location=device)
    if chosen.keep is not None and seed == 0:
        torch.save(weights, file_of(chosen.keep, name, train))
    data = group.data[0]
    tested = {"own": measured(with_options(config, weights, device), data, chosen.digits)}
    last.append(group)
    for also, options in ALSO.items() if seed == 0 and name in TRIALS else ():
        tested[also] = measured(with_options(config, weights, device, **options), data, chosen.digits)
    return {
        "trial": name,
        "options": {**TRIALS, **OTHERS}[name],
        "trained_on": train,
        "seed": seed,
        "sizes": [round(size, 4) for size in SIZES],
        "digits": chosen.digits,
        "tested": tested,
        "parameters": sum(one.numel() for one in group.networks[0].parameters()),
        "seconds": {
            "first_epoch": round(group.history[0][0]["seconds"], 2) if epochs else None,
            "epoch": round(epochs[len(epochs) // 2], 3) if epochs else None,
            "all": round(time.perf_counter() - begun, 1),
        },
        "environment": {key: environment(device)[key] for key in ("device", "commit", "torch")},
    }


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="trials, in this order")
    parser.add_argument("--train", nargs="+", choices=PLACED, default=["lower third"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--root", type=Path, help="where MNIST lies")
    parser.add_argument("--keep", type=Path, help="folder for the weights of the first seed")
    parser.add_argument("--kept", type=Path, help="such a folder: nothing is trained")
    parser.add_argument("--digits", type=int, default=10_000, help="to test with, of each size")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--list", action="store_true")
    chosen = parser.parse_args(words)
    if chosen.list or not chosen.names:
        for name, options in {**TRIALS, **OTHERS}.items():
            print(name, options)
        return
    begun = time.monotonic()
    known = {(one["trial"], one["trained_on"], one["seed"]) for one in json_lines(chosen.output)}
    last: list[Group] = []
    for seed in range(chosen.seeds):
        for name in chosen.names:
            for train in chosen.train:
                if (name, train, seed) in known or time.monotonic() - begun > 60 * chosen.minutes:
                    continue
                line = trial(name, train, seed, chosen, last)
                append_line(chosen.output, line)
                print(name, train, seed, line["tested"], line["seconds"], flush=True)


if __name__ == "__main__":
    main()
