"""Accuracy against size: the sizes that data sets are tested at, means over ranges of them, a table as text.

Without torch: pages and tables need nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

MNIST_SIZES = tuple(2 ** (k / 4) for k in range(-4, 13))  # 1/2 to 8
CIFAR_SIZES = tuple(2 ** (k / 4) for k in range(-4, 5))  # 1/2 to 2
MNIST_SCALE_SIZES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
EMOJI_PIXELS = (16, 22, 32, 46, 64, 90, 128, 182, 256, 362, 512)
"""Steps of about the root of 2, all even: each has its centre between pixels, as an image of 512 does."""
EMOJI_SIZES = tuple(pixels / 64 for pixels in EMOJI_PIXELS)  # 1/4 to 8
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
    """The mean of each range of which both ends were tested."""
    known = {name: ends for name, ends in RANGES.items() if all(inside(accuracies, end, end) for end in ends)}
    return {name: mean_inside(accuracies, *ends) for name, ends in known.items()}


def accuracies(sizes: Sequence[Mapping[str, Any]]) -> dict[float, float]:
    """Size to accuracy, from the `sizes` of an evaluation; test sets of mixed sizes are left out."""
    return {
        float(entry["size"]): float(entry["accuracy"])
        for entry in sizes
        if not isinstance(entry["size"], (list, tuple))
    }


def accuracy_table(columns: Mapping[str, Mapping[float, float]], trained: Sequence[float] = ()) -> str:
    """One row for each size, one column for each network; below them the means over ranges of sizes.

    Sizes that were trained on are marked: `trained` is one size, the lowest and the highest, or a list.
    """
    sizes = sorted({size for column in columns.values() for size in column})
    width = max(10, *(len(name) + 2 for name in columns))

    def row(name: str, values: Iterable[float | None]) -> str:
        cells = ("–" if value is None else f"{value:.2f} %" for value in values)
        return f"{name:>8}" + "".join(f"{cell:>{width}}" for cell in cells)

    lines = [f"{'size':>8}" + "".join(f"{name:>{width}}" for name in columns)]
    for size in sizes:
        among = size in trained if len(trained) != 2 else trained[0] <= size <= trained[1]
        mark = "  trained" if among else ""
        values = (column.get(size) for column in columns.values())
        lines.append(row(size_name(size), values) + mark)
    means = [range_means(dict(column)) for column in columns.values()]
    if len(sizes) > 1 and any(means):
        names = dict.fromkeys(name for mean in means for name in mean)
        lines += ["", "    mean"] + [row(name, (mean.get(name) for mean in means)) for name in names]
    return "\n".join(lines)
