"""How long `detect` takes on a large photograph, and how much memory.

    python -m benchmarks.detection_speed [--megapixels 12] [--network NAME] [--threads 2] [--tile 2048]
    python -m benchmarks.detection_speed --device cuda --out benchmarks/results/detection_speed_gpu.json

The picture is made up (see `detection.textures`), of the shape 4:3. The seconds are those of the wall clock,
and `cpu_seconds` those of all cores together, which other programs on the machine change less. The peak of
memory is that of the whole process, PyTorch and the picture included; on a GPU, `gpu_gigabytes` is the peak
of what PyTorch held there. The picture lies in main memory first, and `first_seconds` are those of the first
picture of this size, in which cuDNN still chooses how to compute. The machine needs PyTorch and NumPy alone.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

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
    first: dict[str, float] = {}
    if device.type == "cuda":
        begun = time.perf_counter()
        detector(taken.to(device))
        first["first_seconds"] = round(time.perf_counter() - begun, 3)
        torch.cuda.reset_peak_memory_stats()
    begun, spent = time.perf_counter(), time.process_time()
    found = detector(taken.to(device))  # a list: all of it was computed
    seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - spent
    if device.type == "cuda":
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
        "found": len(found),
        "environment": {name: environment(device)[name] for name in ("device", "commit", "torch")},
    }
    write_text(chosen.out, json_text(result) + "\n")
    print(json_text(result))


if __name__ == "__main__":
    main()
