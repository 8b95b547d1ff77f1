"""What the report on own images is made of, from finished runs: its numbers, its pictures, its files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalechannels.files import atomic_path
from scalechannels.report.own_images import curves_of, own_images_page, verdict
from scalechannels.training.config import ResolvedRun

if TYPE_CHECKING:
    from scalechannels.training.runs import Run

REPORT, NUMBERS, CURVES = "report.html", "report.json", "accuracy.png"
SHOWN = 2
"""Test images in the report's pictures."""
PICTURE = 168
"""Pixels of such a picture's side."""


def write_report(runs: dict[str, Run], folder: Path) -> dict[str, Any]:
    """The report beside the first run, made of the runs' results; what it says."""
    result = gathered(runs)
    result["verdict"] = verdict(result).text
    examples = _examples(next(iter(runs.values())).config)
    text = own_images_page(result, examples, [str(run.folder) for run in runs.values()])
    curves = curves_of(result, "Trained at one size, tested at others")
    with atomic_path(folder / NUMBERS) as path:
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


def gathered(runs: dict[str, Run]) -> dict[str, Any]:
    """All that the report says, from the results of runs on the same images."""
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
