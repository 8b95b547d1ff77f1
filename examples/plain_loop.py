"""A network of scale channels in a training loop of your own, without any of this library's training.

    python examples/plain_loop.py

The digits that it learns all have one size; it is then asked about digits twice as large.
"""

from typing import Literal

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from scalechannels import LogMeanExpOverScales, ScaleChannelNetwork, ScaleGrid
from scalechannels.data.strokes import strokes


def digits(count: int, split: Literal["train", "test"], scale: float) -> TensorDataset:
    """Built-in digits of 28 pixels times `scale`: images (N, 1, 64, 64) and labels (N,)."""
    made = strokes(count, seed=0, split=split)
    return TensorDataset(made.render(scale, 64), made.labels)


def network() -> ScaleChannelNetwork:
    """Any module (N, C, n, n) to (N, K) can be the backbone."""
    backbone = nn.Sequential(
        *(nn.Conv2d(1, 16, 3, stride=2), nn.BatchNorm2d(16), nn.ReLU()),
        *(nn.Conv2d(16, 32, 3, stride=2), nn.BatchNorm2d(32), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(32 * 6 * 6, 10)),
    )
    grid = ScaleGrid.from_sizes(training=28, deployment=(14, 112), window=28, ratio=2**0.5)
    return ScaleChannelNetwork(backbone, grid, LogMeanExpOverScales(), window=28)


def train(model: nn.Module, data: TensorDataset, epochs: int = 4) -> None:
    loader = DataLoader(data, batch_size=32, shuffle=True)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    model.train()
    for epoch in range(epochs):
        for images, labels in loader:  # (B, 1, 64, 64), (B,)
            loss = nn.functional.cross_entropy(model(images), labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        print(f"epoch {epoch + 1}: loss {loss.item():.3f}")


@torch.inference_mode()
def accuracy(model: nn.Module, data: TensorDataset) -> float:
    images, labels = data.tensors
    return float((model.eval()(images).argmax(1) == labels).double().mean())


def main() -> tuple[float, float]:
    torch.manual_seed(0)
    model = network()
    train(model, digits(1000, "train", scale=1.0))
    same, larger = (accuracy(model, digits(300, "test", scale)) for scale in (1.0, 2.0))
    print(f"as large as in training: {same:.0%}; twice as large: {larger:.0%}")
    return same, larger


if __name__ == "__main__":
    main()
