"""Who wins on how many images: resized CNN, augmented CNN, scale channels at the centre and everywhere.

    python -m benchmarks.own_images [--root DATA] [--device cpu] [--steps 400] [--minutes 25]
    python -m benchmarks.own_images --table

Fashion-MNIST with 10, 30, 100, 300 and 1,000 images a class, as crops of 28 pixels and as objects of 28 in
frames of 56, three seeds, which draw other images too. Every candidate has the recipe of `scalechannels train
--data` and the same number of steps: 400, or three passes over the images where these are more. All are
tested on the same 1,000 images of Fashion-MNIST's test set: at sizes 1/2, 1 and 2, and at size 1 moved by 2
and 4 pixels along both axes. Results are appended to benchmarks/results/own_images.jsonl, one seed after
another; what is there is not done again, so the command resumes. DATA is as `own_image_folders` has it.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import torch

from benchmarks.cases import Case, case_options, measure_cases
from benchmarks.measure import environment
from benchmarks.own_image_folders import chosen, crops, fashion, frames, write
from scalechannels.files import json_lines
from scalechannels.report.candidates import AUGMENTED, CENTRE, EVERYWHERE, RESIZED, candidates, with_epochs
from scalechannels.report.conditions import Condition, picture
from scalechannels.report.trial import answered
from scalechannels.saving.saved_network import load
from scalechannels.training.config import DataConfig, RunConfig, TrainingConfig
from scalechannels.training.datasets import open_data
from scalechannels.training.fit import fit
from scalechannels.training.own_images import FolderData

RESULTS = Path(__file__).parent / "results" / "own_images.jsonl"
COUNTS, KINDS, SEEDS = (10, 30, 100, 300, 1_000), ("crops", "frames"), (0, 1, 2)
ONE_SIZE = "scale channels, one size"
"""As the paper trains them: on the images as they are, and never on rescaled ones."""
METHODS = (RESIZED, AUGMENTED, ONE_SIZE, CENTRE, EVERYWHERE)
REACH, FRAME, TESTED, CHECKED = (0.5, 2.0), 56, 100, 2
PASSES = 3
"""Over the training images, at least: a thousand a class are not seen in 400 steps."""
CONDITIONS = {
    "1/2": Condition("size", 0.5),
    "1": Condition("size", 1.0),
    "2": Condition("size", 2.0),
    "2 off": Condition("offset", 1 / 14),
    "4 off": Condition("offset", 1 / 7),
}
MEANS = ("1/2", "1", "2", "2 off", "4 off")


def cases() -> Iterator[dict[str, Any]]:
    """All of them, the slowest method last, one seed after another, fewest images first."""
    for methods in (METHODS[:-1], METHODS[-1:]):
        for seed, count, kind, method in product(SEEDS, COUNTS, KINDS, methods):
            if not (kind == "frames" and method == RESIZED):  # resizing is for crops
                yield {"images": count, "seed": seed, "kind": kind, "method": method}


def make_folder(root: Path, case: dict[str, Any], data: Path) -> Path:
    """The images of a case in parts that folders name."""
    images, labels = fashion(data, "train")
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(case["seed"]))
    images, labels = images[order], [labels[index] for index in order.tolist()]
    kept = chosen(labels, case["images"] + CHECKED)
    to_check = chosen(labels, CHECKED)
    test, test_labels = fashion(data, "test")
    tested = chosen(test_labels, TESTED)
    made = {
        "train": (images, labels, [index for index in kept if index not in set(to_check)]),
        "val": (images, labels, to_check),
        "test": (test, test_labels, tested),
    }
    for part, (pixels, names, indices) in made.items():
        shown = pixels[indices]
        shown = crops(shown, 1) if case["kind"] == "crops" else frames(shown, 1, FRAME)
        write(root / part, shown, [names[index] for index in indices])
    return root


def measured(case: dict[str, Any], folder: Path, out: Path, device: str, steps: int) -> dict[str, Any]:
    """One candidate, trained and tested."""
    data = DataConfig("folder", folder=str(folder), images=case["kind"], object_size=28.0, range=REACH)
    base = RunConfig(data, training=TrainingConfig(seed=case["seed"])).resolve(torch.device(device).type)
    said = TrainingConfig()
    found, _ = candidates(base, said)
    count = 10 * case["images"]
    one_size = replace(found[CENTRE], data=base.data)
    config = one_size if case["method"] == ONE_SIZE else found[case["method"]]
    epochs = max(PASSES, math.ceil(steps / max(1, count // config.training.batch)))
    config = with_epochs(config, epochs, count, said)
    started = time.perf_counter()
    (run,) = fit([config], out, device=device, split="test", sizes=[1.0])
    seconds = time.perf_counter() - started
    network: Any = load(run.folder).to(device)
    held = open_data(config.data, device)
    assert isinstance(held, FolderData)
    images, labels = held.images("test"), torch.tensor(held.kept.labels)
    accuracy = {}
    for name, condition in CONDITIONS.items():
        shown = [picture(image, condition, case["kind"], 28.0, number) for number, image in enumerate(images)]
        right = answered(network, shown, device).logits.argmax(1) == labels
        accuracy[name] = round(100 * float(right.double().mean()), 2)
    return {
        **case,
        "steps": epochs * max(1, count // config.training.batch),
        "tested": len(labels),
        "accuracy": accuracy,
        "seconds": round(seconds, 1),
        "environment": environment(torch.device(device)),
    }


def table(results: list[dict[str, Any]]) -> str:
    """A row for each number of images and kind: the mean over all tests and seeds, and the seeds' scatter."""
    cells: dict[tuple[int, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in results:
        mean = statistics.fmean(one["accuracy"][name] for name in MEANS)
        cells[one["images"], one["kind"]][one["method"]].append(mean)
    lines = [f"| images a class | as | {' | '.join(METHODS)} |", f"| ---{' | ---' * (len(METHODS) + 1)} |"]
    for (count, kind), row in sorted(cells.items(), key=lambda item: (item[0][1], item[0][0])):
        said = []
        for method in METHODS:
            values = row.get(method, [])
            scatter = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
            seeds = f" ({len(values)})" if values and len(values) < len(SEEDS) else ""
            said.append(f"{statistics.fmean(values):.1f}{scatter}{seeds}" if values else "–")
        lines.append(f"| {count:,} | {kind} | {' | '.join(said)} |")
    return "\n".join(lines)


def main() -> None:
    parser = case_options(__doc__, Path("data"))
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
            lambda one: (one["accuracy"], f"{one['seconds']:.0f} s"),
        )
    print(table(json_lines(RESULTS)))


if __name__ == "__main__":
    main()
