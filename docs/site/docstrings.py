"""Our docstrings as Markdown: columns of arguments become lists, examples code, and Law and Limit stand out.

grid       the scales of the channels              - **`grid`**: the scales of the channels
window     n, the side of every window,     ──▶    - **`window`**: n, the side of every window, in pixels
           in pixels
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

from griffe import Docstring, Extension, Object

ARGUMENT = re.compile(r"^(\w+(?:, \w+)*) {2,}(\S.*)$")
EXAMPLE = re.compile(r"^Example:\n((?:[ ]{4}.*\n|\n)+)", re.MULTILINE)
LAW = re.compile(r"(?:(?<=^)|(?<=[.:] )|(?<=\n))(Laws?|Limits?):(?= )", re.MULTILINE)


def as_code(example: re.Match[str]) -> str:
    """As Markdown, `>>>` would be three quotes within one another."""
    return f"**Example**\n\n```pycon\n{textwrap.dedent(example[1]).strip()}\n```\n\n"


def as_markdown(text: str) -> str:
    text = EXAMPLE.sub(as_code, f"{text}\n")
    lines: list[str] = []
    inside = False  # an argument's description
    for line in text.splitlines():
        argument = ARGUMENT.match(line)
        if argument:
            if lines and lines[-1] and not inside:
                lines.append("")  # a list needs an empty line before it
            names = ", ".join(f"`{name}`" for name in argument[1].split(", "))
            lines.append(f"- {names}: {argument[2]}")
            inside = True
        elif inside and line.startswith("  "):
            lines[-1] += " " + line.strip()
        else:
            inside = False
            lines.append(line)
    return LAW.sub(r"**\1:**", "\n".join(lines))


class OurDocstrings(Extension):
    def on_object(self, *, obj: Object, **_: Any) -> None:
        if isinstance(obj.docstring, Docstring):
            obj.docstring.value = as_markdown(obj.docstring.value)
