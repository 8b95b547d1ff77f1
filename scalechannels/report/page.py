"""Self-contained HTML pages: one file with its style and pictures inside, that loads nothing.

A page follows the reader's light or dark setting, reads on a phone, and prints. Its words are in
`templates/`. Law: what is put into a template is escaped, except for pictures, which it marks as safe; a name
that a template uses and does not get is an error.
"""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def render(template: str, **values: Any) -> str:
    """The page of a template."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    pages = Environment(
        loader=PackageLoader("scalechannels.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    pages.filters["png"] = png
    return pages.get_template(template).render(values)


def png(image: Tensor) -> str:
    """An image (H, W) or (3, H, W) with values from 0 to 1 as a data address."""
    from PIL import Image

    values = image if image.ndim == 2 else image.movedim(0, -1)
    pixels = (values.clamp(0, 1) * 255).round().byte().cpu().contiguous().numpy()
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
