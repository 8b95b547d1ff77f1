"""One picture as numbers: reading an image file, and the grey values that networks for digits are trained on.

A file becomes a float tensor (C, H, W) from 0 to 1, as a viewer shows it: upright (EXIF orientation applied),
transparency over white, the first frame where there are several.

- Which files: the formats of `image_files.FORMATS`, by their content, whatever their names are.
- The range is what the file says. Unsigned integers of n bits reach from 0 to 2ⁿ − 1, floating point from 0
  to 1. Signed integers and integers of 32 bits are refused, as are floating point values outside 0 to 1.
- Grey values of up to 16 bits are kept. Colours of 16 bits are read with 8, as Pillow has no deeper ones, and
  a warning says so (for PNG, TIFF and PPM; of JPEG 2000, AVIF and HEIF it is not known).
- Colours with an embedded ICC profile are brought to sRGB, CMYK too. Without a profile, or with one that
  cannot be used, they are taken for sRGB. Grey values stay as they are stored, whatever their profile.

Digits have the grey values of MNIST Large Scale, (2/π)·arctan(0.02·(I − 128)) of an intensity I from 0 to
255: from −0.76 (background) to 0.76 (ink).
"""

from __future__ import annotations

import base64
import io
import math
import warnings
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from scalechannels.data.decoding import MAX_PIXELS, UnreadableImageError, as_mode, decode
from scalechannels.data.image_files import written

Values = Literal["digits", "unit"]
"""What a network takes: −0.76 to 0.76, or 0 to 1."""
GAIN, MIDDLE = 0.02, 128  # a and b of the arctan
BACKGROUND = 2 / math.pi * math.atan(GAIN * (0 - MIDDLE))  # −0.763


class CutColoursWarning(UserWarning):
    """A file has 16 bits a colour, and 8 of them are read."""


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
    return squashed((image - darkest).div_((brightest - darkest).clamp_min(1e-6)).mul_(255))


def squashed(intensities: Tensor) -> Tensor:
    """Intensities from 0 to 255 as networks for digits take them, in place."""
    return intensities.sub_(MIDDLE).mul_(GAIN).atan_().mul_(2 / math.pi)


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
            f"'{written(path)}' has 16 bits a colour and is read with 8, as Pillow reads no more (16 bits of "
            "grey are kept); no other such file is named",
            CutColoursWarning,
            stacklevel=2,
        )
    return tensor


def read(path: Path | str, grey: bool, max_pixels: int) -> tuple[Tensor, bool]:
    """An image, and whether its colours had more than the 8 bits that were read. The error names the file."""
    try:
        image, cut = decode(path, max_pixels)
    except UnreadableImageError as error:
        raise UnreadableImageError(f"'{written(path)}' cannot be read: {error}") from None
    return to_tensor(image, grey), cut


def check_image(path: Path, max_pixels: int = MAX_PIXELS) -> Checked:
    """Decode an image once: what it is. Raises UnreadableImageError."""
    image, cut = decode(path, max_pixels)
    return Checked(is_grey(image), image.height, image.width, cut)


def to_tensor(image: Image.Image, grey: bool) -> Tensor:
    """What `decode` gives as (1, H, W) grey or (3, H, W) RGB, from 0 to 1."""
    if image.mode == "F":
        tensor = torch.from_numpy(np.array(image))[None]  # (1, H, W)
        return tensor if grey else tensor.repeat(3, 1, 1)
    pixels = torch.from_numpy(np.array(as_mode(image, "L" if grey else "RGB")))  # (H, W) or (H, W, 3)
    planes = pixels.view(image.height, image.width, -1).permute(2, 0, 1)
    return planes.contiguous().float().div_(255)  # moved while they are bytes, as large images have no room


def is_grey(image: Image.Image) -> bool:
    """Whether a decoded file stores grey values. RGB files count as coloured even where they are grey."""
    return image.mode in ("L", "F")
