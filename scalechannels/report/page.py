"""Self-contained HTML pages: one file with its style and pictures inside, that loads nothing.

A page follows the reader's light or dark setting, reads on a phone, and prints. Its words are in
`templates/`. Law: what is put into a template is escaped, except for pictures, which it marks as safe; a name
that a template uses and does not get is an error.
"""

from __future__ import annotations

from typing import Any

import jinja2

from scalechannels.data.pictures import png
from scalechannels.report.theme import fraction, svg


def render(template: str, **values: Any) -> str:
    """The page of a template."""
    pages = jinja2.Environment(
        loader=jinja2.PackageLoader("scalechannels.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    pages.filters |= {"png": png, "fraction": fraction, "svg": svg}
    return pages.get_template(template).render(values)
