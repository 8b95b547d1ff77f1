"""How pictures look: their colours, their axes of sizes, and their way into a page.

A figure is drawn with the colours below. As PNG they are what is seen; in the SVG of a page each is replaced
by a variable of the page's style, so that one picture serves light, dark and print.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from html import escape

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK, SOFT, LINE, PANEL = "#1b1f24", "#5c6570", "#e1e3e6", "#ffffff"
FIRST, SECOND = "#1f6fd0", "#c2561a"
THIRD, FOURTH = "#2a9d5b", "#9b59b6"
COLOURS = (FIRST, SECOND, THIRD, FOURTH, "#8a7f5c", "#c0392b")
"""Those of curves."""
VARIABLES = {
    "ink": INK,
    "soft": SOFT,
    "line": LINE,
    "panel": PANEL,
    "first": FIRST,
    "second": SECOND,
    "third": THIRD,
    "fourth": FOURTH,
}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif"


def fraction(size: float) -> str:
    """Powers of two as they are said: ½, 1, 2."""
    named = {0.125: "⅛", 0.25: "¼", 0.5: "½"}
    return named.get(size, f"{size:.3g}")


def blank(width: float, height: float) -> Figure:
    """An empty picture of so many inches."""
    return Figure(figsize=(width, height), facecolor=PANEL, layout="constrained")


def named(axes: Axes, across: str, upwards: str) -> None:
    """What the two axes of a plot show."""
    axes.set_facecolor(PANEL)
    axes.set_xlabel(across, color=SOFT)
    axes.set_ylabel(upwards, color=SOFT)


def bare(axes: Axes, labelsize: float = 11, pad: float = 6) -> None:
    """No frame and no tick marks, only the text of the ticks."""
    axes.tick_params(length=0, labelcolor=INK, labelsize=labelsize, pad=pad)
    for spine in axes.spines.values():
        spine.set_visible(False)


def size_axis(axes: Axes, sizes: Sequence[float], across: str, upwards: str = "") -> None:
    """A logarithmic axis of sizes, with ticks at the powers of two, and no frame."""
    axes.set_xscale("log", base=2)
    low, high = (math.log2(size) for size in (sizes[0], sizes[-1]))
    powers = [2.0**k for k in range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)]
    axes.set_xticks(powers, [fraction(size) for size in powers])
    axes.minorticks_off()
    named(axes, across, upwards)
    bare(axes)


def count_axis(axes: Axes, counts: Sequence[int], across: str, upwards: str) -> None:
    """A logarithmic axis of numbers, with a tick at each of them, and no frame."""
    axes.set_xscale("log")
    axes.set_xticks(counts, [f"{count:,}" for count in counts])
    axes.minorticks_off()
    axes.set_xlim(counts[0] / 1.2, counts[-1] * 1.2)
    named(axes, across, upwards)
    bare(axes, labelsize=9)


def cells(
    axes: Axes, sizes: Sequence[float], scales: Sequence[float], across: str, upwards: str, **ticks: float
) -> None:
    """The axes of a heat map: they name those cells whose value is a power of two."""
    for axis, values in ((axes.xaxis, sizes), (axes.yaxis, scales)):
        powers = {i: round(math.log2(value)) for i, value in enumerate(values)}
        whole = [i for i, value in enumerate(values) if abs(math.log2(value) - powers[i]) < 1e-6]
        axis.set_ticks(whole, [fraction(2.0 ** powers[i]) for i in whole])
    named(axes, across, upwards)
    bare(axes, **ticks)


def svg(figure: Figure, title: str) -> str:
    """The figure as inline SVG, named for those who cannot see it."""
    buffer = io.StringIO()
    # The salt keeps names on one page apart, and the file the same every time.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": title}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"""font(-family)?: ?([0-9.]+px )?'?DejaVu Sans'?[^;"]*""", rf"font\1: \2{FONT}", text)
    for name, colour in VARIABLES.items():
        text = text.replace(colour, f"var(--{name})")
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1)
