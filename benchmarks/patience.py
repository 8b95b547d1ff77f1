"""Early stopping: what `--training.patience` is worth on a small folder, and how much time it saves.

    python -m benchmarks.patience [--root DATA] [--device cpu] [--minutes 25]
    python -m benchmarks.patience --table

Crops of Fashion-MNIST, ten classes of 30 images to train on and 10 to stop by, three seeds, which draw other
images too. Every run has the recipe of `scalechannels train --data` and stops by itself, keeps its best
epoch, or does neither. All are measured on 50 other images a class of the training set, none of the test set.
Results are appended to benchmarks/results/patience.jsonl; what is there is not done again.
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
from scalechannels.report.candidates import CENTRE, RESIZED, candidates, with_epochs
from scalechannels.report.conditions import Condition, picture
from scalechannels.report.trial import answered
from scalechannels.saving.saved_network import load
from scalechannels.training.config import DataConfig, RunConfig, TrainingConfig
from scalechannels.training.datasets import open_data
from scalechannels.training.fit import fit
from scalechannels.training.own_images import FolderData

RESULTS = Path(__file__).parent / "results" / "patience.jsonl"
PARTS = {"train": 30, "val": 10, "test": 50}
STEPS = {RESIZED: 1000, CENTRE: 400}
NEVER = 100_000
PATIENCE: dict[str, int | None] = {"off": None, "10 epochs": 10, "best epoch of all": NEVER}
SEEDS, REACH, SIZES = (0, 1, 2), (0.5, 2.0), (0.5, 1.0, 2.0)
KEYS = ("seed", "method", "patience")


def cases() -> Iterator[dict[str, Any]]:
    for seed in SEEDS:
        for method in STEPS:
            for patience in PATIENCE:
                yield dict(zip(KEYS, (seed, method, patience), strict=True))


def make_folder(root: Path, seed: int, data: Path | None) -> Path:
    read = load_fashion(data)
    order = torch.randperm(len(read.train_labels), generator=torch.Generator().manual_seed(seed))
    images, labels = read.train_images[order].view(-1, 1, 28, 28) / 255, read.train_labels[order]
    for label, name in enumerate(CLOTHES):
        mine, first = images[labels == label], 0
        for part, count in PARTS.items():
            write(root / part, mine[first : first + count], [name] * count)
            first += count
    return root


def measured(case: dict[str, Any], folder: Path, out: Path, device: str) -> dict[str, Any]:
    data = DataConfig("folder", folder=str(folder), images="crops", object_size=28.0, range=REACH)
    base = RunConfig(data, training=TrainingConfig(seed=case["seed"])).resolve(torch.device(device).type)
    config = candidates(base, TrainingConfig())[0][case["method"]]
    config = replace(config, training=replace(config.training, patience=PATIENCE[case["patience"]]))
    images = PARTS["train"] * len(CLOTHES)
    epochs = math.ceil(STEPS[case["method"]] / (images // config.training.batch))
    config = with_epochs(config, epochs, images, TrainingConfig())
    (run,) = fit([config], out, device=device, split="test", sizes=[1.0])
    result = run.result()
    network: Any = load(run.folder).to(device)
    held = open_data(config.data, device)
    assert isinstance(held, FolderData)
    shown, labels = held.images("test"), torch.tensor(held.kept.labels)
    accuracy = {}
    for size in SIZES:
        condition = Condition("size", size)
        pictures = [picture(image, condition, "crops", 28.0, number) for number, image in enumerate(shown)]
        right = answered(network, pictures, device).logits.argmax(1) == labels
        accuracy[f"{size:g}"] = round(100 * float(right.double().mean()), 2)
    return {
        **case,
        "planned": epochs,
        "epochs": len(result["history"]),
        "kept": result.get("kept_epoch"),
        "accuracy": accuracy,
        "seconds": round(result["seconds"]["training"], 1),
        "environment": environment(torch.device(device)),
    }


def table(results: list[dict[str, Any]]) -> str:
    """The mean accuracy over sizes and seeds with the seeds' scatter, and how many epochs a run had."""
    cells: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for one in results:
        cells[one["method"], one["patience"]].append(one)
    lines = ["| network | patience | accuracy | epochs | seeds |", "| ---" * 5 + " |"]
    for (method, patience), ones in sorted(cells.items()):
        means = [statistics.fmean(one["accuracy"].values()) for one in ones]
        scatter = f" ± {statistics.stdev(means):.1f}" if len(means) > 1 else ""
        epochs = statistics.fmean(one["epochs"] for one in ones)
        lines.append(
            f"| {method} | {patience} | {statistics.fmean(means):.1f}{scatter} | {epochs:.0f} of "
            f"{ones[0]['planned']} | {len(ones)} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = case_options(__doc__)
    given = parser.parse_args()

    def one_case(case: Case, scratch: Path) -> dict[str, Any]:
        folder = make_folder(scratch / "images", case["seed"], given.root)
        return measured(case, folder, scratch / "runs", given.device)

    if not given.table:
        measure_cases(
            cases(),
            RESULTS,
            given.minutes,
            one_case,
            lambda one: (one["accuracy"], one["epochs"], one["kept"]),
        )
    print(table(json_lines(RESULTS)))


if __name__ == "__main__":
    main()
