"""The table of the detection benchmarks, from the file of what was found.

    python -m benchmarks.detection_table [FILE.jsonl] [--split test] [--output FILE.json]

Average precision at an IoU of 0.5, the mean over the classes, is pycocotools'.
Recall and precision are those at a probability of 1/2: means over seeds, with 95 % intervals by drawing
scenes again, with repetition; the seeds of a row share their scenes.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from benchmarks.detection_scenes import BACKGROUNDS, PICTURED, made
from scalechannels.detection.average_precision import Ranked, right
from scalechannels.detection.coco_precision import coco_precision as coco_average
from scalechannels.files import json_lines, json_text

DRAWS = 1000
Scenes = dict[int, dict[str, Any]]


def coco_precision(found: Scenes, truth: Scenes) -> float:
    """Mean average precision over the classes at an IoU of 0.5, by pycocotools."""
    there = [
        Ranked(
            torch.tensor(one["boxes"], dtype=torch.float64),
            torch.tensor(one["labels"]),
            torch.ones(len(one["labels"])),
        )
        for one in truth.values()
    ]
    lines = [
        torch.tensor(found[scene]["found"] if scene in found else [], dtype=torch.float64).view(-1, 6)
        for scene in truth
    ]
    return coco_average([Ranked(one[:, :4], one[:, 4].long(), one[:, 5]) for one in lines], there).half


def counts(found: Scenes, truth: Scenes) -> dict[int, tuple[int, int, int]]:
    """Of each scene, at probability 1/2: the right detections, all detections, and the objects."""
    result = {}
    for scene, one in found.items():
        certain = [line for line in one["found"] if line[5] >= 0.5]
        boxes = torch.tensor([line[:4] for line in certain], dtype=torch.float64).view(-1, 4)
        labels, scores = (torch.tensor([line[place] for line in certain]) for place in (4, 5))
        there = truth[scene]
        real = Ranked(
            torch.tensor(there["boxes"]), torch.tensor(there["labels"]), torch.ones(len(there["labels"]))
        )
        hits = int(right(Ranked(boxes, labels, scores), real).sum())
        result[scene] = hits, len(certain), len(there["labels"])
    return result


def interval(seeds: list[dict[int, tuple[int, int, int]]]) -> dict[str, Any]:
    """Recall and precision, means over seeds, with intervals over scenes."""
    scenes = sorted(seeds[0])

    def figures(drawn: list[int]) -> tuple[float, float]:
        sums = [[sum(one[scene][place] for scene in drawn) for place in range(3)] for one in seeds]
        return fmean(hit / real for hit, _, real in sums), fmean(hit / max(said, 1) for hit, said, _ in sums)

    chance = random.Random(0)
    drawn = [figures(chance.choices(scenes, k=len(scenes))) for _ in range(DRAWS)]
    result = {}
    for place, name in enumerate(("recall", "precision")):
        values = sorted(one[place] for one in drawn)
        low, high = values[round(0.025 * DRAWS)], values[round(0.975 * DRAWS) - 1]
        result[name] = {"mean": figures(scenes)[place], "low": low, "high": high}
    return result


def table(path: Path, split: str) -> dict[str, Any]:
    lines = [line for line in json_lines(path) if line["split"] == split]
    rows: dict[str, dict[str, dict[int, Scenes]]] = defaultdict(lambda: defaultdict(dict))
    about: dict[str, Any] = {}
    for line in lines:
        rows[line["row"]][line["background"]].setdefault(line["seed"], {})[line["scene"]] = line
        about[line["row"]] = line["trained"]
    report: dict[str, Any] = {}
    for background in (*BACKGROUNDS, PICTURED):
        count = max((len(one) for row in rows.values() for one in row[background].values()), default=0)
        truth = {
            number: {"boxes": one.boxes.tolist(), "labels": one.labels.tolist()}
            for number, one in made(split, background, count)
        }
        for row, found in rows.items():
            seeds = list(found[background].values())
            if not seeds:
                continue
            precision = [coco_precision(one, truth) for one in seeds]
            seconds = [line["seconds"] for one in seeds for line in one.values()]
            report.setdefault(row, {"trained": about[row]})[background] = {
                "objects": sum(len(one["labels"]) for one in truth.values()),
                "average_precision": precision,
                **interval([counts(one, truth) for one in seeds]),
                "seconds": sorted(seconds)[len(seconds) // 2],
            }
    return report


def cells(one: dict[str, Any], first: dict[str, Any]) -> list[str]:
    """A row as the table shows it: average precision, recall and precision by background, the time.

    first   the row whose time is 1; of rows that ran on another device, or at another time, none is told
    """
    shown = []
    for background in (*BACKGROUNDS, PICTURED):  # few rows have photographs
        shown.append(f"{fmean(one[background]['average_precision']):.3f}" if background in one else "–")
    for name in ("recall", "precision"):
        for background in BACKGROUNDS:
            found = one[background][name]
            shown.append(f"{found['mean']:.2f} [{found['low']:.2f}, {found['high']:.2f}]")
    device = first["trained"]["device"]
    comparable = one["trained"].get("device") == device
    return [*shown, f"{one['plain']['seconds'] / first['plain']['seconds']:.2f}" if comparable else "–"]


def markdown(report: dict[str, Any]) -> str:
    """The table, the rows in the order of the file; below it what each network was trained with."""
    heads = ["row", "seeds", *(f"AP, {one}" for one in (*BACKGROUNDS, PICTURED))]
    heads += [f"{name}, {one}" for name in ("recall", "precision") for one in BACKGROUNDS]
    first = next(iter(report.values()))
    lines = [[*heads, "time"], ["---"] * (len(heads) + 1)]
    for row, one in report.items():
        lines.append([row, str(len(one["plain"]["average_precision"])), *cells(one, first)])
    budgets = [
        f"{row}: {told['steps']:,} steps of {told.get('windows', told.get('images')):,} "
        f"{'windows' if 'windows' in told else 'images'}, {told['seconds']} s on {told['device']}"
        for row, told in ((row, one["trained"]) for row, one in report.items())
        if "steps" in told
    ]
    return "\n".join(["| " + " | ".join(line) + " |" for line in lines] + ["", *budgets])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, nargs="?", default=Path("benchmarks/results/detection.jsonl"))
    parser.add_argument("--split", choices=("test", "validation"), default="test")
    parser.add_argument("--output", type=Path, help="also write the JSON there")
    chosen = parser.parse_args()
    report = table(chosen.file, chosen.split)
    if chosen.output is not None:
        chosen.output.write_text(json_text(report) + "\n", encoding="utf-8")
    print(markdown(report))


if __name__ == "__main__":
    main()
