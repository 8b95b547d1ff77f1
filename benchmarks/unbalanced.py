"""Unbalanced classes: what `--training.class-weights balanced` is worth, measured on validation images.

    python -m benchmarks.unbalanced [--root DATA] [--device cpu] [--steps 400] [--minutes 25]
    python -m benchmarks.unbalanced --table

Crops of Fashion-MNIST: 200 bags and 8 boots, which are easy to tell, and 200 coats, 40 pullovers and 8
blouses, which are not. Three seeds, which draw other images too. Every run has the recipe of `scalechannels
train --data`. Other images of the training set, 100 a class, are the validation part; no test image is read.
Results are appended to benchmarks/results/unbalanced.jsonl; what is there is not done again.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.cases import Case, case_options, measure_cases
from benchmarks.measure import environment
from benchmarks.own_image_folders import CLOTHES, write
from scalechannels.data.sources import load_fashion
from scalechannels.files import json_lines
from scalechannels.report.calibration import calibration_error, fitted_temperature
from scalechannels.report.candidates import CENTRE, RESIZED, candidates, with_epochs
from scalechannels.report.conditions import Condition, picture
from scalechannels.report.trial import answered, summary
from scalechannels.saving.saved_network import load
from scalechannels.training.config import DataConfig, RunConfig, TrainingConfig
from scalechannels.training.datasets import open_data
from scalechannels.training.fit import fit
from scalechannels.training.own_images import FolderData

RESULTS = Path(__file__).parent / "results" / "unbalanced.jsonl"
FOLDERS = {
    "easy": {"bag": 200, "boot": 8},
    "hard": {"coat": 200, "pullover": 40, "blouse": 8},
}
METHODS, WEIGHTS, SEEDS = (RESIZED, CENTRE), ("none", "balanced"), (0, 1, 2)
REACH, SIZES, CHECKED, KEPT = (0.5, 2.0), (0.5, 1.0, 2.0), 100, 3
KEYS = ("folder", "method", "seed", "weights")


def cases() -> Iterator[dict[str, Any]]:
    for seed in SEEDS:
        for folder in FOLDERS:
            for method in METHODS:
                for weights in WEIGHTS:
                    yield dict(zip(KEYS, (folder, method, seed, weights), strict=True))


def make_folder(root: Path, case: dict[str, Any], data: Path | None) -> Path:
    """The images of a case in parts that folders name; those of the test part are only there to be there."""
    read = load_fashion(data)
    order = torch.randperm(len(read.train_labels), generator=torch.Generator().manual_seed(case["seed"]))
    images, labels = read.train_images[order].view(-1, 1, 28, 28) / 255, read.train_labels[order]
    for name, count in FOLDERS[case["folder"]].items():
        mine = images[labels == CLOTHES.index(name)]
        ends = (0, CHECKED, CHECKED + KEPT, CHECKED + KEPT + count)
        for part, first, last in zip(("val", "test", "train"), ends, ends[1:], strict=False):
            write(root / part, mine[first:last], [name] * (last - first))
    return root


def measured(case: dict[str, Any], folder: Path, out: Path, device: str, steps: int) -> dict[str, Any]:
    """One candidate, trained, and tested on the validation part."""
    data = DataConfig("folder", folder=str(folder), images="crops", object_size=28.0, range=REACH)
    base = RunConfig(data, training=TrainingConfig(seed=case["seed"])).resolve(torch.device(device).type)
    config = candidates(base, TrainingConfig())[0][case["method"]]
    config = replace(config, training=replace(config.training, class_weights=case["weights"]))
    images = sum(FOLDERS[case["folder"]].values())
    epochs = math.ceil(steps / max(1, images // config.training.batch))
    config = with_epochs(config, epochs, images, TrainingConfig())
    (run,) = fit([config], out, device=device, split="validation", sizes=[1.0])
    network: Any = load(run.folder).to(device)
    held = open_data(config.data, device)
    assert isinstance(held, FolderData)
    shown, labels = held.images("validation"), torch.tensor(held.checked.labels)
    entries, logits = {}, []
    for size in SIZES:
        condition = Condition("size", size)
        pictures = [picture(image, condition, "crops", 28.0, number) for number, image in enumerate(shown)]
        answers = answered(network, pictures, device)
        logits.append(answers.logits)
        found = summary(condition, answers, labels, len(held.classes), 1.0)
        entries[f"{size:g}"] = {
            "balanced": round(found.balanced, 2),
            "per_class": dict(zip(held.classes, (round(one, 1) for one in found.per_class), strict=True)),
        }
    everything, of_each = torch.cat(logits), labels.repeat(len(SIZES))
    temperature = fitted_temperature(everything, of_each)
    return {
        **case,
        "steps": epochs * max(1, images // config.training.batch),
        "tested": len(labels),
        "sizes": entries,
        "calibration": round(calibration_error(everything / temperature, of_each), 2),
        "environment": environment(torch.device(device)),
    }


def table(results: list[dict[str, Any]]) -> str:
    """Balanced accuracy, the mean over sizes and seeds with the seeds' scatter, a column for each weighting.

    Beside it the accuracy of the rarest class at the images' own size.
    """
    cells: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for one in results:
        cells[one["folder"], one["method"], one["weights"]].append(one)
    lines = ["| folder | network | weights | balanced accuracy | rarest class | seeds |", "| ---" * 6 + " |"]
    for (folder, method, weights), ones in sorted(cells.items()):
        means = [statistics.fmean(entry["balanced"] for entry in one["sizes"].values()) for one in ones]
        counts = FOLDERS[folder]
        rarest = min(counts, key=counts.__getitem__)
        rare = statistics.fmean(one["sizes"]["1"]["per_class"][rarest] for one in ones)
        scatter = f" ± {statistics.stdev(means):.1f}" if len(means) > 1 else ""
        listed = ", ".join(f"{count} {name}" for name, count in counts.items())
        lines.append(
            f"| {listed} | {method} | {weights} | {statistics.fmean(means):.1f}{scatter} | {rare:.1f} | "
            f"{len(ones)} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = case_options(__doc__)
    parser.add_argument("--steps", type=int, default=400)
    given = parser.parse_args()

    def one_case(case: Case, scratch: Path) -> dict[str, Any]:
        folder = make_folder(scratch / "images", case, given.root)
        return measured(case, folder, scratch / "runs", given.device, given.steps)

    if not given.table:
        measure_cases(
            cases(),
            RESULTS,
            given.minutes,
            one_case,
            lambda one: {size: entry["balanced"] for size, entry in one["sizes"].items()},
        )
    print(table(json_lines(RESULTS)))


if __name__ == "__main__":
    main()
