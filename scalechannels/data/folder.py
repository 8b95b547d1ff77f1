"""A user's own images: one subfolder for each class, files of any size.

    photos/cat/1.png  photos/cat/2.jpg  photos/dog/holiday/3.webp   →   classes ("cat", "dog")

Every file is decoded once when the folder is read, so that a damaged one is known by name before any
training starts. What is read of each file: see `pictures`.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from scalechannels.data.decoding import MAX_PIXELS, UnreadableImageError
from scalechannels.data.image_files import (
    NAMED,
    count,
    find_images,
    suffixes,
    warn_of_left_out,
    written,
)
from scalechannels.data.image_set import require_one_of
from scalechannels.data.pictures import Checked, CutColoursWarning, check_image, read

Colour = Literal["auto", "grey", "rgb"]

SHOWN = 10  # of those that cannot be read, each with its reason


class CorruptImagesError(ValueError):
    """Some files of a folder cannot be read; the message names them."""


@dataclass(frozen=True)
class ImageFolder:
    """Images in class subfolders; a map-style dataset of (image, label)."""

    root: Path
    classes: tuple[str, ...]
    paths: tuple[Path, ...]
    labels: tuple[int, ...]
    grey: bool  # read as (1, H, W) instead of (3, H, W)
    skipped: tuple[tuple[Path, str], ...] = ()  # unreadable files, and why
    sizes: tuple[tuple[int, int], ...] = ()  # height and width of each; empty where nothing was decoded
    max_pixels: int = MAX_PIXELS

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return read(self.paths[index], self.grey, self.max_pixels)[0], self.labels[index]

    def checksum(self) -> str:
        """16 hexadecimal digits over the names and contents of all files, not over where the folder is."""
        digest = hashlib.sha256()
        for path in self.paths:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            name = os.fsencode(path.relative_to(self.root).as_posix())  # which may not be UTF-8
            digest.update(name + f"\n{content}\n".encode())
        return digest.hexdigest()[:16]

    def split(self, fraction: float, seed: int = 0) -> tuple[ImageFolder, ImageFolder]:
        """Two disjoint folders, the first with `fraction` of every class (rounded, one image or more)."""
        if not 0 < fraction < 1:
            raise ValueError(f"fraction must lie between 0 and 1; got {fraction}")
        generator = torch.Generator().manual_seed(seed)
        first: list[int] = []
        second: list[int] = []
        for label, name in enumerate(self.classes):
            members = [index for index, own in enumerate(self.labels) if own == label]
            if len(members) < 2:
                raise ValueError(
                    f"class {name!r} has {len(members)} image; each class needs at least 2, one to train on "
                    "and one held out"
                )
            most = min(max(1, round(fraction * len(members))), len(members) - 1)
            order = torch.randperm(len(members), generator=generator).tolist()
            first += [members[i] for i in order[:most]]
            second += [members[i] for i in order[most:]]
        return self._subset(sorted(first)), self._subset(sorted(second))

    def _subset(self, indices: Sequence[int]) -> ImageFolder:
        paths, labels = tuple(self.paths[i] for i in indices), tuple(self.labels[i] for i in indices)
        sizes = tuple(self.sizes[i] for i in indices) if self.sizes else ()
        return replace(self, paths=paths, labels=labels, sizes=sizes)


def image_folder(
    root: Path | str,
    *,
    colour: Colour = "auto",
    skip_corrupt: bool = False,
    max_pixels: int = MAX_PIXELS,
    decode: bool = True,
) -> ImageFolder:
    """Find and check the images below `root`, classes and files in the order of their names.

    colour: "auto" reads RGB unless every image is grey.
    skip_corrupt: leaves out unreadable files and warns of them; else an error names them.
    max_pixels: files with more pixels count as unreadable.
    decode: False only lists the files, for a folder that was checked before; it needs a colour.
    """
    if not decode and (colour == "auto" or skip_corrupt):
        raise ValueError('decode=False needs colour="grey" or "rgb" and cannot skip unreadable files')
    require_one_of(Colour, colour=colour)
    root = Path(root)
    if not root.is_dir():
        raise NotADirectoryError(
            f"'{root}' is not a folder; give one with a subfolder of images for each class (--data FOLDER)"
        )
    folders = sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
    if len(folders) < 2:
        found = f"only {folders[0].name!r}" if folders else "images but no subfolders"
        found = found if folders or find_images(root).images else "none"
        raise ValueError(
            f"'{root}' needs a subfolder of images for each of two or more classes; it has {found}"
        )
    for folder in folders:
        if written(folder.name) != folder.name:
            raise ValueError(
                f"the name of the class '{written(folder.name)}' in '{root}' is not UTF-8, and a network "
                "cannot be saved with it; rename that folder"
            )

    below = [find_images(folder) for folder in folders]
    listed = [(path, label) for label, found in enumerate(below) for path in found.images]
    if decode:
        astray = find_images(root, deep=False)  # in no class, whatever they are
        warn_of_left_out(root, [*astray.images, *astray.left_out, *(p for f in below for p in f.left_out)])
    checked: dict[Path, Checked] = {}
    skipped: list[tuple[Path, str]] = []
    for path, _ in listed if decode else ():
        try:
            checked[path] = check_image(path, max_pixels)
        except UnreadableImageError as error:
            skipped.append((path, str(error)))
    if skipped:
        names = "\n".join(
            f"  {written(path.relative_to(root))}: {reason}" for path, reason in skipped[:SHOWN]
        )
        names += f"\n  and {len(skipped) - SHOWN} more" if len(skipped) > SHOWN else ""
        files = count(skipped)
        if not skip_corrupt:
            raise CorruptImagesError(
                f"{files} in '{root}' cannot be read:\n{names}\nFix or remove what is listed, or "
                "leave it out with --skip-corrupt (skip_corrupt=True in Python)."
            )
        warnings.warn(f"{files} in '{root}' left out:\n{names}", stacklevel=2)
    if cut := [path for path, found in checked.items() if found.cut]:
        names = ", ".join(written(path.relative_to(root)) for path in cut[:NAMED])
        more = f" and {len(cut) - NAMED} more" if len(cut) > NAMED else ""
        warnings.warn(
            f"{count(cut)} in '{root}' have 16 bits a colour and are read with 8, as Pillow reads no "
            f"more (16 bits of grey are kept): {names}{more}",
            CutColoursWarning,
            stacklevel=2,
        )
    used = [(path, label) for path, label in listed if not decode or path in checked]
    paths, labels = tuple(path for path, _ in used), tuple(label for _, label in used)
    if empty := [folder.name for label, folder in enumerate(folders) if label not in labels]:
        raise ValueError(
            f"'{root}' holds no readable images of class {', '.join(map(repr, empty))}; accepted are "
            f"{', '.join(suffixes())}"
        )
    return ImageFolder(
        root,
        tuple(folder.name for folder in folders),
        paths,
        labels,
        grey=all(found.grey for found in checked.values()) if colour == "auto" else colour == "grey",
        skipped=tuple(skipped),
        sizes=tuple((found.height, found.width) for found in checked.values()),
        max_pixels=max_pixels,
    )
