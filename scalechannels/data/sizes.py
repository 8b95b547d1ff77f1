"""The sizes that the paper's data sets are tested at, and the ranges of them that its table averages over.

Without torch: pages and tables need nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

MNIST_SIZES = tuple(2 ** (k / 4) for k in range(-4, 13))  # 1/2 to 8
CIFAR_SIZES = tuple(2 ** (k / 4) for k in range(-4, 5))  # 1/2 to 2
OWN_SIZES = tuple(2 ** (k / 4) for k in range(-8, 9))  # 1/4 to 4
RANGES = {"[1/2,1]": (0.5, 1), "[1,4]": (1, 4), "[4,8]": (4, 8), "[1/2,4]": (0.5, 4), "[1/2,8]": (0.5, 8)}


def size_name(size: float) -> str:
    """At most three decimals, as the files of MNIST Large Scale name their sizes: 0.5, 1.189, 8."""
    return f"{size:.3f}".rstrip("0").rstrip(".")


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
