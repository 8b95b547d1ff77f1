"""The report of a training on own images: do scale channels help on them?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from scalechannels.report import page as html
from scalechannels.report.curves import accuracy_curves, fraction
from scalechannels.report.selection import selection_picture
from scalechannels.report.theme import svg
from scalechannels.scales import QUARTER_OCTAVE

if TYPE_CHECKING:
    from torch import Tensor

CHANNELS, PLAIN = "scale channels", "plain CNN"
MOST_CLASSES = 40


class Verdict(NamedTuple):
    """What the curves say, in one sentence."""

    text: str
    channels: float
    """Mean accuracy of the scale channels over the sizes that count, in per cent."""
    plain: float | None
    margin: float | None
    """Twice the standard error of the difference: below it the test images cannot tell the two apart."""


def columns_of(result: Mapping[str, Any]) -> dict[str, dict[float, float]]:
    """Network → size → accuracy."""
    return {
        name: {entry["size"]: entry["accuracy"] for entry in run["evaluation"]["sizes"]}
        for name, run in result["runs"].items()
    }


def verdict(result: Mapping[str, Any]) -> Verdict:
    """Whether scale channels help on these images, over the sizes that are expected other than the own one.

    The margin counts the images, not images times sizes: one image at many sizes is no independent evidence.
    """
    columns, (low, high) = columns_of(result), result["factors"]
    name = CHANNELS if CHANNELS in columns else next(iter(columns))
    slack = 1 + 1e-6
    sizes = [size for size in columns[name] if low / slack <= size <= high * slack and abs(size - 1) > 1e-6]
    sizes = sizes or list(columns[name])
    over = f"over the simulated sizes {_size(min(sizes))} to {_size(max(sizes))}"
    over = f"at the simulated size {_size(sizes[0])}" if len(sizes) == 1 else f"on average {over}"
    mean = sum(columns[name][size] for size in sizes) / len(sizes)
    if PLAIN not in columns or name == PLAIN:
        find = "finds" if name == PLAIN else "find"
        return Verdict(f"The {name} {find} {mean:.0f} % right, {over}.", mean, None, None)
    other = sum(columns[PLAIN][size] for size in sizes) / len(sizes)
    images = result["images"]["kept"]
    margin = _margin(mean, other, images)
    told = f"{mean:.0f} % against {other:.0f} % for a plain CNN of equal cost, {over}"
    if mean - other > margin:
        text = f"Scale channels help on these images: {told}."
    elif other - mean > margin:
        text = f"Scale channels do not help on these images: {told}."
    else:
        text = f"No clear difference on these images: {told}; {images} images cannot tell them apart."
    own = [columns[one].get(1.0) for one in (name, PLAIN)]
    if own[0] is not None and own[1] is not None and own[1] - own[0] > _margin(own[0], own[1], images):
        text += f" At the images' own size the plain CNN is better, {own[1]:.0f} % against {own[0]:.0f} %."
    return Verdict(text, mean, other, margin)


def _margin(one: float, other: float, images: int) -> float:
    """Twice the standard error of the difference of two accuracies in per cent."""
    return 200 * math.sqrt(sum(share * (1 - share) for share in (one / 100, other / 100)) / images)


def own_images_page(
    result: Mapping[str, Any], examples: Sequence[tuple[Tensor, float]], folders: Sequence[str]
) -> str:
    """The whole page, from the result, pictures of test images with their sizes, and the runs' folders."""
    columns, found = columns_of(result), verdict(result)
    first = next(iter(columns))
    sizes = sorted(columns[first])
    guessing = 100 / len(result["classes"])
    images = result["images"]
    kept = f"{images['tested']} of {images['kept']}" if images["tested"] < images["kept"] else images["kept"]
    own = [size for size in sizes if abs(size - 1) < 1e-6]
    entries = result["runs"][first]["evaluation"]["sizes"]
    several = len(result["grid"]) > 1
    parts = [
        html.paragraph(found.text, "lead"),
        html.figures(_figures(found, columns, own, guessing)),
        html.picture(
            svg(
                accuracy_curves(columns, [1.0], objects="objects", guessing=guessing),
                "Accuracy against the simulated size of the objects",
            ),
            f"{kept} images that were not learnt from, each rescaled to {len(sizes)} sizes. Size 1 is the "
            "images' own. Sizes are simulated by resampling: a camera that comes closer shows new detail.",
        ),
        html.heading("What they saw"),
        html.paragraph(
            "Test images at simulated sizes, in the frame of four object sizes that the plain CNN sees. "
            "Beyond an image its edge pixels go on. Only the marked size was learnt from."
        ),
        html.contact_sheet(
            [(image, fraction(size) + (" own" if size == 1 else ""), size == 1) for image, size in examples],
            "No image was resized to fit another: all keep their scale.",
        ),
    ]
    if entries[0]["selection"] and several:
        parts += [
            html.heading("Which channel decides"),
            html.paragraph(
                f"The network looks through {len(result['grid'])} windows of different size with the same "
                "weights. Where the diagonal ends before the sizes do, objects are too small or too large "
                "for the channels, or for what can be seen at that size."
            ),
            html.picture(
                svg(
                    selection_picture(
                        sizes,
                        [round(scale / result["training_scale"], 6) for scale in result["grid"]],
                        [entry["selection"] for entry in sorted(entries, key=lambda one: one["size"])],
                        across="size of the objects in the test",
                        upwards="scale channel, relative to that of the training size",
                    ),
                    "The share of each scale channel in the answer, for each simulated size",
                ),
                "The stronger the colour, the larger the channel's share in the winning class.",
            ),
        ]
    if own:
        parts += [html.heading("Each class at its own size"), _classes(result)]
    parts += [
        html.heading("All figures"),
        html.table(
            ["Size", *columns],
            [
                [f"{size:.3g}" + (" · own" if size in own else "")]
                + [f"{column[size]:.1f} %" for column in columns.values()]
                for size in sizes
            ],
            [sizes.index(size) for size in own],
        ),
        html.heading("What to do next"),
        html.paragraph("Classify other images, at any size:"),
        html.commands(f"scalechannels predict {folders[0]} IMAGES --out classes.csv"),
    ]
    if several:
        parts += [
            html.paragraph(
                "It warns where the strongest channel is the first or last: then the range should be "
                "widened. Do so by what a pixel measures, or by the scales of the channels:"
            ),
            html.commands(
                "scalechannels train --data FOLDER --pixel-size 0.5 --deploy-pixel-sizes 0.05 4",
                f"scalechannels train --data FOLDER --network.low {wider(result['grid'], -1)} "
                f"--network.high {wider(result['grid'], 1)}{_ratio(result)}",
            ),
        ]
    parts += [
        html.paragraph(
            "These test images were used for no choice here. If you try several options and keep the best on "
            "them, its figure is too good: keep some images aside for the end."
        ),
        html.heading("How this was made"),
        html.facts(_facts(result, folders)),
    ]
    return html.page("Do scale channels help on these images?", *parts)


def wider(grid: Sequence[float], end: Literal[-1, 1]) -> str:
    """The scale about an octave beyond the first (−1) or last (1) of a grid, for the command line.

    Whole steps of the grid, and so many digits that a grid of these steps meets it.
    """
    ratio = grid[1] / grid[0]
    steps = max(1, round(math.log(2, ratio)))
    return f"{(grid[0] if end < 0 else grid[-1]) * ratio ** (end * steps):.10g}"


def _ratio(result: Mapping[str, Any]) -> str:
    """The option for the steps of the channels, where they are not those of the paper."""
    ratio = next(iter(result["runs"].values()))["config"]["network"]["ratio"]
    return "" if math.isclose(ratio, QUARTER_OCTAVE, rel_tol=1e-9) else f" --network.ratio {ratio!r}"


def _figures(
    found: Verdict, columns: Mapping[str, Mapping[float, float]], own: Sequence[float], guessing: float
) -> list[tuple[str, str, str]]:
    name = next(iter(columns))
    shown = [(f"{found.channels:.0f} %", f"{name}: mean over the other sizes", "first")]
    if found.plain is not None:
        shown.append(
            (f"{found.plain:.0f} %", f"{PLAIN}: the same; guessing gives {guessing:.0f} %", "second")
        )
    if own:
        values = " / ".join(f"{column[own[0]]:.0f}" for column in columns.values())
        shown.append((f"{values} %", f"at the images' own size: {' / '.join(columns)}", ""))
    return shown


def _classes(result: Mapping[str, Any]) -> html.Markup:
    """Accuracy of each class at the images' own size; of very many classes, those that are found least."""
    own = {
        name: next(entry for entry in run["evaluation"]["sizes"] if abs(entry["size"] - 1) < 1e-6)
        for name, run in result["runs"].items()
    }
    first = next(iter(own.values()))
    counts = [sum(row) for row in first["confusion"]]
    order = range(len(counts))
    if len(counts) > MOST_CLASSES:
        order = sorted(order, key=lambda index: first["per_class"][index])[:MOST_CLASSES]  # type: ignore
    rows = []
    for index in order:
        row = first["confusion"][index]
        mistaken = max((k for k in range(len(row)) if k != index), key=row.__getitem__)
        rows.append(
            [result["classes"][index], str(counts[index])]
            + [f"{entry['per_class'][index]:.0f} %" if counts[index] else "–" for entry in own.values()]
            + [result["classes"][mistaken] if row[mistaken] else ""]
        )
    return html.table(["Class", "Images", *own, "Most often taken for"], rows)


def _facts(result: Mapping[str, Any], folders: Sequence[str]) -> list[tuple[str, str]]:
    first = next(iter(result["runs"].values()))
    training, data, images = first["config"]["training"], first["config"]["data"], result["images"]
    reduction = f", made {data['reduce']} times smaller" if data["reduce"] > 1 else ""
    lines = [
        ("Images", f"{result['folder']}: {images['learnt']} to learn from, {images['kept']} to test"),
        (
            "Read as",
            f"{data['colour']}{reduction}; an object is taken to have {data['object_size']:g} pixels",
        ),
        (
            "Channels",
            f"{len(result['grid'])}, from {_size(result['grid'][0] / result['training_scale'])} to "
            f"{_size(result['grid'][-1] / result['training_scale'])} times the size of training; windows of "
            f"{result['window']} pixels"
            if len(result["grid"]) > 1
            else f"none: one window of {result['window']} pixels",
        ),
        (
            "Training",
            f"{training['epochs']} epochs, batches of {training['batch']}, rate {training['rate']:g} "
            f"({training['schedule']}), seed {training['seed']}",
        ),
    ]
    for (name, run), folder in zip(result["runs"].items(), folders, strict=True):
        cost = result["multiplications"][name] / 1e6
        lines.append(
            (
                name,
                f"{run['parameters']:,} parameters, {cost:.1f} million multiplications an image, trained in "
                f"{run['seconds']['training']:.0f} s: {folder}",
            )
        )
    environment = first["environment"]
    lines.append(
        (
            "Made with",
            f"scalechannels {environment['scalechannels']}, PyTorch {environment['torch']}, "
            f"{environment['device']}",
        )
    )
    return lines


def _size(size: float) -> str:
    return fraction(size) if size in (0.125, 0.25, 0.5) else f"{size:.3g}"
