"""A user's own images: one subfolder for each class, files of any size.

    photos/cat/1.png  photos/cat/2.jpg  photos/dog/holiday/3.webp   →   classes ("cat", "dog")
    photos/train/cat/1.png  photos/val/cat/2.png  photos/test/…     →   the same, in given parts

Every file is decoded once when the folder is read, so that a damaged one is known by name before any
training starts. What is read of each file: see `pictures`.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from scalechannels.data.class_folders import Part, class_folders
from scalechannels.data.decoding import MAX_PIXELS, UnreadableImageError, sides_of
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
BEGINNING = 16
"""Digits of a checksum that tell images apart."""
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
    given: tuple[Part, ...] = ()  # the part that each image's folder names; empty where folders are classes

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return read(self.paths[index], self.grey, self.max_pixels)[0], self.labels[index]

    def checksum(self) -> str:
        """16 hexadecimal digits over the names and contents of all files, not over where the folder is."""
        digest = hashlib.sha256()
        for path, content in zip(self.paths, self.contents, strict=True):
            name = os.fsencode(path.relative_to(self.root).as_posix())  # which may not be UTF-8
            digest.update(name + f"\n{content}\n".encode())
        return digest.hexdigest()[:16]

    @cached_property
    def contents(self) -> tuple[str, ...]:
        """The checksum of each file: copies of one file have the same. A linked one is read once."""
        known = [hashlib.sha256(path.read_bytes()).hexdigest() for path in self.different]
        return tuple(known[number] for number in self.numbers)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Which file each path leads to: links to one file have the same number, counted from 0."""
        known: dict[object, int] = {}
        return tuple(known.setdefault(_identity(path), len(known)) for path in self.paths)

    @cached_property
    def different(self) -> list[Path]:
        """A path for each number."""
        found: dict[int, Path] = {}
        for number, path in zip(self.numbers, self.paths, strict=True):
            found.setdefault(number, path)
        return list(found.values())

    @cached_property
    def sides(self) -> list[tuple[int, int]]:
        """The two sides of each different file in pixels, in any order; the files are not decoded."""
        return [sides_of(path, self.max_pixels) for path in self.different]

    def parts(self, validation: float, test: float, seed: int = 0) -> Parts:
        """Three disjoint folders: to train on, to choose by, and to report on, each with every class.

        validation, test   the shares of each class that are held out, where no folder names these parts; 0
                           leaves a part empty

        Law: copies of one file are in one part; those of a training image in a given part are left out there.
        Limit: a copy is a file with the same bytes.
        """
        asked: dict[Part, float] = {"test": test, "validation": validation}
        held = [part for part in asked if asked[part] and part not in self.given]
        part_of: dict[int, Part] = dict(enumerate(self.given))
        generator = torch.Generator().manual_seed(seed)
        for label, name in enumerate(self.classes):
            copies: dict[str, list[int]] = defaultdict(list)
            for index, own in enumerate(self.labels):
                if own == label and part_of.get(index, "train") == "train":
                    copies[self.contents[index]].append(index)
            groups = list(copies.values())
            if len(groups) <= len(held):
                raise ValueError(
                    f"class {name!r} has {len(groups)} {'image' if len(groups) == 1 else 'different images'} "
                    f"to train on; each class needs at least {len(held) + 1}, one to train on"
                    + "".join(f" and one for the {part} part" for part in held)
                )
            order = [groups[i] for i in torch.randperm(len(groups), generator=generator).tolist()]
            for place, part in enumerate(held):
                most = len(order) - (len(held) - place)  # what must remain for the others
                taken = min(max(1, round(asked[part] * len(groups))), most)
                part_of.update({index: part for group in order[:taken] for index in group})
                order = order[taken:]
            part_of.update({index: "train" for group in order for index in group})
        known: set[str] = set()
        found = []
        for part in ("train", "validation", "test"):
            mine = [i for i in range(len(self)) if part_of[i] == part and self.contents[i] not in known]
            known |= {self.contents[i] for i in mine}
            found.append(self._subset(mine))
        return Parts(*found)

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
        given = tuple(self.given[i] for i in indices) if self.given else ()
        made = replace(self, paths=paths, labels=labels, sizes=sizes, given=given)
        if "contents" in self.__dict__:  # no file is read again for it
            made.__dict__["contents"] = tuple(self.contents[i] for i in indices)
        return made

    def without(self, contents: Collection[str]) -> ImageFolder:
        """The images that are no copies of files whose checksums begin like these."""
        known = frozenset(contents)
        return self._subset([i for i, own in enumerate(self.contents) if own[:BEGINNING] not in known])


class Parts(NamedTuple):
    """Images to train on, to choose by, and to report on."""

    learnt: ImageFolder
    validation: ImageFolder
    test: ImageFolder


def image_folder(
    root: Path | str,
    *,
    colour: Colour = "auto",
    skip_corrupt: bool = False,
    max_pixels: int = MAX_PIXELS,
    decode: bool = True,
    watch: Callable[[str, int], None] = lambda name, count: None,
) -> ImageFolder:
    """Find and check the images below `root`, classes and files in the order of their names.

    colour: "auto" reads RGB unless every image is grey.
    skip_corrupt: leaves out unreadable files and warns of them; else an error names them.
    max_pixels: files with more pixels count as unreadable.
    watch: called with the name of each image that was read, and how many there are.
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
    folders = class_folders(root)
    classes = tuple(sorted({folder.name for folder, _ in folders}))
    below = [find_images(folder) for folder, _ in folders]
    listed = [
        (path, classes.index(folder.name), part)
        for (folder, part), inner in zip(folders, below, strict=True)
        for path in inner.images
    ]
    if decode:
        astray = find_images(root, deep=False)  # in no class, whatever they are
        warn_of_left_out(root, [*astray.images, *astray.left_out, *(p for f in below for p in f.left_out)])
    checked: dict[Path, Checked] = {}
    skipped: list[tuple[Path, str]] = []
    found: dict[object, Checked | UnreadableImageError] = {}  # a file of several names is decoded once
    for path, *_ in listed if decode else ():
        if (file := _identity(path)) not in found:
            try:
                found[file] = check_image(path, max_pixels)
            except UnreadableImageError as error:
                found[file] = error
        watch(path.name, len(listed))
        seen = found[file]
        if isinstance(seen, UnreadableImageError):
            skipped.append((path, str(seen)))
        else:
            checked[path] = seen
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
    if cut := [path for path, one in checked.items() if one.cut]:
        names = ", ".join(written(path.relative_to(root)) for path in cut[:NAMED])
        more = f" and {len(cut) - NAMED} more" if len(cut) > NAMED else ""
        warnings.warn(
            f"{count(cut)} in '{root}' have 16 bits a colour and are read with 8, as Pillow reads no "
            f"more (16 bits of grey are kept): {names}{more}",
            CutColoursWarning,
            stacklevel=2,
        )
    used = [one for one in listed if not decode or one[0] in checked]
    paths, labels = tuple(path for path, *_ in used), tuple(label for _, label, _ in used)
    if empty := [name for label, name in enumerate(classes) if label not in labels]:
        raise ValueError(
            f"'{root}' holds no readable images of class {', '.join(map(repr, empty))}; accepted are "
            f"{', '.join(suffixes())}"
        )
    return ImageFolder(
        root,
        classes,
        paths,
        labels,
        grey=all(one.grey for one in checked.values()) if colour == "auto" else colour == "grey",
        skipped=tuple(skipped),
        sizes=tuple((one.height, one.width) for one in checked.values()),
        max_pixels=max_pixels,
        given=tuple(part for *_, part in used if part is not None),
    )


def _identity(path: Path) -> object:
    """The same for all links to one file."""
    try:
        status = path.stat()
    except OSError:  # whoever reads it will say what is wrong
        return path
    return (status.st_dev, status.st_ino) if status.st_ino else path
