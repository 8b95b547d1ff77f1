"""Where a detector of digits sees digits in photographs that have none, and whether it reads printed ones.

    python -m benchmarks.detection_photographs --called after [--network digit-detector] [--split test]
        [--photographs .data/photographs] [--fonts .data/fonts] [--draw FOLDER] [--out FILE]

Both folders are filled by `benchmarks.collecting`. A photograph is read as `scalechannels detect` reads it.
A false alarm is any box of a probability of at least 0.9 (0.5 is counted as well). Printed digits, of fonts
that are in no other split, and handwritten ones (MNIST's) lie at the same places and sizes in 24 scenes of
`benchmarks.detection_scenes`, half plain and half noisy; found is what has the right class, an IoU of 0.5 and
a probability of 0.5. --draw writes each false alarm of 0.9 as a small picture. The file has one entry for
each network and split; measuring it again replaces it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import scalechannels
from benchmarks.collecting import Split, collected
from benchmarks.detection_scenes import BACKGROUNDS, made, objects
from scalechannels import Detector, ScaleChannelNetwork
from scalechannels.data.pictures import as_digits, as_picture, as_shown, read_image
from scalechannels.data.printed import Printed
from scalechannels.detection.average_precision import Ranked, right
from scalechannels.detection.found import Detection
from scalechannels.detection.measuring import ranked
from scalechannels.files import json_text, write_text
from scalechannels.training.runs import environment

SURE, HALF = 0.9, 0.5
SCENES = 24


def alarms(detector: Detector, paths: Sequence[Path], draw: Path | None) -> Iterator[dict[str, Any]]:
    """Of every photograph, what the detector takes for digits."""
    for path in paths:
        picture = as_digits(read_image(path, grey=True))
        found = detector(picture)
        sure = [one for one in found if one.probability >= SURE]
        for number, one in enumerate(sure if draw else ()):
            assert draw is not None
            name = f"{path.stem}-{number}-{one.label}-{one.probability:.3f}.png"
            as_picture(around(picture, one)).resize((112, 112)).save(draw / name)
        yield {
            "photograph": path.name,
            "megapixels": round(picture.numel() / 1e6, 3),
            "at 0.5": len(found),
            "at 0.9": len(sure),
            "classes at 0.9": [sum(one.label == digit for one in sure) for digit in range(10)],
        }
        print(json.dumps(path.name), len(found), len(sure), flush=True)


def around(picture: Tensor, one: Detection) -> Tensor:
    """The box of a detection and half of it on every side, from 0 to 1."""
    x0, y0, x1, y1 = one.box
    margin = (x1 - x0) / 2
    top, left = (max(0, round(edge - margin)) for edge in (y0, x0))
    return as_shown(picture[0, top : round(y1 + margin), left : round(x1 + margin)])


def read_share(detector: Detector, split: Split, drawn: Any) -> dict[str, Any]:
    """Recall and precision at 0.5 in scenes of digits."""
    hits = said = there = 0
    for background in BACKGROUNDS:
        for _, one in made(split, background, SCENES // 2, drawn):
            found = ranked(detector(one.image))
            truth = Ranked(one.boxes, one.labels, torch.ones(len(one.labels), dtype=torch.float64))
            hits += int(right(found, truth).sum())
            said += len(found.labels)
            there += len(one.labels)
    return {"digits": there, "recall": round(hits / there, 4), "precision": round(hits / max(said, 1), 4)}


def measured(
    detector: Detector, split: Split, photographs: Path, fonts: Path, draw: Path | None
) -> dict[str, Any]:
    each = list(alarms(detector, collected("photographs", photographs, split), draw))
    area = sum(one["megapixels"] for one in each)
    counts = {at: sum(one[at] for one in each) for at in ("at 0.5", "at 0.9")}
    printed = Printed.of(collected("fonts", fonts, split))
    return {
        "photographs": len(each),
        "megapixels": round(area, 1),
        "false_alarms": counts,
        "per_megapixel": {at: round(count / area, 4) for at, count in counts.items()},
        "handwritten": read_share(detector, split, objects(split)),
        "printed": read_share(detector, split, printed),
        "each": each,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--called", required=True, help="the network's name in the file")
    parser.add_argument("--network", default="digit-detector")
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    parser.add_argument("--photographs", type=Path, default=Path(".data/photographs"))
    parser.add_argument("--fonts", type=Path, default=Path(".data/fonts"))
    parser.add_argument("--draw", type=Path)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/detection_photographs.json"))
    chosen = parser.parse_args()
    network = scalechannels.load(chosen.network)
    assert isinstance(network, ScaleChannelNetwork)
    if chosen.draw:
        chosen.draw.mkdir(parents=True, exist_ok=True)
    detector = Detector(network, threshold=HALF)
    result = measured(detector, chosen.split, chosen.photographs, chosen.fonts, chosen.draw)
    where = {name: environment(torch.device("cpu"))[name] for name in ("device", "commit", "torch")}
    known = json.loads(chosen.out.read_text(encoding="utf-8")) if chosen.out.exists() else {}
    known[f"{chosen.called}, {chosen.split}"] = {**result, "environment": where}
    write_text(chosen.out, json_text(known) + "\n")
    print(json.dumps({name: one for name, one in result.items() if name != "each"}, indent=1))


if __name__ == "__main__":
    main()
