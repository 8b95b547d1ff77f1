"""The ranges of test sizes that the paper's table averages over."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

RANGES = {"[1/2,1]": (0.5, 1), "[1,4]": (1, 4), "[4,8]": (4, 8), "[1/2,4]": (0.5, 4), "[1/2,8]": (0.5, 8)}


def inside(sizes: Iterable[float], low: float, high: float) -> list[float]:
    """The sizes from low to high, both included, as files round them."""
    return [size for size in sizes if low * (1 - 1e-9) <= size <= high * (1 + 1e-9)]


def mean_inside(accuracies: dict[float, float], low: float, high: float) -> float:
    """The mean accuracy over the tested sizes from low to high."""
    return fmean(accuracies[size] for size in inside(accuracies, low, high))


def range_means(accuracies: dict[float, float]) -> dict[str, float]:
    """The mean of each range in which there is a tested size."""
    return {
        name: mean_inside(accuracies, *ends) for name, ends in RANGES.items() if inside(accuracies, *ends)
    }
