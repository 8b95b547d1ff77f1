"""How much the channels disturb that see an object in a way that training never showed.

    python -m benchmarks.unseen_scales RUN [RUN …] [--images 2000]

A channel of scale σ sees an object of size s at the relative scale σ/s. Trained on size 4 with channels from
1/2 to 8, a network met relative scales from 1/8 to 2; tested at size 1/2 its channels lie at 1 to 16, and
most of them show what it never learnt to say nothing about. For runs on one size of MNIST Large Scale, or on
CIFAR-10 with `data.hold_out`: accuracy at each size (validation images), pooled over all channels, and over
those alone whose relative scale was met, which needs to know the size; and how loud the two groups are: the
standard deviation, over classes, of the sum of their logits.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch import Tensor

from scalechannels import ScaleChannelNetwork
from scalechannels.saving.saved_network import SavedNetwork
from scalechannels.training.config import RunConfig
from scalechannels.training.datasets import open_data

SIZES = {"mnist": (0.5, 2**-0.5, 1.0, 2.0, 4.0), "cifar10": (0.5, 2**-0.5, 1.0, 2**0.5, 2.0)}


def met(scales: Tensor, size: float, trained: float) -> Tensor:
    """Which of the channels (S,) show an object of this size as one of them showed those of training."""
    relative, known = scales / size, scales / trained
    return (relative >= known.min() * 0.999) & (relative <= known.max() * 1.001)


def accuracy(logits: Tensor, labels: Tensor) -> float:
    return 100 * float((logits.argmax(1) == labels).float().mean())


@torch.inference_mode()
def measure(folder: Path, images: int) -> None:
    network, path = SavedNetwork.open(folder).network, folder / "config.toml"
    config = RunConfig.from_toml(path) if path.exists() else None
    if not isinstance(network, ScaleChannelNetwork) or config is None or len(config.data.sizes) != 1:
        raise SystemExit(f"{folder} is no run of a foveated network on one size")
    if config.data.name not in SIZES:
        raise SystemExit(f"{folder} is a run on {config.data.name}, not on one of {', '.join(SIZES)}")
    (trained,) = config.data.sizes
    data, scales = open_data(config.data), torch.tensor(list(network.grid))
    print(f"{config.network.name}, trained on size {trained:g} in batches of {config.training.batch}")
    print(f"{'size':>6}{'all channels':>14}{'those met':>11}{'not met':>9}{'loud: met':>12}{'not met':>9}")
    for size in SIZES[config.data.name]:
        test = data.testing(size, "validation")
        parts = [network.channel_logits(part) for part in test.images[:images].split(250)]
        channels, labels = torch.cat(parts), test.labels[:images]  # (N, S, K), (N,)
        known = met(scales, size, trained)
        pooled = [accuracy(network.pool_channels(c), labels) for c in (channels, channels[:, known])]
        loud = [float(channels[:, group].sum(1).std(1).mean()) for group in (known, ~known)]
        new = int((~known).sum())
        print(f"{size:6.3g}{pooled[0]:14.2f}{pooled[1]:11.2f}{new:9d}{loud[0]:12.1f}{loud[1]:9.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--images", type=int, default=2000)
    given = parser.parse_args()
    for folder in given.runs:
        measure(folder, given.images)


if __name__ == "__main__":
    main()
