"""A folder of own images: noise, in classes, and the run that is chosen from it."""

from __future__ import annotations

from pathlib import Path

import torch
from PIL import Image

from scalechannels.training.config import DataConfig, NetworkConfig, ResolvedRun, RunConfig


def write(root: Path, sizes: list[tuple[int, int]], mode: str = "L", classes: int = 2) -> Path:
    """One noise image of each (height, width) for each class."""
    generator = torch.Generator().manual_seed(0)
    for label in range(classes):
        for index, (height, width) in enumerate(sizes):
            path = root / f"class{label}" / f"{index}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = torch.rand(height, width, 3, generator=generator).mul(255).byte().numpy()
            Image.fromarray(pixels).convert(mode).save(path)
    return root


def chosen(root: Path, network: NetworkConfig | None = None, **data: object) -> ResolvedRun:
    """The run on these images, resolved."""
    own = DataConfig("folder", folder=str(root), **data)  # type: ignore[arg-type]
    return RunConfig(own, network or NetworkConfig()).resolve()
