"""A self-contained HTML page: one file with its style and pictures inside, that needs no network.

It follows the reader's light or dark setting, reads on a phone, and prints. Text that is given to the
functions below is escaped; only `Markup` goes in as it is.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

STYLE = """
:root { color-scheme: light dark;
  --ground: #fbfbf9; --panel: #ffffff; --ink: #1b1f24; --soft: #5c6570; --line: #e1e3e6;
  --first: #1f6fd0; --second: #c2561a; }
@media (prefers-color-scheme: dark) { :root {
  --ground: #14171b; --panel: #1c2026; --ink: #e8eaed; --soft: #a0a8b3; --line: #343a42;
  --first: #6aa9f7; --second: #f0935a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 17px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; }
main { max-width: 56rem; margin: 0 auto; padding: 3rem 1.25rem 4rem; }
h1 { font-size: clamp(1.8rem, 5vw, 2.6rem); line-height: 1.15; letter-spacing: -0.02em; margin: 0 0 0.75rem; }
h2 { font-size: 1.3rem; letter-spacing: -0.01em; margin: 3rem 0 0.5rem; }
p { margin: 0.5rem 0; max-width: 42rem; }
.lead { font-size: 1.15rem; color: var(--soft); }
.soft, figcaption, dt { color: var(--soft); font-size: 0.9rem; }
.first { color: var(--first); } .second { color: var(--second); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: 1rem;
  margin: 2rem 0; }
.figures > div, figure { background: var(--panel); border: 1px solid var(--line); border-radius: 12px; }
.figures > div { padding: 1rem 1.2rem; }
.figures strong { display: block; font-size: 2rem; line-height: 1.2; font-weight: 650;
  letter-spacing: -0.02em; }
.figures span { color: var(--soft); font-size: 0.9rem; line-height: 1.4; display: block; }
figure { margin: 1rem 0; padding: 1rem; }
figure svg { display: block; width: 100%; height: auto; }
figcaption { margin-top: 0.6rem; line-height: 1.45; }
.scroll { overflow-x: auto; }
.sheet { display: grid; grid-template-columns: repeat(auto-fit, minmax(4.2rem, 1fr)); gap: 0.5rem; }
.sheet div { text-align: center; font-size: 0.85rem; color: var(--soft); }
.sheet img { display: block; width: 100%; border-radius: 4px; }
.sheet .marked { color: var(--first); font-weight: 650; }
.sheet .marked img { outline: 3px solid var(--first); outline-offset: 1px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 0.95rem; }
th, td { text-align: right; padding: 0.28rem 0.75rem; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { font-weight: 600; } th:first-child, td:first-child { text-align: left; }
tr.marked td { font-weight: 650; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 0.7rem 1rem;
  overflow-x: auto; font: 0.88rem/1.5 ui-monospace, SFMono-Regular, Menlo, "DejaVu Sans Mono", monospace; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.25rem 1.2rem; margin: 1rem 0; }
dd { margin: 0; font-size: 0.9rem; overflow-wrap: anywhere; }
@media print { body { background: none; font-size: 11pt; } main { padding: 0; }
  figure, .figures > div, tr, pre { break-inside: avoid; } h2 { break-after: avoid; }
  pre { white-space: pre-wrap; } }
@media (max-width: 34rem) { main { padding-top: 1.75rem; } figure { padding: 0.6rem; }
  dl { grid-template-columns: 1fr; } dd { margin-bottom: 0.5rem; } }
"""


class Markup(str):
    """HTML that is inserted as it is."""


def page(title: str, *parts: str) -> str:
    """The whole file."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(title)}</h1>\n"
        + "\n".join(_html(part) for part in parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def heading(text: str) -> Markup:
    return Markup(f"<h2>{escape(text)}</h2>")


def paragraph(text: str, kind: str = "") -> Markup:
    mark = f' class="{escape(kind)}"' if kind else ""
    return Markup(f"<p{mark}>{_html(text)}</p>")


def figures(values: Iterable[tuple[str, str, str]]) -> Markup:
    """A row of large figures: (the figure, what it is, its colour: "first", "second" or none)."""
    cells = (
        f'<div><strong class="{escape(kind)}">{escape(value)}</strong><span>{escape(text)}</span></div>'
        for value, text, kind in values
    )
    return Markup(f'<div class="figures">{"".join(cells)}</div>')


def picture(svg: str, caption: str) -> Markup:
    """An inline SVG with its caption; it scrolls by itself where the screen is too narrow."""
    return Markup(
        f'<figure><div class="scroll">{svg}</div><figcaption>{escape(caption)}</figcaption></figure>'
    )


def contact_sheet(columns: Sequence[tuple[Tensor, str, bool]], caption: str) -> Markup:
    """Images (H, W) or (3, H, W), 0 to 1, each with its name; those that are marked stand out."""
    cells = []
    for image, name, marked in columns:
        kind, name = " class=marked" if marked else "", escape(name)
        cells.append(f'<div{kind}><img src="{png(image)}" alt="{name}">{name}</div>')
    sheet = f'<div class="sheet">{"".join(cells)}</div>'
    return Markup(f"<figure>{sheet}<figcaption>{escape(caption)}</figcaption></figure>")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], marked: Iterable[int] = ()) -> Markup:
    """Rows of text or markup; the marked ones, by their index, in bold."""
    bold = set(marked)
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in heads)
    body = "".join(
        f"<tr{' class=marked' if index in bold else ''}>"
        + "".join(f"<td>{text if isinstance(text, Markup) else escape(text)}</td>" for text in row)
        + "</tr>"
        for index, row in enumerate(rows)
    )
    return Markup(
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def commands(*lines: str) -> Markup:
    return Markup(f"<pre>{escape(chr(10).join(lines))}</pre>")


def facts(pairs: Iterable[tuple[str, str]]) -> Markup:
    return Markup(
        "<dl>"
        + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs)
        + "</dl>"
    )


def png(image: Tensor) -> str:
    """An image (H, W) or (3, H, W) with values from 0 to 1 as a data address."""
    from PIL import Image

    values = image if image.ndim == 2 else image.movedim(0, -1)
    pixels = (values.clamp(0, 1) * 255).round().byte().cpu().contiguous().numpy()
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def _html(text: str) -> str:
    return text if isinstance(text, Markup) else escape(text)
