"""Candidates for the shipped detector of digits: trained on a GPU, compared in validation scenes.

    python -m benchmarks.detection_candidates --data .data/candidates.pt --out FOLDER
        [--candidates longer …] [--together 1] [--minutes 8] [--steps 8000]
    python -m benchmarks.detection_candidates --ship FOLDER/weights-NAME-0.pt --to NETWORK

The file of data is made by `benchmarks.candidates_data`; nothing of a test split is in it. Every candidate is
trained with seed 0; the shipped network is looked at as it is, to compare with. The best candidate, by the
mean of its average precision on plain and on noisy background and among those that stay quiet on photographs
for validation, is trained with two more seeds. FOLDER/candidates.jsonl has a line for each training,
FOLDER/weights-NAME-SEED.pt its weights; what is there is not trained again.

A line has, for each background, average precision (the mean over the classes of `average_precision`), and
the errors at a probability of 1/2 (see `benchmarks.detection_errors`), also of objects smaller than 0.8; and
false alarms a megapixel. The second form makes a network of the weights of a line, on any machine.

The machine needs PyTorch, torchvision and NumPy alone.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from benchmarks.bare_machine import stand_in

stand_in()  # before the library is imported

from benchmarks.candidates_data import of_jpeg, unsqueezed  # noqa: E402
from benchmarks.candidates_training import LOOKED, Candidate, Store, trained  # noqa: E402
from benchmarks.detection_errors import errors  # noqa: E402
from benchmarks.detection_scenes import BACKGROUNDS, TAIL, as_found, numbered  # noqa: E402
from scalechannels.backbones.paper import ConvBackbone  # noqa: E402
from scalechannels.data.anywhere import Pictures  # noqa: E402
from scalechannels.data.pictures import as_digits  # noqa: E402
from scalechannels.data.scenes import Scene  # noqa: E402
from scalechannels.detection.average_precision import Ranked, average_precision  # noqa: E402
from scalechannels.detection.detector import Detector  # noqa: E402
from scalechannels.detection.measuring import ranked  # noqa: E402
from scalechannels.detection.textures import texture  # noqa: E402
from scalechannels.detection.training import CLASSES, GRID, save  # noqa: E402
from scalechannels.files import append_line, json_lines  # noqa: E402
from scalechannels.network import ScaleChannelNetwork  # noqa: E402
from scalechannels.pooling import MaxOverScales  # noqa: E402
from scalechannels.training.runs import environment  # noqa: E402

TURNED = Candidate(degrees=10, stretch=0.12)
SHIPPED = "shipped"
CANDIDATES = {
    "longer": Candidate(),
    "turned": TURNED,
    "turned, wider": replace(TURNED, features=(16, 24, 48, 48), hidden=128),
    "turned, quieter": replace(TURNED, quiet=1 / 3),
    "turned, wider, quieter": replace(TURNED, features=(16, 24, 48, 48), hidden=128, quiet=1 / 3),
    "turned, wider, smoothed": replace(TURNED, features=(16, 24, 48, 48), hidden=128, smoothing=0.2),
}
"""What is tried: longer than the shipped one, digits in more attitudes, a wider network, softer windows,
more windows without digits."""
SEEDS = (1, 2)
"""Of the best one, beside 0."""
SURE, QUIET = 0.9, 0.08
"""The probability of a false alarm, and how many a megapixel may have to be chosen: the test allows 0.1."""
SMALL = 0.8


def prepared(data: Path, scenes: int, textures: int) -> dict[str, Any]:
    """What takes a CPU's time, by all of its cores: validation scenes of each background, and textures."""
    processes = min(16, os.cpu_count() or 1)
    with multiprocessing.get_context("spawn").Pool(processes, single_thread, (str(data),)) as pool:
        jobs = [(number, background) for background in BACKGROUNDS for number in range(scenes)]
        made = pool.starmap(one_scene, jobs, chunksize=4)
        drawn = pool.map(one_texture, range(textures), chunksize=4)
    own = {
        background: [one for one, (_, known) in zip(made, jobs, strict=True) if known == background]
        for background in BACKGROUNDS
    }
    return {"scenes": own, "textures": torch.stack([torch.from_numpy(one) for one in drawn])}


DIGITS: list[Pictures] = []
"""Of a process that draws scenes."""


def single_thread(data: str) -> None:
    torch.set_num_threads(1)
    kept = torch.load(data)
    DIGITS.append(Pictures(unsqueezed(kept["validation"]), kept["validation_labels"]))


def one_scene(number: int, background: str) -> dict[str, Any]:
    """As arrays, which need no memory shared between processes; half precision is enough to choose by."""
    _, made = numbered(number, "validation", background, DIGITS[0])
    parts = {"boxes": made.boxes, "labels": made.labels, "sizes": made.sizes, "image": made.image.half()}
    return {name: part.numpy() for name, part in parts.items()}


def one_texture(seed: int) -> Any:
    made = texture(1, LOOKED, torch.Generator().manual_seed(seed))
    return (made[0] * 255).round().byte().numpy()


def mean_precision(found: Sequence[Ranked], truth: Sequence[Ranked]) -> float:
    """The mean over the classes of average precision."""
    own = []
    for label in range(CLASSES):
        said, there = (
            [Ranked(*(part[one.labels == label] for part in one)) for one in images]
            for images in (found, truth)
        )
        if any(len(one.labels) for one in there):
            own.append(average_precision(said, there))
    return fmean(own)


@torch.no_grad()
def scored(network: ScaleChannelNetwork, scenes: dict[str, Any], quiet: Sequence[Tensor]) -> dict[str, Any]:
    """What a line tells of a network, on the device that it is on."""
    device = next(network.parameters()).device
    detector = Detector(network, background=CLASSES, threshold=TAIL)
    result: dict[str, Any] = {}
    for background, drawn in scenes.items():
        found, truth, counts, small = [], [], Counter[str](), Counter[str]()
        for one in drawn:
            parts = {name: torch.from_numpy(part) for name, part in one.items()}
            parts["image"] = parts["image"].float()
            made = Scene(**parts)
            said = ranked(detector(made.image.to(device)))
            found.append(said)
            truth.append(Ranked(made.boxes, made.labels, torch.ones(len(made.labels))))
            counts += errors(as_found(*said), made)
            fine = made.sizes < SMALL
            own = Scene(made.image, made.boxes[fine], made.labels[fine], made.sizes[fine])
            small += errors(as_found(*said), own)
        del small["of no object"]  # nearly all of them are of the larger objects
        result[background] = {
            "average_precision": round(mean_precision(found, truth), 4),
            "errors": dict(counts),
            "errors of small ones": dict(small),
        }
    detector, alarms, area = detector.with_threshold(SURE), 0, 0.0
    for picture in quiet:
        image = as_digits(picture[None].to(device).float() / 255)
        alarms += sum(one.probability >= SURE for one in detector(image))
        area += image.numel() / 1e6
    result["alarms"] = {"count": alarms, "megapixels": round(area, 1), "each": round(alarms / area, 4)}
    return result


def one_training(
    data: Path, ready: Path, out: Path, device: str, parts: int, quiet: int, job: tuple[str, Any, int]
) -> dict[str, Any]:
    """Train, look, and keep the weights: the line. Without a candidate, the shipped network is looked at."""
    torch.set_num_threads(1)  # several are trained side by side
    name, candidate, seed = job
    torch.backends.cudnn.benchmark = True
    begun = time.perf_counter()
    where, kept, made = torch.device(device), torch.load(data), torch.load(ready, weights_only=False)
    if candidate is None:
        network, losses = Detector.from_pretrained("digit-detector").network.to(where), []
    else:
        network, losses = trained(candidate, seed, Store.of(kept, made["textures"], where), where, parts)
    seconds = round(time.perf_counter() - begun, 1)
    torch.backends.cudnn.benchmark = False  # photographs have many shapes
    scores = scored(network, made["scenes"], [of_jpeg(one) for one in kept["quiet"][:quiet]])
    if candidate is not None:
        state = {part: value.cpu().contiguous() for part, value in network.backbone.state_dict().items()}
        torch.save({"candidate": candidate.told(), "seed": seed, "state": state}, weights(out, name, seed))
    return {
        "candidate": name,
        "seed": seed,
        **scores,
        "told": None if candidate is None else candidate.told(),
        "losses": [round(one, 4) for one in losses[-3:]],
        "seconds": seconds,
        "looked_seconds": round(time.perf_counter() - begun - seconds, 1),
        "environment": {key: environment(where)[key] for key in ("device", "commit", "torch")},
    }


def weights(out: Path, name: str, seed: int) -> Path:
    return out / f"weights-{name.replace(', ', '-')}-{seed}.pt"


def precision_of(line: dict[str, Any]) -> float:
    return fmean(line[background]["average_precision"] for background in BACKGROUNDS)


def best(lines: Sequence[dict[str, Any]]) -> str:
    """The candidate to go on with, by seed 0; if none stays quiet, the quietest."""
    first = [line for line in lines if line["seed"] == 0 and line["candidate"] != SHIPPED]
    calm = [line for line in first if line["alarms"]["each"] <= QUIET]
    if not calm:
        return str(min(first, key=lambda line: line["alarms"]["each"])["candidate"])
    return str(max(calm, key=precision_of)["candidate"])


def ship(file: Path, folder: Path) -> None:
    """A network of kept weights, as the shipped one is saved."""
    kept = torch.load(file)
    about = Candidate(**{**kept["candidate"], "features": tuple(kept["candidate"]["features"])})
    backbone = ConvBackbone(about.features, classes=CLASSES + 1, hidden=about.hidden, dropout=about.dropout)
    backbone.load_state_dict(kept["state"])
    save(ScaleChannelNetwork(backbone, GRID, MaxOverScales()).eval(), folder)


def run(chosen: argparse.Namespace) -> None:
    begun = time.monotonic()
    chosen.out.mkdir(parents=True, exist_ok=True)
    file = chosen.out / "candidates.jsonl"
    steps = {} if chosen.steps is None else {"steps": chosen.steps}
    made = {name: replace(CANDIDATES[name], **steps) for name in chosen.candidates}
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.pt"
        for seeds in ((0,), SEEDS):
            lines = [line for line in json_lines(file) if line["candidate"] in (*made, SHIPPED)]
            known = {(line["candidate"], line["seed"]) for line in lines}
            names = [*made, SHIPPED] if seeds == (0,) else [best(lines)]
            jobs = [
                (name, made.get(name), seed) for name in names for seed in seeds if (name, seed) not in known
            ]
            if not jobs or time.monotonic() - begun > 60 * chosen.minutes:
                continue
            if not ready.exists():
                torch.save(prepared(chosen.data, chosen.scenes, chosen.textures), ready)
                print(f"prepared in {time.monotonic() - begun:.0f} s", flush=True)
            given = chosen.data, ready, chosen.out, chosen.device, chosen.parts, chosen.quiet
            work = partial(one_training, *given)
            with multiprocessing.get_context("spawn").Pool(min(chosen.together, len(jobs))) as pool:
                for line in pool.imap_unordered(work, jobs):
                    append_line(file, line)
                    shown = {key: line[key] for key in (*BACKGROUNDS, "alarms", "seconds", "looked_seconds")}
                    print(line["candidate"], line["seed"], json.dumps(shown), flush=True)
            print(f"{time.monotonic() - begun:.0f} s so far", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(".data/candidates.pt"))
    parser.add_argument("--out", type=Path, default=Path("runs/candidates"))
    parser.add_argument("--candidates", nargs="+", choices=CANDIDATES, default=list(CANDIDATES))
    parser.add_argument("--together", type=int, default=1, help="trainings at a time")
    parser.add_argument("--minutes", type=float, default=8, help="no more trainings are begun after them")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--scenes", type=int, default=96, help="of each background")
    parser.add_argument("--textures", type=int, default=256)
    parser.add_argument("--parts", type=int, default=2048, help="of photographs, kept at a time")
    parser.add_argument("--quiet", type=int, default=1000, help="photographs for validation, at most")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--ship", type=Path, help="kept weights that become a network")
    parser.add_argument("--to", type=Path, help="the folder of that network")
    chosen = parser.parse_args()
    if chosen.ship is not None:
        ship(chosen.ship, chosen.to)
    else:
        run(chosen)


if __name__ == "__main__":
    main()
