"""The report of a training on own images: all candidates under all conditions, and which one to use."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from scalechannels.data.frames import framed, reduced
from scalechannels.data.survey import Survey
from scalechannels.files import atomic_path, write_text
from scalechannels.report.conditions import SURROUNDINGS, Condition, conditions, picture
from scalechannels.report.curves import Point, candidate_curves, selection_picture
from scalechannels.report.kept import KEPT, test_of_kept, tests
from scalechannels.report.looked import Looked
from scalechannels.report.none_of_these import by_size
from scalechannels.report.page import render
from scalechannels.report.theme import COLOURS, INK, fraction
from scalechannels.report.verdict import Verdict
from scalechannels.scales import ScaleGrid
from scalechannels.training.config import ResolvedRun
from scalechannels.training.config.data import FIELD
from scalechannels.training.config.own_images import factors
from scalechannels.training.runs import Run

REPORT, NUMBERS, CURVES = "report.html", "report.json", "accuracy.png"
CLASSES = ("first", "second", "third", "fourth")
"""The colours of the page in the order of `COLOURS`."""
MOST_CLASSES = 40
SHOWN = 2
"""Test images in the report's pictures."""
PICTURE = 168
"""Pixels of such a picture's side."""


def described(config: ResolvedRun) -> str:
    """What was chosen, before it is trained on."""
    images, network, own = config.data.own, config.network, config.training_scale
    shrunk = (
        f", shrunk to {in_pixels(images.object_pixels)} (factor {images.reduce})" if images.reduce > 1 else ""
    )
    low, high = factors(config.data)
    size = in_pixels(images.object_size)
    text = f"objects of {size} pixels{shrunk}, later {low:g} to {high:g} times that size"
    if config.data.resize is not None:
        return f"{text}; each image resized to {config.data.resize} pixels"
    if network.name == "cnn":
        return f"{text}; no channels, one window of {FIELD * config.window} pixels"
    grid = ScaleGrid(network.low, network.high, ratio=network.ratio)
    return (
        f"{text}; {len(grid)} channels, for {grid.minimum / own:.3g} to {grid.maximum / own:.3g} times that "
        f"size (σ = {grid.minimum:.3g} to {grid.maximum:.3g}), windows of {config.window} pixels"
    )


def in_pixels(length: float) -> str:
    """Three digits, and of a thousand pixels and more all: 12.3, 120, 1,200."""
    return f"{length:.3g}" if length < 999.5 else f"{length:,.0f}"


def gathered(
    base: ResolvedRun,
    seen: Survey,
    parts: Sequence[Any],
    trials: Mapping[str, dict[str, Any]],
    runs: Mapping[str, Run],
    left_out: Mapping[str, str],
    budget: str | None,
) -> dict[str, Any]:
    """All that the report says, for programs too."""
    own = base.data.own
    candidates = {}
    for name, trial in trials.items():
        result = runs[name].result()
        candidates[name] = {
            **trial,
            "folder": str(runs[name].folder),
            **{key: result[key] for key in ("config", "parameters", "environment", "seconds")},
        }
    return {
        "folder": base.data.folder,
        "survey": seen.lines(),
        "balanced": seen.balanced,
        "off_centre": seen.off_centre,
        "classes": list(parts[0].classes),
        "images": dict(zip(("train", "validation", "test"), map(len, parts), strict=True)),
        "kind": base.data.images or "crops",
        "colour": own.colour,
        "object_size": own.object_size,
        "object_pixels": own.object_pixels,
        "reduce": own.reduce,
        "training_scale": base.training_scale,
        "factors": list(factors(base.data)),
        "budget": budget,
        "left_out": dict(left_out),
        "candidates": candidates,
    }


def points_of(result: Mapping[str, Any], group: str) -> dict[str, list[Point]]:
    """Each network's curve over the test part: its balanced accuracy and how uncertain it is."""
    return {
        name: [
            Point(entry["value"], entry["balanced"], entry["margin"])
            for entry in entries
            if entry["group"] == group
        ]
        for name, entries in tests(result).items()
    }


def table(result: Mapping[str, Any]) -> str:
    """Test accuracy as text: a row for each condition, a column for each network.

    Where classes are unbalanced, balanced accuracies, and those of all images in brackets.
    """
    found, both = tests(result), not result["balanced"]
    names = list(found)
    widths = [max(18 if both else 10, len(name) + 2) for name in names]
    lines = ["balanced accuracy, the mean over the classes (in brackets: of all images)\n"] if both else []
    lines.append(f"{'':>16}" + "".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True)))
    for row in zip(*found.values(), strict=True):
        line = f"{said(row[0], result):>16}"
        for entry, width in zip(row, widths, strict=True):
            beside = f" ({entry['accuracy']:.1f})" if both else ""
            line += f"{entry['balanced']:.1f} %{beside}".rjust(width)
        lines.append(line)
    return "\n".join(lines)


def uncertainty(result: Mapping[str, Any]) -> str:
    """How far chance can move the numbers of the table, by that of the network that is kept at size 1."""
    winner, tested = result["verdict"]["winner"], test_of_kept(result)
    one = next((entry for entry in tested if entry["group"] == "size" and entry["value"] == 1), tested[0])
    whose = f"{winner}'" if winner.endswith("s") else f"{winner}'s"
    return (
        f"{one['images']:,} images were tested: by chance alone, a number such as the {whose} at "
        f"{said(one, result)} can be {one['margin']:.0f} points off (95 %)."
    )


def said(entry: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """A condition in words."""
    if entry["group"] == "size":
        return f"size {entry['value']:.3g}" + (" (own)" if abs(entry["value"] - 1) < 1e-6 else "")
    if entry["group"] == "offset":
        pixels = _pixels_off(entry["value"], result)
        return f"{pixels} {'pixel' if pixels == 1 else 'pixels'} off"
    return SURROUNDINGS[int(entry["value"])]


def _pixels_off(share: float, result: Mapping[str, Any]) -> int:
    """An offset in pixels of the files."""
    return int(max(1, round(share * result["object_pixels"])) * result["reduce"])


def write_report(result: dict[str, Any], best: Verdict, folder: Path, data: Any, seen: Looked | None) -> None:
    """The page, its numbers, and the curves as a picture, in a run's folder.

    seen   where the network that is kept looked
    """
    result["looked"] = None if seen is None else seen.numbers()
    result["verdict"] = {"winner": best.winner, "text": best.text, "remarks": best.remarks}
    result["means"] = best.means
    text = own_images_page(result, best, _examples(data, result), folder, seen)
    write_text(folder / NUMBERS, json.dumps(result, indent=1) + "\n")
    with atomic_path(folder / CURVES) as path:
        size_curves(result, best, "These images at other sizes").savefig(path, format="png", dpi=110)
    write_text(folder / REPORT, text)


def size_curves(result: Mapping[str, Any], best: Verdict, title: str | None = None) -> Figure:
    """Accuracy against size."""
    return candidate_curves(
        points_of(result, "size"),
        colours(result),
        "size of the objects in the test",
        guessing=100 / len(result["classes"]),
        bold=KEPT if KEPT in tests(result) else best.winner,
        title=title,
    )


def colours(result: Mapping[str, Any]) -> dict[str, str]:
    """Of each network; that which is kept has ink of its own, as its curve is close to another one."""
    return {**dict(zip(result["candidates"], COLOURS, strict=False)), KEPT: INK}


def own_images_page(
    result: Mapping[str, Any],
    best: Verdict,
    examples: Sequence[tuple[Any, str]],
    folder: Path,
    seen: Looked | None = None,
) -> str:
    """The whole page; `examples` are pictures of test images with what was done to them."""
    trials = result["candidates"]
    found = tests(result)
    own = [[e for e in entries if e["group"] == "size" and e["value"] == 1] for entries in found.values()]
    offsets = {
        name: [Point(_pixels_off(point.place, result), *point[1:]) for point in points]
        for name, points in points_of(result, "offset").items()
    }
    if all(own):
        for (name, points), (entry,) in zip(offsets.items(), own, strict=True):
            offsets[name] = [Point(0, entry["balanced"], entry["margin"]), *points]
    return render(
        "own_images.html",
        result=result,
        best=best,
        folder=str(folder),
        tiles=_tiles(result, best),
        sizes=[entry["value"] for entry in trials[best.winner]["test"] if entry["group"] == "size"],
        curves=size_curves(result, best),
        offsets=candidate_curves(
            offsets,
            colours(result),
            f"pixels {'moved' if result['off_centre'] else 'off the centre'}, along both axes",
            guessing=100 / len(result["classes"]),
            sizes=False,
            bold=KEPT if KEPT in found else best.winner,
        ),
        surroundings=_surroundings(result),
        costs=_costs(result, best),
        calibration=_calibration(result),
        examples=examples,
        looked=seen,
        selection=_selection(result, best),
        classes=_classes(result) if all(own) else None,
        none_of_these=by_size(result),
        tested={split: trials[best.winner][split][0]["images"] for split in ("validation", "test")},
        columns=list(found),
        numbers=[
            [said(row[0], result), *(_with_margin(entry, result) for entry in row)]
            for row in zip(*found.values(), strict=True)
        ],
        wider=_wider_options(result),
    )


def _tiles(result: Mapping[str, Any], best: Verdict) -> list[tuple[str, str, str]]:
    """The mean accuracy of each network, what it is, and its colour."""
    again = KEPT in tests(result)
    tiles = []
    for name, shade in zip(result["candidates"], CLASSES, strict=False):
        used = ", to be used" if name == best.winner and not again else ""
        tiles.append((f"{best.means[name]:.0f} %", f"{name}{used}", shade))
    kept = [(f"{best.means[KEPT]:.0f} %", f"kept: the {best.winner}, trained again", "")] if again else []
    return [*tiles, *kept]


def _with_margin(entry: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """The balanced accuracy; where classes are unbalanced, that of all images beside it."""
    beside = "" if result["balanced"] else f" ({entry['accuracy']:.1f})"
    return f"{entry['balanced']:.1f} ± {entry['margin']:.1f}{beside}"


def _surroundings(result: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for place, name in enumerate(SURROUNDINGS):
        found = [points[place] for points in points_of(result, "surroundings").values()]
        rows.append([name, *(f"{point.value:.0f} ± {point.margin:.0f} %" for point in found)])
    return rows


def _costs(result: Mapping[str, Any], best: Verdict) -> list[list[str]]:
    rows = []
    for name, trial in result["candidates"].items():
        cost = trial["cost"]
        many = cost.get("multiplications")
        rows.append(
            [
                name,
                f"{best.means[name]:.1f} %",
                f"{cost['parameters']:,}",
                "by image size" if many is None else f"{many / 1e6:.1f} million",
                f"{1000 * trial['seconds_an_image']:.1f} ms",
                f"{trial['seconds']['training']:.0f} s",
            ]
        )
    return rows


def _calibration(result: Mapping[str, Any]) -> list[list[str]]:
    """For each size, how far each network's probabilities are off, in points."""
    rows = []
    for row in zip(*tests(result).values(), strict=True):
        if row[0]["group"] == "size":
            rows.append([said(row[0], result), *(f"{entry['calibration']:.1f}" for entry in row)])
    return rows


def _wider_options(result: Mapping[str, Any]) -> str:
    """The options of a range that is an octave wider on either side."""
    low, high = result["factors"]
    return f"--range {low / 2:g} {high * 2:g}"


def _selection(result: Mapping[str, Any], best: Verdict) -> Figure | None:
    """Which channel decides at which size; None where no candidate says it."""
    trials = result["candidates"]
    for name in sorted(trials, key=lambda name: name != best.winner):
        entries = [entry for entry in trials[name]["test"] if entry["group"] == "size"]
        network = trials[name]["config"]["network"]
        if entries and entries[0]["selection"] and len(entries[0]["selection"]) > 1:
            grid = ScaleGrid(network["low"], network["high"], ratio=network["ratio"])
            return selection_picture(
                [entry["value"] for entry in entries],
                [round(scale / result["training_scale"], 6) for scale in grid],
                [entry["selection"] for entry in entries],
                across="size of the objects in the test",
                upwards="scale channel, relative to that of the training size",
            )
    return None


def _classes(result: Mapping[str, Any]) -> list[list[str]]:
    """A row for each class at the images' own size, or for the least accurate ones."""
    networks = tests(result)
    own = {
        name: next(e for e in entries if e["group"] == "size" and abs(e["value"] - 1) < 1e-6)
        for name, entries in networks.items()
    }
    best = KEPT if KEPT in networks else result["verdict"]["winner"]
    names, confusion = result["classes"], own[best]["confusion"]
    order = list(range(len(names)))
    if len(order) > MOST_CLASSES:
        order = sorted(order, key=own[best]["per_class"].__getitem__)[:MOST_CLASSES]
    rows = []
    for index in order:
        row, count = confusion[index], sum(confusion[index])
        mistaken = max((k for k in range(len(row)) if k != index), key=row.__getitem__)
        found = [f"{entry['per_class'][index]:.0f} %" if count else "–" for entry in own.values()]
        rows.append([names[index], str(count), *found, names[mistaken] if row[mistaken] else ""])
    return rows


def _examples(data: Any, result: Mapping[str, Any]) -> list[tuple[Any, str]]:
    """Some test images one below the other, under each condition that is shown."""
    kept = data.kept
    spread = [round(k * (len(kept) - 1) / SHOWN) for k in range(SHOWN)]  # of different classes
    shown = [reduced(kept[index][0], data.reduce) for index in spread]
    low, high = result["factors"]
    wanted = [
        *(Condition("size", size) for size in sorted({low, 0.5, 1.0, 2.0, high}) if low <= size <= high),
        *(one for one in conditions(low, high) if one.group != "size"),
    ]
    wanted = [one for one in wanted if one.group != "offset" or math.isclose(one.value, 1 / 7)]
    examples = []
    for condition in wanted:
        made = [
            picture(image, condition, result["kind"], result["object_pixels"], number)
            for number, image in enumerate(shown)
        ]
        side = max(max(one.shape[1:]) for one in made)
        smaller = max(1, side // PICTURE)
        stacked = torch.cat([reduced(framed(one, side), smaller) for one in made], dim=1)
        name = fraction(condition.value) if condition.group == "size" else said(vars(condition), result)
        examples.append((stacked[0] if len(stacked) == 1 else stacked, name))
    return examples
