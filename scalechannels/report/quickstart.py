"""The page that the quickstart writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scalechannels.data.sizes import inside
from scalechannels.report.curves import accuracy_curves, selection_picture
from scalechannels.report.page import render
from scalechannels.report.text import accuracies
from scalechannels.report.theme import svg

if TYPE_CHECKING:
    from torch import Tensor

DATA = {"strokes": "built-in digits, drawn from strokes", "mnist": "MNIST Large Scale"}


def quickstart_page(
    result: dict[str, Any],
    scales: Sequence[float],
    examples: Sequence[tuple[Tensor, float]],
    folders: Sequence[str],
) -> str:
    """The whole page, from the quickstart's result, the scales of the channels, pictures, and run folders."""
    trained, results = result["trained"], result["evaluation"]
    channels, plain = results
    columns = {name: accuracies(entries) for name, entries in results.items()}
    sizes = sorted(columns[channels])
    expected = inside(sizes, 0.5, 4)
    selection = selection_picture(sizes, scales, [entry["selection"] for entry in results[channels]])
    return render(
        "quickstart.html",
        channels=channels,
        plain=plain,
        scales=scales,
        sizes=sizes,
        columns=columns,
        trained=trained,
        worst=min(columns[channels][size] for size in expected),
        farthest=max(expected),
        images=results[channels][0]["images"],
        samples=result["runs"][channels]["config"]["data"]["samples"],
        curves=svg(
            accuracy_curves(columns, [trained]), "Accuracy against the size of the digits, two networks"
        ),
        examples=examples,
        selection=svg(
            selection, "The share of each scale channel in the answer, for each size of the digits"
        ),
        data=DATA[result["data"]],
        runs=result["runs"],
        folders=folders,
    )
