"""What a dense map costs beside the foveated network at the same points, in one run.

    python -m benchmarks.dense [--output FILE]

An image of 1024 x 1024, the paper's 17 scales, the paper's backbone.

own lattices    each channel at its own lattice points: the dense network's convolutions, beside the foveated
                channel evaluated, batched, at those very points
common lattice  pooled logits and scales at every second pixel: the dense network, beside the foveated network
                evaluated, batched, at those points
memory          the whole process of the dense map at its largest

The foveated network is evaluated at a part of the points, spread evenly over the image and over the channels,
and its time taken times all points over that part. Ratios count: both sides take turns in one run.
"""

from __future__ import annotations

import multiprocessing
from typing import Any

import torch
from torch import Tensor

from benchmarks.forward import _status
from benchmarks.measure import environment, in_turns, options, write
from scalechannels import ScaleChannelNetwork, ScaleGrid, fovavg
from scalechannels.backbones.inference import for_inference, in_pieces
from scalechannels.dense import DenseNetwork
from scalechannels.sampling import resample

GRID = ScaleGrid(0.5, 8, ratio=2**0.25)
SIDE, STEP = 1024, 2
WINDOWS = 8192  # of the foveated network that are timed


def lattice_points(dense: DenseNetwork, sigma: float) -> Tensor:
    rows, columns = (span.positions() for span in dense.lattice(sigma, (SIDE, SIDE)))
    return torch.cartesian_prod(rows, columns)


def every(points: Tensor, count: int) -> Tensor:
    """So many of the points, evenly spread."""
    return points[torch.linspace(0, len(points) - 1, max(1, count)).long()]


def foveated_channel(network: ScaleChannelNetwork, image: Tensor, sigma: float, points: Tensor) -> Tensor:
    """One channel at many centres, batched in the network's own pieces."""
    backbone, grid = for_inference(network.backbone), ScaleGrid.of(sigma)

    def piece(centres: Tensor, _: Tensor | None) -> Tensor:
        images = image.expand(len(centres), -1, -1, -1)
        return backbone(resample(images, grid, (28, 28), centres=centres)[:, 0])

    return in_pieces(piece, points, None, 28 * 28)


@torch.inference_mode()
def measure(device: torch.device, repeats: int) -> dict[str, Any]:
    torch.manual_seed(0)
    image = torch.randn(1, 1, SIDE, SIDE, device=device)
    network = fovavg(GRID).to(device).eval()
    dense = DenseNetwork(network, STEP)
    points = {sigma: lattice_points(dense, sigma) for sigma in GRID}
    total = sum(map(len, points.values()))
    part = {sigma: every(at, round(WINDOWS * len(at) / total)).to(device) for sigma, at in points.items()}
    timed = sum(map(len, part.values()))
    axis = torch.arange(0, SIDE, STEP, dtype=torch.float64)
    common = len(axis) ** 2
    chosen = every(torch.cartesian_prod(axis, axis), WINDOWS // len(GRID)).to(device)
    times = in_turns(
        {
            "own_lattices": lambda: dense.channel_maps(image[0]),
            "foveated_own": lambda: [
                foveated_channel(network, image, sigma, at) for sigma, at in part.items()
            ],
            "common_lattice": lambda: dense(image),
            "foveated_common": lambda: network(image.expand(len(chosen), -1, -1, -1), chosen),
        },
        device,
        repeats,
    )
    own = times["foveated_own"]["seconds"] * total / timed
    pooled = times["foveated_common"]["seconds"] * common / len(chosen)
    return {
        "own_lattices": {
            **times["own_lattices"],
            "points": total,
            "foveated_seconds": own,
            "foveated_timed": {"windows": timed, **times["foveated_own"]},
            "times_faster": own / times["own_lattices"]["seconds"],
            "goal": "at least 10",
        },
        "common_lattice": {
            **times["common_lattice"],
            "step": STEP,
            "points": common,
            "foveated_seconds": pooled,
            "foveated_timed": {"points": len(chosen), **times["foveated_common"]},
            "times_faster": pooled / times["common_lattice"]["seconds"],
            "goal": "at least 40",
        },
        "error": agreement(dense, image, points),
    }


def agreement(dense: DenseNetwork, image: Tensor, points: dict[float, Tensor]) -> float:
    """The largest difference of a channel from the foveated network at some of its lattice points."""
    worst = 0.0
    for one, (sigma, at) in zip(dense.channel_maps(image[0]), points.items(), strict=True):
        index = torch.linspace(0, len(at) - 1, 50).long()
        alone = foveated_channel(dense.network, image, sigma, at[index].to(image.device))
        worst = max(worst, float((one.logits.flatten(0, 1)[index] - alone).abs().max()))
    return worst


def memory() -> dict[str, Any]:
    """In a process of its own: a high-water mark never falls."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return {"gigabytes": pool.apply(_peak) / 1e9, "goal": "below 1.5, the libraries included"}


def _peak() -> int:
    with torch.inference_mode():
        DenseNetwork(fovavg(GRID).eval(), STEP)(torch.randn(1, 1, SIDE, SIDE))
    return _status("VmHWM")


def main() -> None:
    chosen = options(__doc__).parse_args()
    device = torch.device(chosen.device)
    report = {"environment": environment(device), **measure(device, chosen.repeats), "memory": memory()}
    write(report, chosen.output)


if __name__ == "__main__":
    main()
