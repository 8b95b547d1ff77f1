"""Pictures of results: accuracy against size or offset, and which scale channel decides at which size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from scalechannels.report.theme import COLOURS, FIRST, INK, LINE, SOFT, bare, blank, cells, named, size_axis


def accuracy_curves(
    columns: Mapping[str, Mapping[float, float]],
    trained: Sequence[float],
    title: str | None = None,
    *,
    objects: str = "digits",
    guessing: float = 10.0,
) -> Figure:
    """One curve for each of one or two networks; the sizes of training are marked.

    columns   name of a network → size → accuracy in per cent
    trained   one size, or a low and a high one
    objects   what is recognised
    guessing  the accuracy without any knowledge
    """
    if len(columns) not in (1, 2):
        raise ValueError(f"one or two curves fit into this picture, got {list(columns)}")
    figure = blank(7.2, 4.2)
    axes = figure.subplots()
    tested = sorted({size for column in columns.values() for size in column})
    size_axis(axes, tested, f"size of the {objects} in the test", "accuracy")
    axes.set_ylim(0, 104)
    axes.set_yticks(range(0, 101, 20), [f"{value} %" for value in range(0, 101, 20)])
    axes.grid(axis="y", color=LINE, linewidth=1)
    axes.axhline(guessing, color=SOFT, linewidth=1, linestyle=(0, (1, 3)))
    # Below the line where there is room, since curves come from above.
    y, va = (guessing - 1.2, "top") if guessing > 8 else (guessing + 1.5, "bottom")
    axes.text(tested[0], y, "guessing", color=SOFT, fontsize=9, va=va)
    axes.axvspan(trained[0] / 1.02, trained[-1] * 1.02, color=SOFT, alpha=0.25, linewidth=0)
    said = "training size" if len(trained) == 1 else "trained"
    axes.text(trained[-1] * 1.04, 3, said, color=SOFT, fontsize=9)
    heights: list[float] = []
    for (name, column), colour, marker in zip(columns.items(), COLOURS, ("o", "s"), strict=False):
        sizes = sorted(column)
        values = [column[size] for size in sizes]
        axes.plot(sizes, values, color=colour, marker=marker, markersize=5, linewidth=2.2, clip_on=False)
        last = max(-4, -len(sizes))
        if max(values) > 90 and min(values[len(values) // 2 :]) > 60:
            x, y, va = sizes[last], values[last] - 7, "top"
        else:  # above its last points, where a falling curve does not run through the name
            x, y, va = (sizes[last] * sizes[-1]) ** 0.5, max(values[last:]) + 3, "bottom"
            if any(abs(y - height) < 6 for height in heights):  # two names would cover each other
                y, va = min(values[last:]) - 3, "top"
        heights.append(y)
        axes.text(x, y, name, color=colour, fontsize=11.5, fontweight="bold", ha="center", va=va)
    if title:
        axes.set_title(title, color=INK, fontsize=13, fontweight="bold", loc="left", pad=12)
    return figure


class Point(NamedTuple):
    """One value of a curve, in per cent, and by how much it is uncertain on either side."""

    place: float
    value: float
    margin: float


def candidate_curves(
    curves: Mapping[str, Sequence[Point]],
    colours: Mapping[str, str],
    across: str,
    *,
    guessing: float,
    sizes: bool = True,
    bold: str | None = None,
    title: str | None = None,
) -> Figure:
    """Accuracy curves of several candidates with bands of uncertainty and a legend.

    sizes      the places are sizes, on a logarithmic axis, where 1 is marked; else they are named as they are
    bold       the curve that stands out
    """
    figure = blank(7.2, 4.4)
    axes = figure.subplots()
    places = sorted({point.place for points in curves.values() for point in points})
    if sizes:
        size_axis(axes, places, across, "accuracy")
        axes.axvline(1, color=SOFT, linewidth=6, alpha=0.18)
    else:
        named(axes, across, "accuracy")
        axes.set_xticks(places, [f"{place:g}" for place in places])
        bare(axes)
    axes.set_ylim(0, 104)
    axes.set_yticks(range(0, 101, 20), [f"{value} %" for value in range(0, 101, 20)])
    axes.grid(axis="y", color=LINE, linewidth=1)
    axes.axhline(guessing, color=SOFT, linewidth=1, linestyle=(0, (1, 3)))
    axes.text(places[0], guessing + 1.2, "guessing", color=SOFT, fontsize=9, va="bottom")
    for (name, points), marker in zip(curves.items(), "osD^v*", strict=False):
        at, values = [point.place for point in points], [point.value for point in points]
        low, high = ([p.value + sign * p.margin for p in points] for sign in (-1, 1))
        axes.fill_between(at, low, [min(100, value) for value in high], color=colours[name], alpha=0.12, lw=0)
        width = 2.8 if name == bold else 1.7
        axes.plot(at, values, color=colours[name], marker=marker, markersize=5, linewidth=width, label=name)
    # Above the plot, where no curve runs.
    legend = figure.legend(loc="outside upper center", frameon=False, fontsize=9.5, ncols=4)
    for text, name in zip(legend.get_texts(), curves, strict=True):
        text.set_color(INK)
        text.set_fontweight("bold" if name == bold else "normal")
    if title:
        axes.set_title(title, color=INK, fontsize=13, fontweight="bold", loc="left", pad=12)
    return figure


def selection_picture(
    sizes: Sequence[float],
    scales: Sequence[float],
    shares: Sequence[Sequence[float]],
    *,
    across: str = "size of the digits in the test",
    upwards: str = "scale channel σ",
) -> Figure:
    """A heat map, diagonal where a network selects scale: test sizes across, channels upwards.

    The stronger the colour, the larger the share.

    shares   for each size, the mean contribution of each channel to the winning class
    """
    if len(shares) != len(sizes) or any(len(row) != len(scales) for row in shares):
        raise ValueError(f"one share for each of {len(sizes)} sizes and {len(scales)} channels is needed")
    figure = blank(7.2, 6.0)
    axes = figure.subplots()
    strongest = max(max(row) for row in shares)
    for column, row in enumerate(shares):
        for channel, share in enumerate(row):
            box = (column - 0.46, channel - 0.46), 0.92, 0.92
            axes.add_patch(Rectangle(*box, facecolor=LINE, alpha=0.35, linewidth=0))
            if share > 0.004 * strongest:
                axes.add_patch(Rectangle(*box, facecolor=FIRST, alpha=min(1, share / strongest), linewidth=0))
    axes.set_xlim(-0.5, len(sizes) - 0.5)
    axes.set_ylim(-0.5, len(scales) - 0.5)
    cells(axes, sizes, scales, across, upwards)
    return figure
