"""Matplotlib figures that take their colours from the page around them.

A figure is drawn with the colours below. As PNG they are what is seen; in the SVG of a page each is replaced
by a variable of the page's style, so that one picture serves light, dark and print.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, SOFT, LINE, PANEL = "#1b1f24", "#5c6570", "#e1e3e6", "#ffffff"
FIRST, SECOND = "#1f6fd0", "#c2561a"
VARIABLES = {
    INK: "var(--ink)",
    SOFT: "var(--soft)",
    LINE: "var(--line)",
    PANEL: "var(--panel)",
    FIRST: "var(--first)",
    SECOND: "var(--second)",
}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif"


def svg(figure: Figure, title: str) -> str:
    """The figure as inline SVG, named for those who cannot see it."""
    from html import escape

    from matplotlib import rc_context

    buffer = io.StringIO()
    # The salt keeps the names of two pictures on one page apart, and the file the same every time.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": title}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"""font(-family)?: ?([0-9.]+px )?'?DejaVu Sans'?[^;"]*""", _font, text)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, variable)
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1)


def _font(found: re.Match[str]) -> str:
    size = found.group(2) or ""
    return f"font{found.group(1) or ''}: {size}{FONT}"
