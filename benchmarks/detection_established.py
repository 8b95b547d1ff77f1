"""An established detector on the same scenes: torchvision's FCOS with a ResNet-50 and a feature pyramid.

    python -m benchmarks.detection_established --choose [--chosen FILE]      the rates, on validation scenes
    python -m benchmarks.detection_established [--chosen FILE] [--seeds 0 1 2] [--out FILE]

Trained from scratch on the canvases of digits that our detector learns from, in as many steps on as many. In
the row with jitter each canvas is enlarged or shrunk by a factor from 1/2 to 4 first, the range of the test:
which our rows do without. Optimiser and rate of each row are chosen by short
trainings on validation scenes. The same command goes on where the last one stopped.

Needs torchvision, and a GPU to be done in minutes; of our own dependencies, PyTorch and NumPy suffice.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.bare_machine import stand_in
from scalechannels.files import json_lines

ROWS = {"fcos": False, "fcos, jitter": True}
"""The rows of the table, and whether each has jitter."""
TRIED = (("adamw", 3e-4), ("adamw", 1e-3), ("adamw", 1e-4), ("sgd", 0.01))


class Clock:
    """Says when no further training may begin."""

    def __init__(self, minutes: float) -> None:
        self.start, self.minutes = time.perf_counter(), minutes

    def over(self) -> bool:
        over = time.perf_counter() - self.start > 60 * self.minutes
        if over:
            print(f"no training is begun after {self.minutes:g} minutes; the same command goes on")
        return over


def choose(chosen: argparse.Namespace, clock: Clock) -> None:
    """Train each row shortly with each optimiser and rate, and write down which was best."""
    import torch

    from benchmarks.detection_scenes import BACKGROUNDS, made
    from benchmarks.established_training import method, train
    from scalechannels.detection.training import digits_of_one_size

    device, digits = torch.device(chosen.device), digits_of_one_size()
    scenes = [one for background in BACKGROUNDS for _, one in made("validation", background, chosen.scenes)]
    report = json.loads(chosen.chosen.read_text("utf-8")) if chosen.chosen.exists() else {"tried": []}
    how = {"steps": chosen.steps, "scenes": len(scenes)}
    for by, rate in TRIED:
        for row in chosen.rows:
            trial = {"row": row, "optimiser": by, "rate": rate, **how}
            if any(trial.items() <= known.items() for known in report["tried"]) or clock.over():
                continue
            print(f"{row}, {by} at {rate:g}", flush=True)
            model, _ = train(
                digits, by=by, rate=rate, jitter=ROWS[row], steps=chosen.steps, seed=0, device=device
            )
            start, look = time.perf_counter(), method(model, device)
            trial["average_precision"] = round(precision([look(one.image) for one in scenes], scenes), 4)
            passed = (time.perf_counter() - start) / len(scenes)
            print(f"  average precision {trial['average_precision']:.3f}, {passed:.3f} s a scene", flush=True)
            report["tried"].append(trial)
            report["chosen"] = best(report["tried"])
            chosen.chosen.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report.get("chosen")))


def best(tried: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """For each row the optimiser and rate of the highest average precision; of equal ones the first."""
    found: dict[str, dict[str, Any]] = {}
    for trial in sorted(tried, key=lambda one: -one["average_precision"]):
        found.setdefault(trial["row"], {name: trial[name] for name in ("optimiser", "rate")})
    return found


def precision(found: Sequence[Any], scenes: Sequence[Any]) -> float:
    """Average precision at an IoU of 0.5 of what was found in scenes."""
    import torch

    from scalechannels.detection.average_precision import Ranked, average_precision

    lines = [torch.tensor(one, dtype=torch.float64).view(-1, 6) for one in found]
    said = [Ranked(one[:, :4], one[:, 4], one[:, 5]) for one in lines]
    truth = [Ranked(one.boxes, one.labels, torch.ones(len(one.labels))) for one in scenes]
    return average_precision(said, truth)


def run(chosen: argparse.Namespace, clock: Clock) -> None:
    """Train each row with each seed, and look into the scenes that the file does not have yet."""
    import torch

    from benchmarks.detection_scenes import BACKGROUNDS, CANVASES, look, training_told
    from benchmarks.established_training import method, train
    from scalechannels.detection.training import digits_of_one_size

    choices = json.loads(chosen.chosen.read_text("utf-8"))["chosen"] if chosen.optimiser is None else {}
    device, digits = torch.device(chosen.device), digits_of_one_size()
    for seed in chosen.seeds:
        for row in chosen.rows:
            lines = [
                line
                for line in json_lines(chosen.out)
                if (line["row"], line["seed"], line["split"]) == (row, seed, chosen.split)
            ]
            if len(lines) >= len(BACKGROUNDS) * chosen.scenes:
                print(f"{row}, seed {seed}: done before")
                continue
            if clock.over():
                return
            one = choices.get(row) or {"optimiser": chosen.optimiser, "rate": chosen.rate}
            print(f"{row}, seed {seed}, {one['optimiser']} at {one['rate']:g}", flush=True)
            start = time.perf_counter()
            model, how = train(
                digits,
                by=one["optimiser"],
                rate=one["rate"],
                jitter=ROWS[row],
                steps=chosen.steps,
                seed=seed,
                device=device,
            )
            about = training_told(chosen.steps, {"images": CANVASES}, start, device) | how
            start = time.perf_counter()
            look({row: method(model, device)}, {row: about}, chosen.split, chosen.scenes, chosen.out, seed)
            passed = time.perf_counter() - start
            print(
                f"  trained in {about['seconds']} s, {how['how']}; all scenes in {passed:.1f} s", flush=True
            )


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--choose", action="store_true", help="optimiser and rate, which --chosen then holds")
    parser.add_argument("--chosen", type=Path, default=Path("benchmarks/results/detection_established.json"))
    parser.add_argument(
        "--optimiser", choices=("adamw", "sgd"), help="instead of the chosen one; with --rate"
    )
    parser.add_argument("--rate", type=float)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--split", choices=("test", "validation"), default="test")
    parser.add_argument("--scenes", type=int, help="of each background; by default 24, to choose 6")
    parser.add_argument("--steps", type=int, help="by default 3000, to choose 600")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no training is begun after them")
    parser.add_argument("--root", type=Path, help="folder of MNIST")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/detection.jsonl"))
    chosen = parser.parse_args(words)
    if (chosen.optimiser is None) != (chosen.rate is None):
        parser.error("give --optimiser and --rate together, or neither")
    if chosen.optimiser is None and not chosen.choose and not chosen.chosen.exists():
        parser.error(f"{chosen.chosen} is missing: run --choose first, or give --optimiser and --rate")
    chosen.scenes = chosen.scenes or (6 if chosen.choose else 24)
    chosen.steps = chosen.steps or (600 if chosen.choose else 3000)
    if chosen.root is not None:  # digits and scenes both look there
        os.environ["SCALECHANNELS_DATA"] = str(chosen.root)
    stand_in()
    (choose if chosen.choose else run)(chosen, Clock(chosen.minutes))


if __name__ == "__main__":
    main()
