"""Accuracy against size as text, for every command that prints it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scalechannels.data.sizes import range_means, size_name


def accuracies(sizes: Sequence[Mapping[str, Any]]) -> dict[float, float]:
    """Size to accuracy, from the `sizes` of an evaluation; test sets of mixed sizes are left out."""
    return {
        float(entry["size"]): float(entry["accuracy"])
        for entry in sizes
        if not isinstance(entry["size"], (list, tuple))
    }


def accuracy_table(columns: Mapping[str, Mapping[float, float]], trained: Sequence[float] = ()) -> str:
    """One row for each size, one column for each network; below them the means over ranges of sizes.

    Sizes that were trained on are marked: `trained` is one size, or the lowest and the highest.
    """
    sizes = sorted({size for column in columns.values() for size in column})
    width = max(10, *(len(name) + 2 for name in columns))

    def row(name: str, values: Iterable[float | None]) -> str:
        cells = ("–" if value is None else f"{value:.2f} %" for value in values)
        return f"{name:>8}" + "".join(f"{cell:>{width}}" for cell in cells)

    lines = [f"{'size':>8}" + "".join(f"{name:>{width}}" for name in columns)]
    for size in sizes:
        inside = bool(trained) and trained[0] <= size <= trained[-1]
        values = (column.get(size) for column in columns.values())
        lines.append(row(size_name(size), values) + ("  trained" if inside else ""))
    means = [range_means(dict(column)) for column in columns.values()]
    if len(sizes) > 1 and any(means):
        names = dict.fromkeys(name for mean in means for name in mean)
        lines += ["", "    mean"] + [row(name, (mean.get(name) for mean in means)) for name in names]
    return "\n".join(lines)
