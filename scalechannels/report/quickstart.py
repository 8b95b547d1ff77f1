"""The page that the quickstart writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scalechannels.data.ranges import inside
from scalechannels.report import page as html
from scalechannels.report.curves import accuracy_curves, fraction
from scalechannels.report.selection import selection_picture
from scalechannels.report.theme import svg

if TYPE_CHECKING:
    from torch import Tensor


def quickstart_page(
    result: dict[str, Any],
    scales: Sequence[float],
    examples: Sequence[tuple[Tensor, float]],
    folders: Sequence[str],
) -> str:
    """The whole page, from the quickstart's result, the scales of the channels, pictures, and run folders."""
    trained = result["trained"]
    results = result["evaluation"]
    channels, plain = results
    columns = {name: {e["size"]: e["accuracy"] for e in entries} for name, entries in results.items()}
    sizes = sorted(columns[channels])
    expected = inside(sizes, 0.5, 4)
    worst = min(columns[channels][size] for size in expected)
    farthest = max(expected)
    images = results[channels][0]["images"]
    config = result["runs"][channels]["config"]
    return html.page(
        "Trained at one size, recognised at all",
        html.paragraph(
            f"Two networks learnt the same {config['data']['samples']:,} digits, all of one size. Then both "
            f"saw new digits at {len(sizes)} sizes, from half to eight times that size.",
            "lead",
        ),
        html.figures(
            [
                (f"{worst:.1f} %", f"{channels}: the lowest accuracy from size ½ to {farthest:g}", "first"),
                (
                    f"{columns[plain][farthest]:.1f} %",
                    f"{plain} at size {farthest:g}; guessing gives 10 %",
                    "second",
                ),
                (
                    f"{columns[plain][trained]:.1f} %",
                    f"{plain} at the size it was trained on: it did learn",
                    "",
                ),
            ]
        ),
        html.picture(
            svg(accuracy_curves(columns, [trained]), "Accuracy against the size of the digits, two networks"),
            f"{images} test digits of each size. Size 1 is a digit of 28 pixels; the images have 112.",
        ),
        html.heading("What they saw"),
        html.paragraph("Three test digits at nine of the sizes. Only the marked size was in training."),
        html.contact_sheet(
            [
                (image, fraction(round(size, 3)) + (" trained" if size == trained else ""), size == trained)
                for image, size in examples
            ],
            "From size 4 on a digit fills its image, and beyond it the image shows only a part.",
        ),
        html.heading("Which channel decides"),
        html.paragraph(
            f"The scale-channel network looks through {len(scales)} windows of different size at once, with "
            "the same weights. Enlarge the digit, and what one channel saw is seen by the next one: the "
            "answer moves along the diagonal and stays the same."
        ),
        html.picture(
            svg(
                selection_picture(sizes, scales, [entry["selection"] for entry in results[channels]]),
                "The share of each scale channel in the answer, for each size of the digits",
            ),
            "The stronger the colour, the larger the channel's share in the winning class, averaged over "
            "the test digits. Where the diagonal meets the end of the grid, accuracy begins to fall.",
        ),
        html.heading("All figures"),
        html.table(
            ["Size", *columns],
            [
                [f"{size:.3g}" + (" · trained" if size == trained else "")]
                + [f"{column[size]:.1f} %" for column in columns.values()]
                for size in sizes
            ],
            [sizes.index(trained)] if trained in sizes else [],
        ),
        html.heading("What to do next"),
        html.paragraph("Classify your own images of digits, white on black (with --invert, ink on paper):"),
        html.commands(f"scalechannels predict {folders[0]} digit.png"),
        html.paragraph("Do the same on MNIST, or train the paper's own networks with the paper's recipe:"),
        html.commands(
            "scalechannels quickstart --data mnist --out quickstart-mnist",
            "scalechannels train --data.name mnist --data.sizes 2 --network.name fovavg",
        ),
        html.paragraph("Put scale channels around your own backbone, in your own training loop:"),
        html.commands(
            "from scalechannels import LogMeanExpOverScales, ScaleChannelNetwork, ScaleGrid",
            "",
            "grid = ScaleGrid.from_sizes(training=200, deployment=(100, 800), window=224)  # in pixels",
            "network = ScaleChannelNetwork(backbone, grid, LogMeanExpOverScales(), window=224)",
        ),
        html.heading("How this was made"),
        html.facts(_facts(result, folders)),
    )


def _facts(result: dict[str, Any], folders: Sequence[str]) -> list[tuple[str, str]]:
    first = next(iter(result["runs"].values()))
    training = first["config"]["training"]
    lines = [
        (
            "Data",
            {"strokes": "built-in digits, drawn from strokes", "mnist": "MNIST Large Scale"}[result["data"]],
        ),
        (
            "Training",
            f"{training['epochs']} epochs, batches of {training['batch']}, rate {training['rate']:g} "
            f"({training['schedule']}), seed {training['seed']}",
        ),
    ]
    for (name, run), folder in zip(result["runs"].items(), folders, strict=True):
        lines.append(
            (
                name,
                f"{run['parameters']:,} parameters, trained in {run['seconds']['training']:.0f} s: {folder}",
            )
        )
    environment = first["environment"]
    lines.append(
        (
            "Made with",
            f"scalechannels {environment['scalechannels']}, PyTorch {environment['torch']}, on a CPU",
        )
    )
    return lines
