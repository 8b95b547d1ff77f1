"""One picture as numbers: reading an image file, and the grey values that networks for digits are trained on.

A file becomes a float tensor (C, H, W) from 0 to 1: upright (EXIF orientation applied), transparency over
white, the first frame where there are several. Grey values of 16 bits are kept; colours of 16 bits are read
with 8, as Pillow has no deeper ones, and a warning says so.

Digits have the grey values of MNIST Large Scale, (2/π)·arctan(0.02·(I − 128)) of an intensity I from 0 to
255: from −0.76 (background) to 0.76 (ink).
"""

from __future__ import annotations

import base64
import io
import math
import re
import warnings
from pathlib import Path
from typing import IO, Literal, NamedTuple

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

Values = Literal["digits", "unit"]
"""What a network takes: −0.76 to 0.76, or 0 to 1."""
GAIN, MIDDLE = 0.02, 128  # a and b of the arctan
BACKGROUND = 2 / math.pi * math.atan(GAIN * (0 - MIDDLE))  # −0.763

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp", ".gif")
# A file of a few kilobytes can unpack to gigabytes. So many pixels (8,000 x 6,000) are 0.6 GB as RGB.
MAX_PIXELS = 48_000_000
DEEP_MODES = ("I;16", "I;16L", "I;16B", "I", "F")  # Pillow's names for grey values of more than 8 bits
# How Pillow names values of 16 bits in a file; not "BGR;16" of BMP, which has 16 bits for three colours.
SIXTEEN_BITS = re.compile(r";16[BLN]$")


class CutColoursWarning(UserWarning):
    """A file has 16 bits a colour, and 8 of them are read."""


class UnreadableImageError(ValueError):
    """A file cannot be used as an image; the message says why."""


class Checked(NamedTuple):
    """What decoding a file has shown."""

    grey: bool
    height: int
    width: int
    cut: bool  # whether its colours had more than the 8 bits that are read


def as_digits(image: Tensor) -> Tensor:
    """Values from 0 to 1 as networks for digits take them, the darkest as background, the brightest as ink.

    An image of one grey is all background. One copy is made, as large images have no room for several.
    """
    darkest, brightest = image.aminmax()
    stretched = (image - darkest).div_((brightest - darkest).clamp_min(1e-6)).mul_(255)
    return stretched.sub_(MIDDLE).mul_(GAIN).atan_().mul_(2 / math.pi)


def as_taken(image: Tensor, values: Values, invert: bool = False) -> Tensor:
    """Values from 0 to 1 as a network takes them; with `invert`, black becomes white first."""
    shown = 1 - image if invert else image
    return as_digits(shown) if values == "digits" else shown


def as_shown(digits: Tensor) -> Tensor:
    """Values from −0.76 to 0.76 as 0 (black) to 1 (white)."""
    return (digits - BACKGROUND) / (-2 * BACKGROUND)


def as_picture(image: Tensor) -> Image.Image:
    """An image (H, W), (1, H, W) or (3, H, W) with values from 0 to 1 as Pillow's, of 8 bits a value."""
    pixels = (image.clamp(0, 1) * 255).round().byte().cpu()
    if pixels.ndim == 3:
        pixels = pixels.movedim(0, -1).squeeze(-1)
    return Image.fromarray(pixels.contiguous().numpy())


def png(image: Tensor) -> str:
    """An image (H, W) or (3, H, W) with values from 0 to 1 as a data address, for a page."""
    buffer = io.BytesIO()
    as_picture(image).save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def png_path(path: Path | str) -> Path:
    """The path if a picture can have it; to be asked before work is done for the picture."""
    path = Path(path)
    if path.suffix.lower() != ".png":
        raise ValueError(f"the name of a picture must end in .png; got '{path}'")
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a folder; give the name of a file")
    return path


def is_dark_on_light(image: Tensor) -> bool:
    """Whether the border of (C, H, W) is brighter than the middle of its values, as ink on paper is."""
    darkest, brightest = image.aminmax()
    edges = (image[:, 0], image[:, -1], image[:, :, 0], image[:, :, -1])
    border = torch.cat([edge.flatten() for edge in edges]).mean()
    return bool((brightest > darkest) & (border > (darkest + brightest) / 2))


def image_files(folder: Path) -> list[Path]:
    """All image files below a folder in the order of their names; hidden ones are left out."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and path.is_file()
    ]


_warned_of_cut_colours = False


def read_image(path: Path | str, *, grey: bool = False, max_pixels: int = MAX_PIXELS) -> Tensor:
    """One image as a float32 tensor, (1, H, W) grey or (3, H, W) RGB, from 0 to 1.

    A warning names the first file of the process whose colours of 16 bits are read with 8.
    """
    global _warned_of_cut_colours
    tensor, cut = read(path, grey, max_pixels)
    if cut and not _warned_of_cut_colours:
        _warned_of_cut_colours = True  # a thousand files of one kind need one line
        warnings.warn(
            f"'{path}' has 16 bits a colour and is read with 8, as Pillow reads no more (16 bits of grey are "
            "kept); no other such file is named",
            CutColoursWarning,
            stacklevel=2,
        )
    return tensor


def read(path: Path | str, grey: bool, max_pixels: int) -> tuple[Tensor, bool]:
    """An image, and whether its colours had more than the 8 bits that were read. The error names the file."""
    try:
        image, cut = decode(path, max_pixels)
        return to_tensor(image, grey), cut
    except UnreadableImageError as error:
        raise UnreadableImageError(f"'{path}' cannot be read: {error}") from None


def check_image(path: Path, max_pixels: int = MAX_PIXELS) -> Checked:
    """Decode an image once: what it is. Raises UnreadableImageError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's doubts about files that it reads all the same
        image, cut = decode(path, max_pixels)
        to_tensor(image, grey=True)
        return Checked(is_grey(image), image.height, image.width, cut)


def decode(file: Path | str | IO[bytes], max_pixels: int = MAX_PIXELS) -> tuple[Image.Image, bool]:
    """An upright image, and whether its colours had more than the 8 bits that are read.

    Every way in which that can fail becomes an UnreadableImageError.
    """
    pillow_limit = Image.MAX_IMAGE_PIXELS
    raised = pillow_limit is not None and max_pixels > pillow_limit
    try:
        if raised:  # Pillow's own guard against bombs; whoever raises ours means both
            Image.MAX_IMAGE_PIXELS = max_pixels
        with Image.open(file) as opened:
            if opened.width * opened.height > max_pixels:
                raise UnreadableImageError(
                    f"it has {opened.width} x {opened.height} pixels, more than the limit of "
                    f"{max_pixels:,}; raise --max-pixels"
                )
            cut = _has_deep_colours(opened)  # before loading, which forgets how the file has its values
            opened.load()
            return ImageOps.exif_transpose(opened), cut
    except UnreadableImageError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise UnreadableImageError(
            f"it has more than {max_pixels:,} pixels (a decompression bomb?); raise --max-pixels"
        ) from None
    except MemoryError:
        raise UnreadableImageError("there is not enough memory to decode it") from None
    except UnidentifiedImageError:  # its text only names the file, which the caller does
        raise UnreadableImageError("it is damaged, or not an image") from None
    except Exception as error:  # damaged files make Pillow's decoders raise almost anything
        reason = getattr(error, "strerror", None) or error  # of the system's errors, without the path
        raise UnreadableImageError(f"it is damaged, or not an image ({reason})") from None
    finally:
        if raised:
            Image.MAX_IMAGE_PIXELS = pillow_limit


def _has_deep_colours(file: Image.Image) -> bool:
    """Whether an opened file has 16 bits a value and Pillow's image of it has no room for them."""
    if file.mode in DEEP_MODES:
        return False
    codings = [
        (tile[3],) if isinstance(tile[3], str) else tile[3] or () for tile in getattr(file, "tile", ())
    ]
    return any(isinstance(part, str) and SIXTEEN_BITS.search(part) for coding in codings for part in coding)


def to_tensor(image: Image.Image, grey: bool) -> Tensor:
    """(1, H, W) grey or (3, H, W) RGB, from 0 to 1."""
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


def over_white(image: Image.Image) -> Image.Image:
    """Transparency laid over white, as most viewers show it; an opaque image as it is."""
    if not image.has_transparency_data:
        return image
    coloured = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), coloured).convert("RGB")


def is_grey(image: Image.Image) -> bool:
    """Whether a file stores grey values. RGB files count as coloured even where all their pixels are grey."""
    if image.mode in ("P", "PA"):
        red, green, blue = (band.tobytes() for band in over_white(image).convert("RGB").split())
        return red == green == blue
    return image.mode in ("1", "L", "LA", "La", *DEEP_MODES)
