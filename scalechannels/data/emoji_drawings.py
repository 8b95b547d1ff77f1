"""Emoji as drawn by five design teams, rendered once at eleven sizes and kept in one file.

The drawings are vectors (SVG), so that each size has the detail that belongs to it: nothing is resampled. A
class is a thing, such as "violin", of which each design has one drawing. Rendering needs `resvg_py` (`pip
install 'scalechannels[emoji]'`) and the five packages that `emoji_designs.json` names; what reads the file
needs NumPy alone, so it can be made on one machine and used on another.

- Which things: those that all five designs draw under the same name, without aliases and hidden (retired)
  drawings; animals, plants, food, objects, sports, vehicles and places. Faces, people and symbols are left
  out, and clock faces, which differ in their hands only. 618 are left; two with one drawing would be one.
- Which of them: the first so many in the order of the SHA-256 of their names. So 200 contain the 100.
- How large: the longer side of what is drawn, without the margin, has exactly so many pixels.

The drawings belong to their authors, under the licences in `emoji_designs.json`, and are never part of this
library.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scalechannels.data.sizes import EMOJI_PIXELS as PIXELS
from scalechannels.files import atomic_path, cache_root, locked

CLASSES = 100
FORMAT = 1
"""Of the prepared file; a change of what is drawn, or how, needs another number."""
DESIGNS: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("emoji_designs.json").read_text("utf-8")
)
THINGS = ("Activities", "Animals & Nature", "Food & Drink", "Objects", "Travel & Places")
CLOCKS = ("-oclock", "-thirty")
SEEN = 8
"""The least alpha, of 255, that counts as drawn."""
DAMAGED = (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error)
"""How reading a file says that it is not whole."""

Icons = dict[str, Any]
"""A design's icons.json: the SVG bodies by name, and the side of their canvas."""


@dataclass(frozen=True)
class Drawings:
    """What a prepared file holds; the pixels of a design and a size are read when they are asked for."""

    path: Path
    classes: tuple[str, ...]

    def rendered(self, design: str, pixels: int) -> np.ndarray:
        """One drawing for each class, (K, p, p, 4) bytes: red, green, blue and how opaque it is."""
        if design not in DESIGNS or pixels not in PIXELS:
            raise ValueError(
                f"emoji are drawn by {', '.join(DESIGNS)} at {', '.join(map(str, PIXELS))} pixels; got "
                f"{design!r} at {pixels}"
            )
        try:
            with np.load(self.path) as members:  # its zip format has a checksum for each member
                return members[f"{design}-{pixels}"]
        except DAMAGED as error:
            raise OSError(
                f"'{self.path}' is damaged ({error}); remove it and run scalechannels data generate emoji"
            ) from None


def prepared_path(root: Path | str | None = None, classes: int = CLASSES) -> Path:
    """Where the prepared file of so many classes lies, or is to lie."""
    return cache_root(root) / "emoji" / f"drawings-{classes}.npz"


def open_drawings(root: Path | str | None = None, classes: int = CLASSES) -> Drawings:
    """The prepared file below `root` or in the cache; it is not made here."""
    for place in (root, None) if root is not None else (None,):
        path = prepared_path(place, classes)
        if path.is_file():
            return _opened(path, classes)
    raise FileNotFoundError(
        f"the emoji are not rendered yet: '{prepared_path(root, classes)}' is missing. Make it with "
        f"scalechannels data generate emoji{'' if classes == CLASSES else f' --classes {classes}'}, here or "
        "on a machine that has npm, and copy it there"
    )


def prepare(
    root: Path | str | None = None,
    classes: int = CLASSES,
    *,
    folder: Path | str | None = None,
    report: Callable[[str], None] = lambda name: None,
) -> Path:
    """Fetch the five designs, render them and write the prepared file; instant when it is there and whole.

    root     where the packages are looked for, and fetched to
    folder   what is to be the root of those that read it; by default the cache
    report   called with each class's name once it is rendered
    """
    path = prepared_path(folder, classes)
    with locked(path):
        if path.is_file() and _is_whole(path, classes):
            return path
        render = _renderer()
        designs, groups = _fetched(root)
        names = chosen(designs, groups, classes)
        drawn = {
            f"{design}-{pixels}": np.empty((classes, pixels, pixels, 4), np.uint8)
            for design in designs
            for pixels in PIXELS
        }
        for index, name in enumerate(names):
            for design, icons in designs.items():
                for pixels, picture in zip(PIXELS, _at_all_sizes(render, icons, name), strict=True):
                    drawn[f"{design}-{pixels}"][index] = picture
            report(name)
        about = json.dumps({"format": FORMAT, "classes": names, "packages": _packages()})
        with atomic_path(path) as temporary:
            np.savez_compressed(temporary, about=np.frombuffer(about.encode(), np.uint8), **drawn)  # type: ignore[arg-type]
    return path


def chosen(designs: dict[str, Icons], groups: dict[str, Sequence[str]], classes: int) -> list[str]:
    """The names of so many things that all designs draw, each drawn once; in alphabetical order."""
    own = [
        {name for name, icon in icons["icons"].items() if not icon.get("hidden")}
        for icons in designs.values()
    ]
    things = {name for group in THINGS for name in groups.get(group, ()) if not name.endswith(CLOCKS)}
    ordered = sorted(things.intersection(*own), key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    distinct: list[str] = []
    seen: set[tuple[str, str]] = set()
    for name in ordered:
        bodies = {(design, icons["icons"][name]["body"]) for design, icons in designs.items()}
        if not bodies & seen:
            distinct.append(name)
        seen |= bodies
    if not 2 <= classes <= len(distinct):
        raise ValueError(f"classes must be from 2 to {len(distinct)}, as many as there are; got {classes}")
    return sorted(distinct[:classes])


def _opened(path: Path, classes: int) -> Drawings:
    try:
        with np.load(path) as members:
            about = json.loads(members["about"].tobytes())
        made_by, classes_there = (about["format"], about["packages"]), tuple(about["classes"])
    except (*DAMAGED, TypeError) as error:
        raise OSError(
            f"'{path}' is damaged ({error}); remove it and run scalechannels data generate emoji"
        ) from None
    if made_by != (FORMAT, _packages()) or len(classes_there) != classes:
        raise OSError(
            f"'{path}' was rendered by another version; remove it and run scalechannels data generate emoji"
        )
    return Drawings(path, classes_there)


def _is_whole(path: Path, classes: int) -> bool:
    try:
        _opened(path, classes)
        with zipfile.ZipFile(path) as members:
            return members.testzip() is None
    except DAMAGED:
        return False


def _packages() -> dict[str, str]:
    return {design: about["package"] for design, about in DESIGNS.items()}


def _fetched(root: Path | str | None) -> tuple[dict[str, Icons], dict[str, Sequence[str]]]:
    """Each design's icons, and the names of the groups of things; their packages are fetched and verified."""
    from scalechannels.data.sources import Source, fetch

    designs: dict[str, Icons] = {}
    for design, about in DESIGNS.items():
        places = (f"emoji/{design}", "emoji", ".")
        source = Source(about["by"], about["checksums"], (), (), places, package=about["package"])
        contents = fetch(source, root).contents
        designs[design] = json.loads(contents["icons.json"])
        if "metadata.json" in contents:
            groups = json.loads(contents["metadata.json"])["categories"]
    return designs, groups


Render = Callable[[str], np.ndarray]
"""From an SVG to its pixels (p, p, 4)."""


def _renderer() -> Render:
    try:
        import resvg_py
    except ImportError as error:
        raise ImportError(
            'rendering emoji needs resvg_py: pip install "scalechannels[emoji]". Or copy a file that '
            "scalechannels data generate emoji wrote on another machine"
        ) from error
    from PIL import Image

    def render(svg: str) -> np.ndarray:
        png = bytes(resvg_py.svg_to_bytes(svg_string=svg, skip_system_fonts=True))
        return np.asarray(Image.open(io.BytesIO(png), formats=("PNG",)).convert("RGBA"))

    return render


def _at_all_sizes(render: Render, icons: Icons, name: str) -> Iterable[np.ndarray]:
    """A drawing at each of PIXELS: the square around what is drawn fills the picture."""
    icon = icons["icons"][name]
    width, height = (icon.get(side, icons.get(side, 16)) for side in ("width", "height"))
    left, top, side = (width - max(width, height)) / 2, (height - max(width, height)) / 2, max(width, height)
    finest = PIXELS[-1]
    drawn = render(_svg(icon["body"], left, top, side, finest))[..., 3] >= SEEN
    (x0, x1), (y0, y1) = (
        (ends[0], ends[-1] + 1) for ends in map(np.flatnonzero, (drawn.any(0), drawn.any(1)))
    )
    unit, longer = side / finest, max(x1 - x0, y1 - y0)
    left, top = left + (x0 + x1 - longer) / 2 * unit, top + (y0 + y1 - longer) / 2 * unit
    for pixels in PIXELS:
        yield render(_svg(icon["body"], left, top, longer * unit, pixels))


def _svg(body: str, left: float, top: float, side: float, pixels: int) -> str:
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="{left} {top} {side} {side}" width="{pixels}" height="{pixels}">{body}</svg>'
    )
