"""The report of a training on own images: do scale channels help on them?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from torch import Tensor

from scalechannels.data.sizes import accuracies
from scalechannels.report.curves import accuracy_curves, selection_picture
from scalechannels.report.page import render
from scalechannels.report.theme import fraction
from scalechannels.scales import QUARTER_OCTAVE, octave_beyond

CHANNELS, PLAIN = "scale channels", "plain CNN"
MOST_CLASSES = 40


class Verdict(NamedTuple):
    """What the curves say, in one sentence."""

    text: str
    channels: float
    """Mean accuracy of the scale channels over the sizes that count, in per cent."""
    plain: float | None
    margin: float | None
    """Twice the standard error: a smaller difference may be chance."""


def columns_of(result: Mapping[str, Any]) -> dict[str, dict[float, float]]:
    """Network → size → accuracy."""
    return {name: accuracies(run["evaluation"]["sizes"]) for name, run in result["runs"].items()}


def verdict(result: Mapping[str, Any]) -> Verdict:
    """Whether scale channels help, over the expected sizes other than the images' own.

    The margin counts images, not images times sizes: these are no independent evidence.
    """
    columns, (low, high) = columns_of(result), result["factors"]
    name = CHANNELS if CHANNELS in columns else next(iter(columns))
    slack = 1 + 1e-6
    sizes = [size for size in columns[name] if low / slack <= size <= high * slack and abs(size - 1) > 1e-6]
    sizes = sizes or list(columns[name])
    over = f"over the simulated sizes {fraction(min(sizes))} to {fraction(max(sizes))}"
    over = f"at the simulated size {fraction(sizes[0])}" if len(sizes) == 1 else f"on average {over}"
    mean = sum(columns[name][size] for size in sizes) / len(sizes)
    if PLAIN not in columns or name == PLAIN:
        reach = "reaches" if name == PLAIN else "reach"
        return Verdict(f"The {name} {reach} {mean:.0f} % accuracy {over}.", mean, None, None)
    other = sum(columns[PLAIN][size] for size in sizes) / len(sizes)
    images = result["images"]["kept"]
    margin = _margin(mean, other, images)
    compared = f"{mean:.0f} %, and a plain CNN of equal cost {other:.0f} %, {over}"
    if mean - other > margin:
        text = f"Scale channels help on these images: they reach {compared}."
    elif other - mean > margin:
        text = f"Scale channels do not help on these images: they reach {compared}."
    else:
        text = f"No clear difference on these images: scale channels reach {compared}. "
        text += f"{images} images cannot tell them apart."
    ours, theirs = (columns[one].get(1.0, math.nan) for one in (name, PLAIN))
    if theirs - ours > _margin(ours, theirs, images):  # not where it was not tested
        text += f" At the images' own size the plain CNN is better, {theirs:.0f} % against {ours:.0f} %."
    return Verdict(text, mean, other, margin)


def _margin(one: float, other: float, images: int) -> float:
    """Twice the standard error of the difference of two accuracies in per cent."""
    return 200 * math.sqrt(sum(share * (1 - share) for share in (one / 100, other / 100)) / images)


def own_images_page(
    result: Mapping[str, Any], examples: Sequence[tuple[Tensor, float]], folders: Sequence[str]
) -> str:
    """The whole page; `examples` are pictures of test images with their sizes."""
    columns = columns_of(result)
    sizes = sorted(next(iter(columns.values())))
    own = next((size for size in sizes if abs(size - 1) < 1e-6), None)
    several = len(result["grid"]) > 1
    return render(
        "own_images.html",
        result=result,
        columns=columns,
        sizes=sizes,
        own=own,
        folders=folders,
        verdict=verdict(result),
        curves=curves_of(result),
        examples=examples,
        selection=_selection(result) if several else None,
        classes=None if own is None else _classes(result),
        wider=_wider_options(result) if several else None,
    )


def curves_of(result: Mapping[str, Any], title: str | None = None) -> Figure:
    """Accuracy against simulated size."""
    guessing = 100 / len(result["classes"])
    return accuracy_curves(columns_of(result), [1.0], title, objects="objects", guessing=guessing)


def _wider_options(result: Mapping[str, Any]) -> str:
    """The options of a wider grid; the ratio of its scales only where it is not the paper's."""
    grid, ratio = result["grid"], next(iter(result["runs"].values()))["config"]["network"]["ratio"]
    steps = "" if math.isclose(ratio, QUARTER_OCTAVE, rel_tol=1e-9) else f" --network.ratio {ratio!r}"
    return f"--network.low {octave_beyond(grid, -1)} --network.high {octave_beyond(grid, 1)}{steps}"


def _selection(result: Mapping[str, Any]) -> Figure | None:
    """Which channel decides at which size; None for a network that does not say it."""
    entries = next(iter(result["runs"].values()))["evaluation"]["sizes"]
    entries = sorted(entries, key=lambda entry: entry["size"])
    if not entries[0]["selection"]:
        return None
    return selection_picture(
        [entry["size"] for entry in entries],
        [round(scale / result["training_scale"], 6) for scale in result["grid"]],
        [entry["selection"] for entry in entries],
        across="size of the objects in the test",
        upwards="scale channel, relative to that of the training size",
    )


def _classes(result: Mapping[str, Any]) -> list[list[str]]:
    """A row for each class at the images' own size, or for the least accurate ones."""
    own = [
        next(entry for entry in run["evaluation"]["sizes"] if abs(entry["size"] - 1) < 1e-6)
        for run in result["runs"].values()
    ]
    names, confusion = result["classes"], own[0]["confusion"]
    order = list(range(len(names)))
    if len(order) > MOST_CLASSES:
        order = sorted(order, key=own[0]["per_class"].__getitem__)[:MOST_CLASSES]
    rows = []
    for index in order:
        row, count = confusion[index], sum(confusion[index])
        mistaken = max((k for k in range(len(row)) if k != index), key=row.__getitem__)
        found = [f"{entry['per_class'][index]:.0f} %" if count else "–" for entry in own]
        rows.append([names[index], str(count), *found, names[mistaken] if row[mistaken] else ""])
    return rows
