"""How time and memory grow with the channels, the image and the batch, in training and inference.

    python -m benchmarks.cost [--device cuda]    writes benchmarks/results/cost_{cpu,cuda}.json
    python -m benchmarks.cost --plot             draws docs/images/cost.png from what was measured

channels    1 to 65 scales from 1/2 to 8, images of 112 x 112
image       112 to 2048 pixels a side, 17 scales; inference with anti-aliased windows too, and one pass over
            all pixels (their sum): what merely reading the images takes
batch       1 to 1024 images of 112 x 112 (in training on a CPU up to 256), 17 scales

The network is the paper's with log-mean-exp pooling; a training step is forward, backward and Adam, eager and
in float32. One configuration at a time: on a CPU each in a process of its own, since its high-water mark of
memory never falls. Memory is what is needed above the network and its input. All are measured in three
rounds, forwards and backwards; times are medians.
"""

from __future__ import annotations

import multiprocessing
import statistics
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F

from benchmarks.forward import _status
from benchmarks.measure import environment, options, seconds, write
from scalechannels.constructors import fovlse
from scalechannels.network import ScaleChannelNetwork
from scalechannels.scales import ScaleGrid

Mode = Literal["inference", "training", "antialiased inference", "reading"]
CHANNELS = (1, 2, 3, 5, 9, 17, 33, 65)
SIDES = (112, 256, 512, 1024, 2048)
BATCHES = (1, 4, 16, 64, 256, 1024)
ROUNDS = 3
RESULTS = Path(__file__).parent / "results"
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "cost.png"


@dataclass(frozen=True)
class Case:
    """One configuration."""

    mode: Mode
    channels: int = 17
    side: int = 112
    batch: int = 16


def cases(cuda: bool) -> dict[str, list[Case]]:
    """All configurations; a GPU gets batches that fill it."""
    batch: dict[Mode, int] = {
        "inference": 1024 if cuda else 64,
        "training": 256 if cuda else 16,
    }
    largest = {"inference": 1024, "training": 1024 if cuda else 256}
    modes: tuple[Mode, ...] = ("inference", "training")
    everything: tuple[Mode, ...] = (*modes, "antialiased inference", "reading")
    return {
        "channels": [Case(mode, channels=n, batch=batch[mode]) for mode in modes for n in CHANNELS],
        "image": [Case(mode, side=side) for mode in everything for side in SIDES],
        "batch": [Case(mode, batch=n) for mode in modes for n in BATCHES if n <= largest[mode]],
    }


def grid_of(channels: int) -> ScaleGrid:
    return ScaleGrid.of(2) if channels == 1 else ScaleGrid(0.5, 8, ratio=16 ** (1 / (channels - 1)))


def work_of(case: Case, device: torch.device) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """What is measured, and the same on two images: a warm-up that fills the libraries' own buffers."""
    torch.manual_seed(0)
    images = torch.rand(case.batch, 1, case.side, case.side, device=device)
    few = torch.rand(2, 1, 112, 112, device=device)
    if case.mode == "reading":
        return images.sum, few.sum
    network = fovlse(grid_of(case.channels), antialias=case.mode == "antialiased inference").to(device)
    if case.mode == "training":
        step = training_step(network.train())
        labels = torch.randint(0, 10, (case.batch,), device=device)
        return lambda: step(images, labels), lambda: step(few, labels[:1].expand(2))
    network.eval()

    def inference(shown: torch.Tensor) -> None:
        with torch.inference_mode():
            network(shown)

    return lambda: inference(images), lambda: inference(few)


def training_step(network: ScaleChannelNetwork) -> Callable[[torch.Tensor, torch.Tensor], None]:
    optimiser = torch.optim.Adam(network.parameters(), fused=True)

    def step(images: torch.Tensor, labels: torch.Tensor) -> None:
        optimiser.zero_grad(set_to_none=True)
        F.cross_entropy(network(images), labels).backward()
        optimiser.step()

    return step


def measure(case: Case, name: str, repeats: int) -> tuple[list[float], float]:
    """Seconds, each time, and the megabytes above the network and its input."""
    device = torch.device(name)
    work, warm_up = work_of(case, device)
    warm_up()
    if device.type == "cuda":
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        work()
        torch.cuda.synchronize()
        above = torch.cuda.max_memory_allocated() - before
    else:
        before = _status("VmRSS")
        work()
        above = _status("VmHWM") - before
    return [seconds(work, device) for _ in range(repeats)], max(0, above) / 1e6


def measure_all(device: torch.device, repeats: int) -> dict[str, list[dict[str, Any]]]:
    """Every case in several rounds, forwards and backwards: what disturbs for a while hits no curve alone."""
    chosen = cases(device.type == "cuda")
    every = list(dict.fromkeys(case for some in chosen.values() for case in some))
    taken: dict[Case, list[tuple[list[float], float]]] = {case: [] for case in every}
    # The server has imported torch and computed nothing: its children start at once, and fresh.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.forward"])
    with nullcontext() if device.type == "cuda" else context.Pool(1, maxtasksperchild=1) as pool:
        for number in range(ROUNDS):
            for case in every[:: (-1) ** number]:
                given = (case, str(device), repeats)
                taken[case].append(measure(*given) if pool is None else pool.apply(measure, given))
    return {axis: [entry(case, taken[case]) for case in some] for axis, some in chosen.items()}


def entry(case: Case, rounds: list[tuple[list[float], float]]) -> dict[str, Any]:
    times = [one for some, _ in rounds for one in some]
    return {
        **asdict(case),
        "seconds": statistics.median(times),
        "all_seconds": times,
        "megabytes": statistics.median(megabytes for _, megabytes in rounds),
    }


def line_through(points: list[tuple[float, float]]) -> dict[str, float]:
    """The line of least relative squares, its constant in units of its slope, and the largest deviation."""
    x, y = (torch.tensor(values, dtype=torch.float64) for values in zip(*points, strict=True))
    weighted = torch.stack([1 / y, x / y], 1)  # relative: a few channels count as much as many
    constant, slope = torch.linalg.lstsq(weighted, torch.ones(len(x), 1, dtype=torch.float64)).solution[:, 0]
    deviation = ((constant + slope * x) / y - 1).abs().max()
    return {
        "constant": float(constant),
        "slope": float(slope),
        "constant_in_channels": float(constant / slope),
        "largest_deviation": float(deviation),
    }


def summary(found: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """What the curves say, in figures."""

    def of(axis: str, mode: str) -> list[dict[str, Any]]:
        return [one for one in found[axis] if one["mode"] == mode]

    said: dict[str, Any] = {"time_against_channels": {}, "time_of_largest_to_smallest_image": {}}
    for mode in ("inference", "training"):
        lines = [(one["channels"], one["seconds"]) for one in of("channels", mode)]
        said["time_against_channels"][mode] = line_through(lines)
    for mode in ("inference", "training", "antialiased inference", "reading"):
        taken = [one["seconds"] for one in of("image", mode)]
        said["time_of_largest_to_smallest_image"][mode] = taken[-1] / taken[0]
    return said


def main() -> None:
    parser = options(__doc__, repeats=5)
    parser.add_argument("--plot", action="store_true", help="draw what was measured before")
    chosen = parser.parse_args()
    if chosen.plot:
        from benchmarks.cost_plot import draw

        print(draw(RESULTS, chosen.output or PICTURE))
        return
    device = torch.device(chosen.device)
    found = measure_all(device, chosen.repeats)
    report = {"environment": environment(device), "summary": summary(found), **found}
    write(report, chosen.output or RESULTS / f"cost_{device.type}.json")


if __name__ == "__main__":
    main()
