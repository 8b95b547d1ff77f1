"""Who wins on how many images: resized CNN, augmented CNN, scale channels at the centre and everywhere.

    python -m benchmarks.own_images [--root DATA] [--device cpu] [--minutes 25] [--output FILE]
    python -m benchmarks.own_images --collect FILE
    python -m benchmarks.own_images --table

Fashion-MNIST with 10, 30, 100, 300 and 1,000 images a class, as crops of 28 pixels and as objects of 28 in
frames of 56, three seeds, which draw other images too. Every candidate has the recipe of `scalechannels train
--data` and the same number of steps: 400, or three passes over the images where these are more. All are
tested on the same 1,000 images of Fashion-MNIST's test set: at sizes 1/2, 1 and 2, and at size 1 moved by 2
and 4 pixels along both axes. Results are appended to benchmarks/results/own_images.jsonl, one seed after
another; what is there is not done again, so the command resumes. On a machine whose checkout is not kept they
go to a file of its own (--output), and --collect puts these among the results, in place of what an earlier
recipe had. DATA is as `own_image_folders` has it.

No image file is written or read, and no network is kept: the machine needs PyTorch and NumPy alone. There,
name DATA by the variable SCALECHANNELS_DATA in place of --root.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import torch

from benchmarks.bare_machine import stand_in

stand_in()  # before the library is imported

from benchmarks.cases import Case, case_options, measure_cases  # noqa: E402
from benchmarks.experiment_runs import Line  # noqa: E402
from benchmarks.measure import environment  # noqa: E402
from benchmarks.own_image_folders import as_bytes, chosen, crops, fashion, frames  # noqa: E402
from scalechannels.data.arrays import ImageArrays, from_zero_to_one  # noqa: E402
from scalechannels.data.folder import Part  # noqa: E402
from scalechannels.data.survey import survey  # noqa: E402
from scalechannels.files import json_lines, write_text  # noqa: E402
from scalechannels.report.candidates import (  # noqa: E402
    AUGMENTED,
    CENTRE,
    EVERYWHERE,
    OFF_CENTRE,
    RESIZED,
    candidates,
    with_epochs,
)
from scalechannels.report.conditions import Condition, picture  # noqa: E402
from scalechannels.report.trial import answered  # noqa: E402
from scalechannels.training.config import DataConfig, ResolvedRun, RunConfig, TrainingConfig  # noqa: E402
from scalechannels.training.distributed import joined  # noqa: E402
from scalechannels.training.group import Group, How  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "own_images.jsonl"
COUNTS, KINDS, SEEDS = (10, 30, 100, 300, 1_000), ("crops", "frames"), (0, 1, 2)
ONE_SIZE = "scale channels, one size"
"""As the paper trains them: on the images as they are, and never on rescaled ones."""
METHODS = (RESIZED, AUGMENTED, ONE_SIZE, CENTRE, EVERYWHERE)
OBJECT, REACH, FRAME, TESTED, CHECKED = 28.0, (0.5, 2.0), 56, 100, 2
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
    """All of them, the slowest method last, one seed after another, fewest images first.

    "moved"     by how many pixels the recipe moves training images; rows of another recipe are not these
    """
    for methods in (METHODS[:-1], METHODS[-1:]):
        for seed, count, kind, method in product(SEEDS, COUNTS, KINDS, methods):
            if not (kind == "frames" and method == RESIZED):  # resizing is for crops
                case = {"images": count, "seed": seed, "kind": kind, "method": method}
                yield {**case, "moved": round(OFF_CENTRE[kind] * OBJECT)}


clothes = cache(fashion)  # read and verified once, not for each case


def images_of(case: Case, data: Path | None) -> ImageArrays:
    """The images of a case in three parts, in the order that files of them would have."""
    images, labels = clothes(data, "train")
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(case["seed"]))
    images, labels = images[order], [labels[index] for index in order.tolist()]
    kept = chosen(labels, case["images"] + CHECKED)
    to_check = chosen(labels, CHECKED)
    test, test_labels = clothes(data, "test")
    made: dict[Part, tuple[torch.Tensor, list[str], list[int]]] = {
        "test": (test, test_labels, chosen(test_labels, TESTED)),
        "train": (images, labels, [index for index in kept if index not in set(to_check)]),
        "validation": (images, labels, to_check),
    }
    classes = sorted(set(labels))
    pixels, numbers, given = [], [], []
    for part, (of_part, names, indices) in made.items():
        indices.sort(key=names.__getitem__)  # as folders list them
        shown = of_part[indices]
        shown = crops(shown, 1) if case["kind"] == "crops" else frames(shown, 1, FRAME)
        pixels += list(as_bytes(shown))
        numbers += [classes.index(names[index]) for index in indices]
        given += [part] * len(indices)
    return replace(ImageArrays.of(pixels, numbers, classes), given=tuple(given))


def configured(case: Case, images: ImageArrays, device: str, steps: int) -> ResolvedRun:
    """The run of a case: the recipe of `train --data`, and so many steps at least."""
    data = DataConfig("folder", folder="arrays", images=case["kind"], object_size=OBJECT, range=REACH)
    # A GPU would compute with fewer bits than the rows that come from other machines.
    base = RunConfig(data, training=TrainingConfig(seed=case["seed"], precision="float32"))
    resolved = base.resolve(torch.device(device).type, (images, survey(images)))
    said = TrainingConfig()
    found, _ = candidates(resolved, said)
    one_size = replace(found[CENTRE], data=resolved.data)
    config = one_size if case["method"] == ONE_SIZE else found[case["method"]]
    count = images.given.count("train")
    epochs = max(PASSES, math.ceil(steps / max(1, count // config.training.batch)))
    assert config.training.crops == case["moved"]
    return with_epochs(config, epochs, count, said)


def measured(case: Case, data: Path | None, device: str, steps: int) -> dict[str, Any]:
    """One candidate, trained and tested."""
    images = images_of(case, data)
    config, where = configured(case, images, device, steps), torch.device(device)
    started = time.perf_counter()
    with joined(where) as processes:
        how = How(compiled=False, images=images)  # compiling would take longer than such short runs
        group = Group([Line(config, Path(), None)], where, processes, how)
        group.train()
    seconds = time.perf_counter() - started
    network, tested = group.networks[0].eval(), images.parts(0, 0).test
    labels = torch.tensor(tested.labels)
    accuracy = {}
    for name, condition in CONDITIONS.items():
        shown = (
            picture(from_zero_to_one(image), condition, case["kind"], OBJECT, number)
            for number, image in enumerate(tested.pixels)
        )
        right = answered(network, shown, where).logits.argmax(1) == labels
        accuracy[name] = round(100 * float(right.double().mean()), 2)
    return {
        **case,
        "steps": config.training.epochs * max(1, images.given.count("train") // config.training.batch),
        "tested": len(labels),
        "accuracy": accuracy,
        "seconds": round(seconds, 1),
        "environment": environment(where),
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


def collect(path: Path) -> None:
    """Put the rows of a file among the results, in place of those of the same cases."""

    def case(row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in ("images", "seed", "kind", "method"))

    new = {case(row): row for row in json_lines(path)}
    kept = [row for row in json_lines(RESULTS) if case(row) not in new]
    write_text(RESULTS, "".join(json.dumps(row) + "\n" for row in (*kept, *new.values())))


def main() -> None:
    parser = case_options(__doc__)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--collect", type=Path, metavar="FILE")
    given = parser.parse_args()
    if given.collect is not None:
        collect(given.collect)
    there = json_lines(RESULTS)
    left = (case for case in cases() if not any(case.items() <= one.items() for one in there))
    if not (given.table or given.collect):
        measure_cases(
            left,
            given.output,
            given.minutes,
            lambda case, _: measured(case, given.root, given.device, given.steps),
            lambda one: (one["accuracy"], f"{one['seconds']:.0f} s"),
        )
    print(table([*there, *(json_lines(given.output) if given.output != RESULTS else [])]))


if __name__ == "__main__":
    main()
