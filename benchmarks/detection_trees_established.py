"""A plain detector on the trees of `benchmarks.detection_trees`: torchvision's FCOS.

    python -m benchmarks.detection_trees_established --data FOLDER [--jitter] [--steps 3000] [--device cuda]

It learns from the same strip of one image, mirrored and turned, as `scalechannels train --against fcos` lets
it learn (`scalechannels.detection.established`). With --jitter the squares that it sees are enlarged or
shrunk by a factor from 1/2 to 2, the range of the test. Needs torchvision, and
a GPU to be done in minutes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.detection_trees import RANGE, SIZES, parts, precisions
from scalechannels.detection.established import STEPS, Established
from scalechannels.detection.learning import to_stderr
from scalechannels.detection.measuring import measure
from scalechannels.files import json_text, write_text
from scalechannels.training.runs import environment


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--jitter", action="store_true")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    start = time.perf_counter()
    learnt, images = parts(chosen.data, Path(tempfile.mkdtemp()))
    training = Established(
        "fcos",
        learnt,
        scales=RANGE if chosen.jitter else (1.0, 1.0),
        turns=True,
        seed=chosen.seed,
        steps=chosen.steps,
        device=chosen.device,
        report=to_stderr,
    )
    find = training.run()
    seconds, rows = round(time.perf_counter() - start), []
    for name, boxed in images.items():
        for size in SIZES:
            rows.append({"image": name, **precisions(measure(find, boxed.images, size, grey=False))})
            print(json.dumps(rows[-1]), flush=True)
    where = {name: environment(torch.device(chosen.device))[name] for name in ("device", "commit", "torch")}
    about = {"trees": learnt.objects, "steps": chosen.steps, "jitter": chosen.jitter, "seconds": seconds}
    about |= {"begins": training.begins}
    write_text(chosen.out, json_text({"learnt": about, "rows": rows, "environment": where}) + "\n")


if __name__ == "__main__":
    main()
