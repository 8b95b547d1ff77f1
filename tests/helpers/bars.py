"""Images whose class is easy to see: a bar that stands or lies, on noise."""

from __future__ import annotations

import numpy as np


def bars(count: int = 16, side: int = 16, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Images (N, side, side) of bytes and their labels: every second bar lies."""
    images = np.random.default_rng(seed).integers(0, 60, (count, side, side), np.uint8)
    long, wide = slice(side // 5, side - side // 5), slice(side // 2 - 1, side // 2 + 1)
    images[::2, long, wide] = 255
    images[1::2, wide, long] = 255
    return images, np.array(["stands", "lies"] * (count // 2))
