"""Whether the network that `train --data FOLDER` keeps is as good as the best candidate, on new images.

    python -m benchmarks.own_image_folders FOLDERS --train 225 --test 200
    scalechannels train --data FOLDERS/KIND                # prints the run's folder; the default budget
    python -m benchmarks.kept_network FOLDERS RUN [RUN …] [--without CANDIDATE …] [--output FILE]

KIND is fashion-crops, fashion-frames or cifar3. Every candidate of a run and the network that it keeps are
tested on the new images of its kind, at four sizes, and in frames off the centre. A kind takes the place of
what the file has of it. One seed: how the budget was spent depends on the machine, and the file says how.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import environment
from scalechannels.files import write_text
from scalechannels.report.kept import KEPT
from scalechannels.report.labelled import labelled
from scalechannels.saving.saved_network import SavedNetwork

SIZES, OFFSETS = ("0.5", "1", "2", "3"), ("2", "4")
RESULT = Path(__file__).parent / "results" / "kept_network.json"


def measured(folders: Path, run: Path, without: Sequence[str]) -> dict[str, Any]:
    """Accuracies in per cent, of each network at each size, and off the centre."""
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    kind = Path(report["folder"]).name
    own = {name: Path(one["folder"]).name for name, one in report["candidates"].items()}
    networks = {name: run / "candidates" / folder for name, folder in own.items() if name not in without}
    tests = {"sizes": [f"{kind}@{size}" for size in SIZES], "offsets": [f"{kind}+{far}" for far in OFFSETS]}
    found: dict[str, Any] = {}
    for name, folder in {**networks, KEPT: run}.items():
        saved = SavedNetwork.open(folder)
        found[name] = {
            group: [
                round(labelled(saved, folders / one, torch.device("cpu"))["sizes"][0]["accuracy"], 2)
                for one in wanted
                if (folders / one).exists()
            ]
            for group, wanted in tests.items()
        }
        print(kind, name, found[name], flush=True)
    plan = json.loads((run / "plan.json").read_text(encoding="utf-8"))
    return {
        "kind": kind,
        "images": report["images"],
        "new_images": len(list((folders / tests["sizes"][0]).rglob("*.png"))),
        "winner": report["verdict"]["winner"],
        "budget": report["budget"],
        "epochs": {one["name"]: one["config"]["training"]["epochs"] for one in plan["candidates"]},
        "left_out": report["left_out"],
        "told": {  # by the report: in pixels off the centre, 0 at the images' own size
            0 if entry["group"] == "size" else round(entry["value"] * report["object_pixels"]): round(
                entry["balanced"], 2
            )
            for entry in report["again"]["test"]
            if entry["group"] == "offset" or (entry["group"], entry["value"]) == ("size", 1)
        },
        "accuracy": found,
        "environment": environment(torch.device("cpu")),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", type=Path)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--without", nargs="*", default=(), help="candidates that are too slow to test")
    parser.add_argument("--output", type=Path, default=RESULT)
    chosen = parser.parse_args()
    known = json.loads(chosen.output.read_text(encoding="utf-8"))["runs"] if chosen.output.exists() else []
    found = {one["kind"]: one for one in known}
    for run in chosen.runs:
        one = measured(chosen.folders, run, chosen.without)
        found[one["kind"]] = one
    result = {"sizes": SIZES, "offsets": OFFSETS, "runs": list(found.values())}
    write_text(chosen.output, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
