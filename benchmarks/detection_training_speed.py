"""How long a detector learns from twelve labelled coins, on a CPU.

    python -m benchmarks.detection_training_speed [--threads 2] [--out FILE]

The upper half of scikit-image's photograph (see `benchmarks.detection_coins`), with the defaults of
`scalechannels train`: what that command calls training, without its report. The seconds are those of the
wall clock; `cpu_seconds`, of all cores together, change less where other programs run, of which `load` tells:
how many processes wanted a core in the minute before, and in the one after. Needs scikit-image.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.detection_coins import halves
from scalechannels.data.boxes.reading import read_boxes
from scalechannels.detection.learning import to_stderr
from scalechannels.detection.own_boxes import Choices, Training
from scalechannels.files import json_text, write_text
from scalechannels.training.runs import environment


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/detection_training_cpu.json"))
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    with tempfile.TemporaryDirectory() as folder:
        halves(Path(folder))
        boxed = read_boxes(Path(folder) / "upper.csv").with_objects()
        load = [round(os.getloadavg()[0], 1)]
        begun, spent = time.perf_counter(), time.process_time()
        training = Training(boxed, Choices.of(boxed), report=to_stderr)
        training.run()
        seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - spent
    result = {
        "objects": boxed.objects,
        "steps": training.steps,
        "threads": chosen.threads,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),
        "load": [*load, round(os.getloadavg()[0], 1)],
        "environment": {
            name: environment(torch.device("cpu"))[name] for name in ("device", "commit", "torch")
        },
    }
    write_text(chosen.out, json_text(result) + "\n")
    print(json_text(result))


if __name__ == "__main__":
    main()
