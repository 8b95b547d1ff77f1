"""`scalechannels evaluate`: accuracy against size of a run's network, or of any saved one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from scalechannels.cli import Device, Root, Sizes, Split, require_device
from scalechannels.saving.shipped import find_network
from scalechannels.training.config import DataConfig, DataName, RunConfig

Coarse = Annotated[
    int | None,
    Parameter(help="Faster: every so manyth channel first, then those around the winning scale. Try 3."),
]


def evaluate(
    folder: Annotated[
        Path, Parameter(help="A run's folder, one that save_pretrained wrote, or a shipped network's name.")
    ],
    *,
    sizes: Sizes = None,
    split: Split = "test",
    data: Annotated[
        DataName | None,
        Parameter(name="--data.name", help="What to test on; by default what the run was trained on."),
    ] = None,
    coarse: Coarse = None,
    out: Annotated[Path | None, Parameter(help="A JSON file for the whole result.")] = None,
    device: Device = None,
    root: Root = None,
) -> None:
    """Test a trained network at many sizes: a table, and one JSON with --out.

    The JSON holds for each size the accuracy, that of each class, the confusion (rows are the true classes),
    the selection: how much each scale channel contributes to the winning class, on average; and the errors:
    which images were classified wrongly, for scalechannels.training.errors.unpack_errors.

    Example: scalechannels evaluate runs/NAME --sizes 0.5 1 2 4 8 --split validation --out result.json
    """
    folder = find_network(folder)
    if out is not None:
        require_json(out)
    result = evaluate_folder(folder, sizes, split, data, require_device(device), root, coarse)
    print(table(result))
    if out is not None:
        from scalechannels.files import atomic_path

        with atomic_path(out) as temporary:
            temporary.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(out)


def evaluate_folder(
    folder: Path,
    sizes: Sequence[float] | None,
    split: Literal["validation", "test"],
    name: DataName | None,
    device: str,
    root: Path | None,
    coarse: int | None = None,
) -> dict[str, Any]:
    """The result of a saved network as one dictionary."""
    from functools import partial

    import torch

    from scalechannels.training.datasets import open_data
    from scalechannels.training.evaluate import as_json
    from scalechannels.training.evaluate import evaluate as evaluate_sizes
    from scalechannels.training.progress import Progress
    from scalechannels.training.runs import environment

    config = run_config(folder)
    if config is None and name is None:
        raise ValueError(f"{folder} does not say what it was trained on: give --data.name")
    learnt = config.data if config is not None else DataConfig(name=name or "strokes")
    used = learnt if name in (None, learnt.name) else DataConfig(name=name, seed=learnt.seed)
    used = replace(used, hold_out=used.hold_out or (used.name == "cifar10" and split == "validation"))
    network = open_network(folder, coarse).to(device)
    source = open_data(used, device, root)
    tested = source.test_sizes if sizes is None else tuple(sizes)
    with Progress(f"evaluating {folder.name}", True) as progress:
        results = evaluate_sizes(
            network,
            partial(source.testing, split=split),
            tested,
            len(source.classes),
            partial(progress.tested, count=len(tested)),
        )
    grid = getattr(network, "grid", None)
    return {
        "network": str(folder),
        "data": used.name,
        "trained": list(config.data.sizes) if config is not None else None,
        "classes": list(source.classes),
        "channels": None if grid is None else list(grid),
        "coarse": coarse,
        "environment": environment(torch.device(device)),
        "evaluation": as_json(results, split),
    }


def open_network(folder: Path, coarse: int | None = None, sure: float | None = None) -> Any:
    """The network of a folder, coarse to fine where asked for.

    A run that is not done yet is told from a folder without a network.
    """
    import scalechannels
    from scalechannels.training.runs import CONFIG

    if (folder / CONFIG).exists() and not (folder / "config.json").exists():
        raise FileNotFoundError(
            f"the run in {folder} is not done; go on with scalechannels train "
            f"--config {folder / CONFIG} --out {folder.parent}"
        )
    network = scalechannels.load(folder)
    if coarse is not None:
        raise ValueError("--coarse is gone: a network with every second channel, grid[::2], does as well")
    return network


def run_config(folder: Path) -> RunConfig | None:
    """The configuration of a run's folder; None for a network that no run made."""
    from scalechannels.training.runs import CONFIG

    path = folder / CONFIG
    return RunConfig.from_toml(path) if path.exists() else None


def require_json(out: Path) -> None:
    if out.suffix.lower() != ".json":
        raise ValueError(f"--out takes a .json file, got {out}")
    require_free(out)


def require_free(out: Path) -> None:
    """Refuse to write over a file that makes a run or a saved network what it is, this one or another."""
    from scalechannels.training.runs import CONFIG

    folder, names = out.resolve().parent, ("config.json", "detector.json", "report.json", "result.json")
    owned = any((folder / sign).exists() for sign in (CONFIG, "model.safetensors"))
    if owned and out.name.lower() in names:
        raise ValueError(f"{out} belongs to the network in {folder}; choose another name or folder")


def table(result: dict[str, Any]) -> str:
    """Accuracy, the class that is found least often and the strongest channel, for each size."""
    from scalechannels.report.text import size_name

    last = "strongest channel" if result["channels"] else ""
    lines = [f"{'size':>8}{'accuracy':>12}   {'worst class':<22}{last}".rstrip()]
    for entry in result["evaluation"]["sizes"]:
        counts = [sum(row) for row in entry["confusion"]]
        found, worst = min(
            (accuracy, index) for index, accuracy in enumerate(entry["per_class"]) if counts[index]
        )
        line = f"{size_name(entry['size']):>8}{entry['accuracy']:>10.2f} %   "
        line += f"{result['classes'][worst]} ({found:.1f} %)".ljust(22)
        if entry["selection"] and result["channels"]:
            strongest = max(range(len(entry["selection"])), key=entry["selection"].__getitem__)
            line += f"σ = {size_name(result['channels'][strongest])}"
        lines.append(line.rstrip())
    images = result["evaluation"]["sizes"][0]["images"] if result["evaluation"]["sizes"] else 0
    lines.append(f"\n{images:,} images of each size: {result['data']}, {result['evaluation']['split']} split")
    return "\n".join(lines)
