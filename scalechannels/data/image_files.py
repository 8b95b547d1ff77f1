"""Which image files are read, and where they are.

One table says which formats are read and what their files are called. Nothing else is opened: Pillow knows
formats that start other programs (EPS) or that any file may be taken for. A file that is left out, and might
be an image, is named: nothing is missing without a word.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from PIL import Image

FORMATS: dict[str, tuple[str, ...]] = {
    "PNG": (".png", ".apng"),
    "JPEG": (".jpg", ".jpeg", ".jpe", ".jfif", ".mpo"),
    "TIFF": (".tif", ".tiff"),
    "WEBP": (".webp",),
    "BMP": (".bmp",),
    "GIF": (".gif",),
    "PPM": (".ppm", ".pgm", ".pbm", ".pnm"),
    "JPEG2000": (".jp2", ".j2k", ".jpx", ".jpf", ".jpc", ".j2c"),
    "AVIF": (".avif",),
    "HEIF": (".heic", ".heif", ".hif"),
}
"""Pillow's names of the formats that are read, and the suffixes of their files."""
PLUGIN = "pillow-heif"  # what reads HEIF for Pillow, where a user has installed it
# Files that often lie beside images and are none, so that nobody misses them.
NO_IMAGES = (
    *(".txt", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".db"),
    *(".md", ".rst", ".html", ".htm", ".css", ".js", ".log", ".py", ".ipynb", ".sh"),
    *(".xls", ".xlsx", ".doc", ".docx", ".odt", ".ods"),
)
NAMED = 5  # of many files that one warning is about


class LeftOutWarning(UserWarning):
    """A folder has files that may be images and are not read."""


class Found(NamedTuple):
    """What lies below a folder."""

    images: list[Path]
    left_out: list[Path]
    """What may be an image and is not read: other kinds of files, broken links, closed folders."""


@cache
def readable() -> dict[str, tuple[str, ...]]:
    """The part of the table that Pillow can read on this machine."""
    with suppress(ImportError):  # where it is missing, `left_out` says what to install
        importlib.import_module("pillow_heif").register_heif_opener()
    Image.init()  # loads every reader that Pillow has, of which only those of the table are used
    return {name: suffixes for name, suffixes in FORMATS.items() if name in Image.OPEN}


def suffixes() -> tuple[str, ...]:
    """The suffixes of the files that are read, in small letters."""
    return tuple(suffix for names in readable().values() for suffix in names)


def find_images(folder: Path, deep: bool = True) -> Found:
    """All image files below a folder in the order of their names, and what is left out.

    Hidden files and folders count as not there. Links to folders are followed, but no folder is searched
    twice: links may form a circle. Without `deep`, subfolders are not searched.
    """
    found, known = Found([], []), suffixes()
    seen: set[tuple[int, int]] = set()
    # A folder that lies here itself goes before links to it, so that its files keep their names.
    searched = [str(folder)]
    for top in searched:  # grows while it is walked
        for place, folders, names in os.walk(
            top, onerror=lambda error: found.left_out.append(Path(error.filename))
        ):
            status = os.stat(place)
            if (status.st_dev, status.st_ino) in seen:
                folders.clear()
                continue
            seen.add((status.st_dev, status.st_ino))
            folders[:] = sorted(name for name in folders if deep and not name.startswith("."))
            searched += [link for name in folders if os.path.islink(link := os.path.join(place, name))]
            for path in (Path(place, name) for name in names if not name.startswith(".")):
                suffix = path.suffix.lower()
                if suffix in known and path.is_file():
                    found.images.append(path)
                elif suffix not in NO_IMAGES:
                    found.left_out.append(path)
    found.images.sort()
    found.left_out.sort()
    return found


def left_out(folder: Path, files: Iterable[Path]) -> str:
    """What a user should know about the files of a folder that are not read."""
    files = list(files)
    names = ", ".join(written(path.relative_to(folder)) for path in files[:NAMED])
    more = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
    advice = what_to_install(path.suffix for path in files)
    return f"{count(files)} in '{written(folder)}' left out, not read as images: {names}{more}{advice}"


def what_to_install(unread: Iterable[str]) -> str:
    """How files of such suffixes could be read, as the end of a sentence; nothing if there is no way."""
    missing = {suffix: name for name in FORMATS if name not in readable() for suffix in FORMATS[name]}
    named = sorted({suffix.lower() for suffix in unread} & set(missing))
    if not named:
        return ""
    package = PLUGIN if any(missing[suffix] == "HEIF" for suffix in named) else "a newer Pillow"
    return f"; to read {', '.join(named)}, install {package}"


def warn_of_left_out(folder: Path, files: Iterable[Path]) -> None:
    """One warning for a folder, if there is anything to say."""
    if files := list(files):
        warnings.warn(left_out(folder, files), LeftOutWarning, stacklevel=3)


def count(files: Iterable[object]) -> str:
    """How many files, in words."""
    number = len(list(files))
    return "1 file" if number == 1 else f"{number} files"


def is_file(path: Path) -> bool:
    """Whether a path is a file; one that no system allows, too long or with a zero byte, is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def written(path: Path | str) -> str:
    """A path as text that any file or terminal for UTF-8 takes: bytes that are not UTF-8 as \\xff."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
