"""The curves of benchmarks.cost as one picture, from the results that exist."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalechannels.report.theme import FIRST, INK, LINE, PANEL, SECOND, SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEVICES = {"cpu": ("CPU", "-", "o"), "cuda": ("GPU", (0, (4, 2)), "s")}
MODES = {
    "inference": ("inference", FIRST),
    "training": ("training", SECOND),
    "antialiased inference": ("inference, anti-aliased", "#7a4fb5"),
    "reading": ("reading every pixel once", SOFT),
}
AXES = {
    "channels": ("channels", "number of scale channels"),
    "image": ("side", "side of the image in pixels"),
    "batch": ("batch", "images in the batch"),
}


def draw(results: Path, picture: Path) -> Path:
    """Time (above) and memory (below) against channels, image and batch, of every device measured."""
    from matplotlib.figure import Figure

    reports = {device: results / f"cost_{device}.json" for device in DEVICES}
    found = {device: json.loads(path.read_text()) for device, path in reports.items() if path.exists()}
    if not found:
        raise FileNotFoundError(
            f"no cost_cpu.json or cost_cuda.json in {results}; python -m benchmarks.cost measures"
        )
    figure = Figure(figsize=(12, 7.2), facecolor=PANEL, layout="constrained")
    panels = figure.subplots(2, len(AXES), sharex="col")
    for column, (axis, (field, label)) in enumerate(AXES.items()):
        above, below = panels[0, column], panels[1, column]
        for device, report in found.items():
            curves(above, device, report[axis], field, lambda one: 1000 * one["seconds"] / one["batch"])
            if axis == "image":  # a sum needs no memory
                kept = [one for one in report[axis] if one["mode"] != "reading"]
                curves(below, device, kept, field, lambda one: max(one["megabytes"], 1))
            else:
                curves(below, device, report[axis], field, lambda one: max(one["megabytes"], 1))
        style(above, below, sorted({one[field] for report in found.values() for one in report[axis]}))
        below.set_xlabel(label, color=INK, fontsize=11)
    panels[0, 0].set_ylabel("milliseconds for each image", color=INK, fontsize=11)
    panels[1, 0].set_ylabel("megabytes above network and input", color=INK, fontsize=11)
    handles = {
        text: line
        for axes in panels.flat
        for line, text in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(), handles.keys(), loc="outside upper left", ncols=4, frameon=False, labelcolor=INK
    )
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=110)
    return picture


def curves(axes: Axes, device: str, measured: list[dict[str, Any]], field: str, value: Any) -> None:
    named, dashes, marker = DEVICES[device]
    for mode, (label, colour) in MODES.items():
        points = [(one[field], value(one)) for one in measured if one["mode"] == mode]
        if points:
            x, y = zip(*points, strict=True)
            axes.plot(
                x,
                y,
                color=colour,
                linestyle=dashes,
                marker=marker,
                markersize=4.5,
                linewidth=1.8,
                label=f"{named}: {label}",
            )


def style(above: Axes, below: Axes, ticks: list[int]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator

    for axes in (above, below):
        axes.set_facecolor(PANEL)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.tick_params(length=0, labelcolor=INK)
        axes.grid(color=LINE, linewidth=1)
        for spine in axes.spines.values():
            spine.set_visible(False)
    above.tick_params(labelbottom=False)
