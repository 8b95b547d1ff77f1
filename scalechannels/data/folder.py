"""A user's own images: one subfolder for each class, files of any size.

    photos/cat/1.png  photos/cat/2.jpg  photos/dog/holiday/3.webp   →   classes ("cat", "dog")

Every file is opened and decoded once when the folder is read, so that a damaged one is known by name before
any training starts. What is read is a float tensor (C, H, W) from 0 to 1, upright (EXIF orientation applied),
transparency laid over white, the first frame where a file has several. Grey values of 16 bits are kept;
colours of 16 bits are read with 8, as Pillow has no deeper ones, and a warning says so.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from PIL.Image import Image

Colour = Literal["auto", "grey", "rgb"]
OnCorrupt = Literal["skip", "refuse"]

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp", ".gif")
# A file of a few kilobytes can unpack to gigabytes. So many pixels (8,000 x 6,000) are 0.6 GB as RGB.
MAX_PIXELS = 48_000_000
DEEP_MODES = ("I;16", "I;16L", "I;16B", "I", "F")  # Pillow's names for grey values of more than 8 bits
# How Pillow names values of 16 bits in a file; not "BGR;16" of BMP, which has 16 bits for three colours.
SIXTEEN_BITS = re.compile(r";16[BLN]$")
NAMED = 5  # of many files that one warning is about


class CutColoursWarning(UserWarning):
    """A file has 16 bits a colour, and 8 of them are read."""


class UnreadableImageError(ValueError):
    """One file is no image that can be used; the message says why."""


class CorruptImagesError(ValueError):
    """Some files of a folder cannot be read; the message names them."""


class Checked(NamedTuple):
    """What decoding a file has told."""

    grey: bool
    height: int
    width: int
    cut: bool  # whether its colours had more than the 8 bits that are read


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
        path = self.paths[index]
        return _read(path, self.grey, self.max_pixels)[0], self.labels[index]

    def checksum(self) -> str:
        """16 hexadecimal digits over the names and contents of all files, wherever the folder lies."""
        digest = hashlib.sha256()
        for path in self.paths:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(self.root).as_posix()}\n{content}\n".encode())
        return digest.hexdigest()[:16]

    def split(self, fraction: float, seed: int = 0) -> tuple[ImageFolder, ImageFolder]:
        """Two disjoint folders, the first with `fraction` of every class (rounded, one image or more)."""
        if not 0 < fraction < 1:
            raise ValueError(f"fraction must lie between 0 and 1, got {fraction}")
        generator = torch.Generator().manual_seed(seed)
        first: list[int] = []
        second: list[int] = []
        for label, name in enumerate(self.classes):
            members = [index for index, own in enumerate(self.labels) if own == label]
            if len(members) < 2:
                raise ValueError(
                    f"class {name!r} has {len(members)} image(s); a split needs at least 2 of each"
                )
            count = min(max(1, round(fraction * len(members))), len(members) - 1)
            order = torch.randperm(len(members), generator=generator).tolist()
            first += [members[i] for i in order[:count]]
            second += [members[i] for i in order[count:]]
        return self._subset(sorted(first)), self._subset(sorted(second))

    def _subset(self, indices: Sequence[int]) -> ImageFolder:
        paths, labels = tuple(self.paths[i] for i in indices), tuple(self.labels[i] for i in indices)
        sizes = tuple(self.sizes[i] for i in indices) if self.sizes else ()
        return replace(self, paths=paths, labels=labels, sizes=sizes)


def image_folder(
    root: Path | str,
    *,
    colour: Colour = "auto",
    on_corrupt: OnCorrupt = "refuse",
    max_pixels: int = MAX_PIXELS,
    decode: bool = True,
) -> ImageFolder:
    """Find and check the images below `root`, classes and files in the order of their names.

    colour: "auto" reads RGB unless every image is grey.
    on_corrupt: "refuse" raises an error that names the unreadable files; "skip" leaves them out and warns.
    max_pixels: files with more pixels count as unreadable.
    decode: False lists the files alone, for a folder that was checked before; it needs a colour.
    """
    if not decode and (colour == "auto" or on_corrupt == "skip"):
        raise ValueError('decode=False needs colour="grey" or "rgb" and cannot skip unreadable files')
    if colour not in get_args(Colour):
        raise ValueError(f"colour must be one of {', '.join(get_args(Colour))}, got {colour!r}")
    if on_corrupt not in get_args(OnCorrupt):
        raise ValueError(f"on_corrupt must be one of {', '.join(get_args(OnCorrupt))}, got {on_corrupt!r}")
    root = Path(root)
    if not root.is_dir():
        raise NotADirectoryError(
            f"{root} is not a folder; give one with a subfolder of images for each class"
        )
    folders = sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
    if len(folders) < 2:
        found = f"only {folders[0].name!r}" if folders else "none"
        raise ValueError(
            f"{root} needs a subfolder of images for each of two or more classes; it has {found}"
        )

    paths: list[Path] = []
    labels: list[int] = []
    skipped: list[tuple[Path, str]] = []
    sizes: list[tuple[int, int]] = []
    cut: list[Path] = []
    all_grey = True
    for label, folder in enumerate(folders):
        for path in sorted(folder.rglob("*")):
            if path.suffix.lower() not in SUFFIXES or path.name.startswith(".") or not path.is_file():
                continue
            if decode:
                try:
                    checked = check_image(path, max_pixels)
                except UnreadableImageError as error:
                    skipped.append((path, str(error)))
                    continue
                all_grey &= checked.grey
                sizes.append((checked.height, checked.width))
                if checked.cut:
                    cut.append(path)
            paths.append(path)
            labels.append(label)
    if skipped:
        names = "\n".join(f"  {path.relative_to(root)}: {reason}" for path, reason in skipped)
        if on_corrupt == "refuse":
            raise CorruptImagesError(
                f"{len(skipped)} file(s) in {root} cannot be read:\n{names}\n"
                'Mend or remove them, or leave them out (on_corrupt="skip", or --skip-corrupt).'
            )
        warnings.warn(f"{len(skipped)} unreadable file(s) in {root} are left out:\n{names}", stacklevel=2)
    if cut:
        names = ", ".join(str(path.relative_to(root)) for path in cut[:NAMED])
        more = f" and {len(cut) - NAMED} more" if len(cut) > NAMED else ""
        warnings.warn(
            f"{len(cut)} file(s) in {root} have 16 bits a colour and are read with 8, as Pillow reads no "
            f"more (16 bits of grey are kept): {names}{more}",
            CutColoursWarning,
            stacklevel=2,
        )
    if empty := [folder.name for label, folder in enumerate(folders) if label not in labels]:
        raise ValueError(f"no readable images ({', '.join(SUFFIXES)}) in {root} for {', '.join(empty)}")
    grey = all_grey if colour == "auto" else colour == "grey"
    return ImageFolder(
        root,
        tuple(f.name for f in folders),
        tuple(paths),
        tuple(labels),
        grey,
        tuple(skipped),
        tuple(sizes),
        max_pixels,
    )


def read_image(path: Path | str, *, grey: bool = False, max_pixels: int = MAX_PIXELS) -> Tensor:
    """One image as a float32 tensor, (1, H, W) grey or (3, H, W) RGB, from 0 to 1.

    The first file of the process whose colours of 16 bits are read with 8 is named by a warning.
    """
    global _told_of_cut_colours
    tensor, cut = _read(Path(path), grey, max_pixels)
    if cut and not _told_of_cut_colours:
        _told_of_cut_colours = True  # a thousand files of one kind need one line
        warnings.warn(
            f"{path} has 16 bits a colour and is read with 8, as Pillow reads no more (16 bits of grey are "
            "kept); no other such file is named",
            CutColoursWarning,
            stacklevel=2,
        )
    return tensor


_told_of_cut_colours = False


def _read(path: Path, grey: bool, max_pixels: int) -> tuple[Tensor, bool]:
    """An image, and whether its colours had more than the 8 bits that were read."""
    try:
        image, cut = _decode(path, max_pixels)
        return to_tensor(image, grey), cut
    except UnreadableImageError as error:
        raise UnreadableImageError(f"{path}: {error}") from None


def load(path: Path, max_pixels: int = MAX_PIXELS) -> Image:
    """A decoded, upright image; every way in which that can fail becomes an UnreadableImageError."""
    return _decode(path, max_pixels)[0]


def _decode(path: Path, max_pixels: int) -> tuple[Image, bool]:
    from PIL import Image, ImageOps

    pillow_limit = Image.MAX_IMAGE_PIXELS
    raised = pillow_limit is not None and max_pixels > pillow_limit
    try:
        if raised:  # Pillow's own guard against bombs; whoever raises ours means both
            Image.MAX_IMAGE_PIXELS = max_pixels
        with Image.open(path) as file:
            if file.width * file.height > max_pixels:
                raise UnreadableImageError(
                    f"{file.width} x {file.height} pixels are more than {max_pixels:,}; "
                    "--max-pixels allows more"
                )
            cut = _has_deep_colours(file)  # before loading, which forgets how the file has its values
            file.load()
            return ImageOps.exif_transpose(file), cut
    except UnreadableImageError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise UnreadableImageError(
            f"more than {max_pixels:,} pixels (a decompression bomb?); --max-pixels allows more"
        ) from None
    except MemoryError:
        raise UnreadableImageError("not enough memory to decode it") from None
    except Exception as error:  # damaged files make Pillow's decoders raise almost anything
        raise UnreadableImageError(f"damaged or no image ({type(error).__name__}: {error})") from None
    finally:
        if raised:
            Image.MAX_IMAGE_PIXELS = pillow_limit


def _has_deep_colours(file: Image) -> bool:
    """Whether an opened file has 16 bits a value and Pillow's image of it has no room for them."""
    if file.mode in DEEP_MODES:
        return False
    codings = [
        (tile[3],) if isinstance(tile[3], str) else tile[3] or () for tile in getattr(file, "tile", ())
    ]
    return any(isinstance(part, str) and SIXTEEN_BITS.search(part) for coding in codings for part in coding)


def to_tensor(image: Image, grey: bool) -> Tensor:
    if image.mode in DEEP_MODES:
        values = np.asarray(image).astype(np.float32)
        if image.mode != "F":
            values /= 65535
        if not (values.min() >= 0 and values.max() <= 1):
            raise UnreadableImageError("values beyond 16 bits, or floating point values outside 0 to 1")
        tensor = torch.from_numpy(values)[None]  # (1, H, W)
        return tensor if grey else tensor.repeat(3, 1, 1)
    image = over_white(image).convert("L" if grey else "RGB")
    pixels = torch.from_numpy(np.array(image))  # (H, W) or (H, W, 3)
    return pixels.view(image.height, image.width, -1).permute(2, 0, 1).float() / 255


def over_white(image: Image) -> Image:
    """Transparency laid over white, as most viewers show it; an opaque image as it is."""
    from PIL import Image

    if not image.has_transparency_data:
        return image
    coloured = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), coloured).convert("RGB")


def is_grey(image: Image) -> bool:
    """Whether a file stores grey values. RGB files count as coloured even where all their pixels are grey."""
    if image.mode in ("P", "PA"):
        red, green, blue = (band.tobytes() for band in over_white(image).convert("RGB").split())
        return red == green == blue
    return image.mode in ("1", "L", "LA", "La", *DEEP_MODES)


def check_image(path: Path, max_pixels: int = MAX_PIXELS) -> Checked:
    """Decode an image once: what it is. Raises UnreadableImageError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's doubts about files that it reads all the same
        image, cut = _decode(path, max_pixels)
        to_tensor(image, grey=True)
        return Checked(is_grey(image), image.height, image.width, cut)
