"""`scalechannels evaluate`: accuracy against size of a run's network, or of any saved one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from scalechannels.cli import Device, NetworkFolder, Root, Sizes, Split, ending, require_device
from scalechannels.training.config import DataConfig, RunConfig

RANGES = {"digits": "−0.76 to 0.76", "unit": "0 to 1"}
"""Of the values that a network takes, in words."""


def evaluate(
    folder: NetworkFolder,
    /,
    *,
    sizes: Sizes = None,
    split: Split = "test",
    data: Annotated[
        Literal["strokes", "mnist", "fashion", "mnist-scale", "cifar10", "emoji"] | None,
        Parameter(name="--data.name", help="The data to test on; by default the data it was trained on."),
    ] = None,
    images: Annotated[
        Path | None,
        Parameter(
            name="--data",
            help="A folder of labelled images, with a subfolder for each class: all are tested as they are, "
            "or at --sizes, but for copies of images that the run learnt from. If it holds the images of the "
            "run itself, which may have moved, only those held out from training are tested.",
        ),
    ] = None,
    out: Annotated[
        Path | None, Parameter(help="The JSON file for the full result.", validator=ending(".json"))
    ] = None,
    device: Device = None,
    root: Root = None,
) -> None:
    """Test a trained network at many sizes and print a table.

    With --out, the full result is written as JSON. For each size it holds:

    - the accuracy, overall and for each class
    - the confusion matrix (rows are the true classes)
    - the selection: how much each scale channel contributes to the winning class, on average
    - the errors: which images were misclassified (read by scalechannels.training.errors.unpack_errors)
    - the balanced accuracy, the mean of the classes' accuracies; where classes differ much in size, the table
      shows it, too
    - for labelled images of yours also the expected calibration error

    For example:

    - scalechannels evaluate runs/NAME --sizes 0.5 1 2 4 8 --split validation --out result.json
    - scalechannels evaluate runs/NAME --data new-photos
    """
    import torch

    from scalechannels.files import require_writable, write_text
    from scalechannels.saving.saved_network import RUN, SavedNetwork, require_free
    from scalechannels.training.evaluate import balanced_accuracy
    from scalechannels.training.runs import environment

    if out is not None:
        require_free(out)
        require_writable(out)
    on = torch.device(require_device(device))
    saved = SavedNetwork.open(folder)
    if saved.detector is not None:
        raise ValueError(f"'{folder}' is a detector; its report.html says how good it is")
    if saved.background is not None:
        raise ValueError(f"'{folder}' is a detector, not a classifier; test it with scalechannels detect")
    if images is not None and data is not None:
        raise ValueError(f"--data FOLDER cannot be combined with --data.name {data}; remove one of them")
    if images is not None and not holds_the_runs_images(saved.folder / RUN, images):
        if split != "test":
            raise ValueError(
                f"all images of --data are tested, unless they are those of the run: remove --split {split}"
            )
        found = labelled_images(saved, images, on, sizes)
    else:
        found = images_of_the_data(saved, folder, images, data, on, root, split, sizes)
    for entry in found["evaluation"]["sizes"]:
        entry.setdefault("balanced", balanced_accuracy(entry["confusion"]))
    result = {"network": str(saved.folder), **found, "environment": environment(on)}
    print(table(result))
    if out is not None:
        write_text(out, json.dumps(result, indent=1) + "\n")
        print(out)


def holds_the_runs_images(config: Path, images: Path) -> bool:
    """Whether a folder has the images that a run was trained and tested on, wherever they were then."""
    from scalechannels.data.folder import image_folder

    if not config.exists():
        return False
    own = RunConfig.from_toml(config).data
    if own.checksum is None:
        return False
    return image_folder(images, colour=own.colour or "rgb", decode=False).checksum() == own.checksum


def labelled_images(saved: Any, images: Path, on: Any, sizes: tuple[float, ...] | None) -> dict[str, Any]:
    """The result on labelled images that have nothing to do with the run."""
    from scalechannels.report.labelled import labelled
    from scalechannels.saving.saved_network import RUN

    path = saved.folder / RUN
    kind = RunConfig.from_toml(path).data.images if path.exists() else None
    evaluation = labelled(saved, images, on, sizes or (1.0,), kind or "crops")
    return {
        "data": str(images),
        "trained": None if saved.sizes is None else list(saved.sizes),
        "classes": saved.names or [str(index) for index in range(len(evaluation["sizes"][0]["per_class"]))],
        "channels": list(getattr(saved.network, "grid", ())) or None,
        "evaluation": evaluation,
    }


def images_of_the_data(
    saved: Any,
    folder: Path,
    images: Path | None,
    data: Any,
    on: Any,
    root: Path | None,
    split: Any,
    sizes: tuple[float, ...] | None,
) -> dict[str, Any]:
    """The result on the data of the run, or on that of this name."""
    from scalechannels.saving.saved_network import RUN
    from scalechannels.training.datasets import open_data
    from scalechannels.training.evaluate import evaluation

    if saved.sizes is not None:
        run = RunConfig.from_toml(saved.folder / RUN)
    elif data is not None:
        run = RunConfig(DataConfig(name=data))
    else:
        raise ValueError(f"'{folder}' does not say what it was trained on; give --data.name")
    used = run.data if data in (None, run.data.name) else DataConfig(name=data, seed=run.data.seed)
    used = replace(used, hold_out=used.hold_out or ("hold_out" in used.about.takes and split == "validation"))
    if images is not None:
        used = replace(used, folder=str(images))
    if saved.network.usage is not None and used.about.values != saved.values:
        takes, has = (RANGES[values] for values in (saved.values, used.about.values))
        raise ValueError(
            f"'{folder}' takes values from {takes}, but the images of {used.name} have {has}; choose other "
            "data with --data.name, or give labelled image files with --data"
        )
    source = open_data(used, on, root)
    if saved.names not in (None, list(source.classes)):
        known, given = (", ".join(names) for names in (saved.names, source.classes))
        raise ValueError(f"the network knows the classes {known}, but the data have {given}")
    return {
        "data": used.name,
        "trained": None if saved.sizes is None else list(saved.sizes),
        "classes": list(source.classes),
        "channels": list(getattr(saved.network, "grid", ())) or None,
        "evaluation": evaluation(saved.folder.name, saved.network.to(on), source, on, split, sizes),
    }


def table(result: dict[str, Any]) -> str:
    """Accuracy, worst class and strongest channel of each size; of unbalanced classes both accuracies."""
    from scalechannels.data.sizes import size_name
    from scalechannels.report.none_of_these import rejected
    from scalechannels.training.evaluate import is_unbalanced

    last = "strongest channel" if result["channels"] else ""
    both = is_unbalanced(result["evaluation"]["sizes"][0]["confusion"])
    beside = f"{'balanced':>12}" if both else ""
    lines = [f"{'size':>8}{'accuracy':>12}{beside}   {'worst class':<22}{last}".rstrip()]
    for entry in result["evaluation"]["sizes"]:
        counts = [sum(row) for row in entry["confusion"]]
        found, worst = min(
            (accuracy, index) for index, accuracy in enumerate(entry["per_class"]) if counts[index]
        )
        line = f"{size_name(entry['size']):>8}{entry['accuracy']:>10.2f} %"
        line += (f"{entry['balanced']:>10.2f} %" if both else "") + "   "
        line += f"{result['classes'][worst]} ({found:.1f} %)".ljust(22)
        if entry["selection"] and result["channels"]:
            strongest = max(range(len(entry["selection"])), key=entry["selection"].__getitem__)
            line += f"σ = {size_name(result['channels'][strongest])}"
        lines.append(line.rstrip())
    first = result["evaluation"]["sizes"][0]
    images = first["images"]
    if found := rejected(first["confusion"], result["classes"]):
        size = size_name(first["size"])
        lines += [f"\nat size {size}: false alarms {found.false_alarms}, missed {found.missed_objects}"]
    if "calibration" in first:
        lines += [
            f"\n{images:,} labelled images of each size: {result['data']}",
            f"at size {size_name(first['size'])}: balanced accuracy {first['balanced']:.1f} ± "
            f"{first['margin']:.1f} %, probabilities off by {first['calibration']:.1f} points on average",
        ]
        return "\n".join(lines)
    if result["data"] == "folder":
        return "\n".join([*lines, f"\n{images:,} held-out images of each size"])
    lines.append(f"\n{images:,} images of each size: {result['data']}, {result['evaluation']['split']} split")
    return "\n".join(lines)
