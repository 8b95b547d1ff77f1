"""How long `detect` takes on a large photograph, and how much memory.

    python -m benchmarks.detection_speed [--megapixels 12] [--network NAME] [--threads 2] [--tile 2048]
    python -m benchmarks.detection_speed --device cuda --out benchmarks/results/detection_speed_cuda.json

The picture is made up (see `detection.textures`), of the shape 4:3. The seconds are those of the wall clock,
and `cpu_seconds` those of all cores together, which other programs on the machine change less. The peak of
memory is that of the whole process, PyTorch and the picture included; on a GPU, `gpu_gigabytes` is the peak
of what PyTorch held there. The picture lies in main memory first, and `first_seconds` are those of the first
picture of this size, in which libraries still choose how to compute; `seconds` are then the median of five,
which `each` lists, and `split` says where those of one more went. The machine needs PyTorch and NumPy alone.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.bare_machine import stand_in

stand_in()  # before the library is imported

from scalechannels.data.frames import reduced  # noqa: E402
from scalechannels.data.pictures import as_taken  # noqa: E402
from scalechannels.detection.detector import TILE, Detector  # noqa: E402
from scalechannels.detection.textures import texture  # noqa: E402
from scalechannels.files import json_text, write_text  # noqa: E402
from scalechannels.saving.saved_network import SavedNetwork  # noqa: E402
from scalechannels.training.runs import environment  # noqa: E402


def photograph(megapixels: float, channels: int) -> torch.Tensor:
    """A picture (C, H, W) of about so many pixels, pieced together from textures."""
    side = 500
    across, down = (round((megapixels * 1e6 * ratio) ** 0.5 / side) for ratio in (4 / 3, 3 / 4))
    generator = torch.Generator().manual_seed(0)
    pieces = [texture(channels, side, generator) for _ in range(8)]
    rows = [torch.cat([pieces[(3 * row + column) % 8] for column in range(across)], 2) for row in range(down)]
    return torch.cat(rows, 1)


def looked(detector: Detector, picture: torch.Tensor) -> tuple[float, int]:
    """The seconds that a picture in main memory takes, and how many objects were found."""
    begun = time.perf_counter()
    found = detector(picture.to(next(detector.network.parameters()).device))  # a list: all was computed
    return time.perf_counter() - begun, len(found)


def split(detector: Detector, picture: torch.Tensor) -> dict[str, float]:
    """The seconds of each part, waiting for the GPU after it: copied, looked at, peaks found, boxes told."""
    device, dense = next(detector.network.parameters()).device, detector.dense
    passed = {"copy": 0.0, "maps": 0.0, "peaks": 0.0, "boxes": 0.0}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        torch.cuda.synchronize()
        begun = time.perf_counter()
        done = work()
        torch.cuda.synchronize()
        passed[name] += time.perf_counter() - begun
        return done

    image = timed("copy", lambda: picture.to(device))
    whole = dense.channel_maps
    dense.channel_maps = lambda *given: timed("maps", lambda: whole(*given))  # type: ignore[method-assign]
    peaks = timed("peaks", lambda: detector.peaks(image))
    del dense.channel_maps  # that of the class again
    timed("boxes", lambda: detector._detections(peaks, image.shape))
    passed["peaks"] -= passed["maps"]
    return {name: round(seconds, 3) for name, seconds in passed.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megapixels", type=float, default=12)
    parser.add_argument("--network", default="digit-detector")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tile", type=int, default=TILE)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/detection_speed_cpu.json"))
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    saved = SavedNetwork.open(chosen.network)
    picture = photograph(chosen.megapixels, 1 if saved.grey else 3)
    taken = reduced(as_taken(picture, saved.values), saved.reduce)
    device = torch.device(chosen.device)
    detector = Detector(saved.network, tile=chosen.tile).to(device)
    detector(taken[:, :200, :200].to(device))  # warm up
    first: dict[str, Any] = {}
    if device.type == "cuda":
        first["first_seconds"] = round(looked(detector, taken)[0], 3)
        torch.cuda.reset_peak_memory_stats()
        first["each"] = [round(looked(detector, taken)[0], 3) for _ in range(5)]
        first["split"] = split(detector, taken)
    spent = time.process_time()
    seconds, found = looked(detector, taken)
    cpu_seconds = time.process_time() - spent
    if device.type == "cuda":
        seconds = median(first["each"])
        first["gpu_gigabytes"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
    result = {
        "megapixels": round(picture[0].numel() / 1e6, 2),
        "scales": len(saved.network.grid),
        "tile": chosen.tile,
        "threads": chosen.threads,
        "seconds": round(seconds, 1 if device.type == "cpu" else 3),
        **first,
        "cpu_seconds": round(cpu_seconds, 1),
        "peak_gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "found": found,
        "environment": {name: environment(device)[name] for name in ("device", "commit", "torch")},
    }
    write_text(chosen.out, json_text(result) + "\n")
    print(json_text(result))


if __name__ == "__main__":
    main()
