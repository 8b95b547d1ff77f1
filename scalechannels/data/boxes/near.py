"""Where the image is that labels name: exports are moved and unpacked, and still name old places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from scalechannels.data.image_files import is_file, suffixes

FOLDERS = ("", "images", "JPEGImages")
"""Where images lie, beside the labels or one folder above."""


def found_near(labels: Path, name: str, *, or_stem: str | None = None) -> Path:
    """The file of that name, in one of the usual folders near the labels; else the path that it should have.

    or_stem   an image of this stem will do where there is none of that name
    """
    folders = [place / inner for place in (labels.parent, labels.parent.parent) for inner in FOLDERS]
    for one in _spelt(name, or_stem):
        for folder in folders:
            if is_file(folder / one):
                return folder / one
    return labels.parent / name


def _spelt(name: str, or_stem: str | None) -> Iterator[str]:
    """What the file may be called here, the likeliest first."""
    plain = name.replace("\\", "/")
    yield plain
    # A path of the machine where the labels were made is of no use here: then its last part is looked for.
    last = plain.rsplit("/", 1)[-1]
    yield last
    if "%" in last or "?" in last:  # an address, as Label Studio writes it: /data/local-files/?d=photos/1.jpg
        yield unquote(last.partition("?")[0])
    stems = [last] if Path(last).suffix.lower() not in suffixes() else []  # labelImg may drop the suffix
    for stem in (*stems, *([or_stem] if or_stem else [])):
        for suffix in suffixes():
            yield f"{stem}{suffix}"
            yield f"{stem}{suffix.upper()}"
