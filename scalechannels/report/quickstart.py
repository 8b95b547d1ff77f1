"""The page that the quickstart writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scalechannels.data.sizes import accuracies, inside
from scalechannels.report.curves import accuracy_curves, selection_picture
from scalechannels.report.page import render

if TYPE_CHECKING:
    from torch import Tensor


def quickstart_page(
    result: dict[str, Any],
    scales: Sequence[float],
    examples: Sequence[tuple[Tensor, float]],
    folders: Sequence[str],
) -> str:
    """The whole page; `examples` are pictures of test digits with their sizes."""
    results = result["evaluation"]
    channels, plain = results
    columns = {name: accuracies(entries) for name, entries in results.items()}
    sizes = sorted(columns[channels])
    expected = inside(sizes, 0.5, 4)
    return render(
        "quickstart.html",
        result=result,
        channels=channels,
        plain=plain,
        scales=scales,
        sizes=sizes,
        columns=columns,
        worst=min(columns[channels][size] for size in expected),
        farthest=max(expected),
        curves=accuracy_curves(columns, [result["trained"]]),
        examples=examples,
        selection=selection_picture(sizes, scales, [entry["selection"] for entry in results[channels]]),
        folders=folders,
    )
