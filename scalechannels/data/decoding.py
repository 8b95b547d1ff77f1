"""From the bytes of an image file to an upright image of known values, whatever the file's kind.

What comes out has one of three kinds: 8 bits of grey ("L" in Pillow's words), 8 bits a colour in sRGB
("RGB"), or grey values from 0 to 1 in floating point ("F") where the file has more than 8 bits.

The range of the values is what the file says. Unsigned integers of n bits reach from 0 to 2ⁿ − 1, and
floating point values from 0 to 1. Of signed integers and of integers of 32 bits nobody knows what is white,
and they are refused.
"""

from __future__ import annotations

import io
import re
import warnings
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import IO, Literal, NamedTuple

import numpy as np
from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError

from scalechannels.data.image_files import readable, what_to_install

# A file of a few kilobytes can unpack to gigabytes. So many pixels (8,000 x 6,000) are 0.6 GB as RGB.
MAX_PIXELS = 48_000_000
DEEP_MODES = ("I;16", "I;16L", "I;16B", "I;16N", "I", "F")  # Pillow's names for grey of more than 8 bits
# How Pillow names values of 16 bits in a file; not "BGR;16" of BMP, which has 16 bits for three colours.
SIXTEEN_BITS = re.compile(r";16[BLN]$")
SIXTEEN, FULL = 16, 65535  # bits, and the largest value that they hold
ORIENTATION = 0x0112  # EXIF's number of it
# A profile that moves no colour by more than this many of 255 is sRGB: its colours stay as they are.
SAME = 2
# Pillow's limit of pixels and Python's filters of warnings are those of the whole process.
_ONE_AT_A_TIME = Lock()


class UnreadableImageError(ValueError):
    """A file cannot be used as an image; the message says why."""


class Decoded(NamedTuple):
    """An upright image, "L", "RGB" or "F" from 0 to 1, and whether its colours had more than 8 bits."""

    image: Image.Image
    cut: bool


class Stored(NamedTuple):
    """How a file has its values; to be asked before they are loaded, which forgets it."""

    coding: str  # of a value in the file, in Pillow's words
    bits: int  # of a grey value
    signed: bool
    white_is_zero: bool  # and Pillow leaves it so
    cut: bool  # more than 8 bits a colour, for which Pillow has no room

    @classmethod
    def of(cls, file: Image.Image) -> Stored:
        codings = [
            tile[3] if isinstance(tile[3], tuple) else (tile[3],) for tile in getattr(file, "tile", ())
        ]
        parts = [part for coding in codings for part in coding]
        named = next((part for part in parts if isinstance(part, str)), "")
        deep = any(isinstance(part, str) and SIXTEEN_BITS.search(part) for part in parts)
        if file.format == "PPM":  # its coding is followed by the largest value
            deep = any(isinstance(part, int) and part > 255 for part in parts)
        cut = deep and file.mode not in DEEP_MODES
        if file.format != "TIFF":  # Pillow brings deep grey of all others to the whole of 16 bits
            return cls(named, SIXTEEN, False, False, cut)
        tags = file.tag_v2  # type: ignore[attr-defined]
        bits, kinds = tags.get(258, (1,)), tags.get(339, (1,))
        inverted = tags.get(262) == 0 and file.mode in DEEP_MODES
        return cls(named, int(bits[0]), kinds[0] == 2, inverted, cut)


def decode(file: Path | str | IO[bytes], max_pixels: int = MAX_PIXELS) -> Decoded:
    """The image of a file, of several the first.

    Every way in which that can fail becomes an UnreadableImageError.
    """
    pillow_limit = Image.MAX_IMAGE_PIXELS
    try:
        with _ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's doubts about files that it reads all the same
            try:
                if pillow_limit is not None and max_pixels > pillow_limit:
                    Image.MAX_IMAGE_PIXELS = max_pixels  # whoever raises our limit means Pillow's too
                # With a path Pillow may map a file into memory, and then reads sideways TIFFs wrongly.
                with open(file, "rb") if isinstance(file, (str, Path)) else nullcontext(file) as stream:
                    return _decode(stream, max_pixels)
            finally:
                Image.MAX_IMAGE_PIXELS = pillow_limit
    except UnreadableImageError:
        raise
    except Image.DecompressionBombError:
        raise UnreadableImageError(
            f"it has more than {max_pixels:,} pixels (a decompression bomb?); raise --max-pixels"
        ) from None
    except MemoryError:
        raise UnreadableImageError("there is not enough memory to decode it") from None
    except UnidentifiedImageError:  # its text only names the file, which the caller does
        install = what_to_install([Path(file).suffix]) if isinstance(file, (str, Path)) else ""
        raise UnreadableImageError(
            f"it is damaged, or not an image of a kind that is read{install}"
        ) from None
    except Exception as error:  # damaged files make Pillow's decoders raise almost anything
        reason = getattr(error, "strerror", None) or error  # of the system's errors, without the path
        raise UnreadableImageError(f"it is damaged, or not an image ({reason})") from None


def sides_of(path: Path, max_pixels: int = MAX_PIXELS) -> tuple[int, int]:
    """The two sides of a readable image file in pixels, in any order, without decoding it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as in `decode`
        try:
            with _opened(path) as image:
                return image.size
        except Exception:  # what is wrong, `decode` says in words
            return decode(path, max_pixels).image.size


def orientation_of(path: Path) -> int:
    """How EXIF says that a readable file is to be turned, from 1 (upright as it is) to 8; see `decode`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as in `decode`
        try:
            with _opened(path) as image:
                said = image.getexif().get(ORIENTATION, 1)
        except Exception:  # what is wrong with the file, `decode` says
            return 1
    return said if said in range(1, 9) else 1


def _opened(file: Path | IO[bytes]) -> Image.Image:
    """A file of a kind that is read, its pixels not yet loaded."""
    return Image.open(file, formats=tuple(readable()))


def _decode(file: IO[bytes], max_pixels: int) -> Decoded:
    with _opened(file) as opened:
        if opened.width * opened.height > max_pixels:
            raise UnreadableImageError(
                f"it has {opened.width} x {opened.height} pixels, more than the limit of "
                f"{max_pixels:,}; raise --max-pixels"
            )
        stored = Stored.of(opened)
        if stored.signed:
            raise UnreadableImageError(
                "it has signed integers, of which nobody knows what is black and what is white; save it "
                "with unsigned values of 8 or 16 bits"
            )
        opened.load()
        ImageOps.exif_transpose(opened, in_place=True)
        return Decoded(_as_viewed(opened, stored), stored.cut)


def _as_viewed(image: Image.Image, stored: Stored) -> Image.Image:
    """What a viewer shows of a loaded image: "L", "RGB" or "F"."""
    if image.mode in DEEP_MODES:
        return _deep_grey(image, stored)
    if image.mode == "La":
        image = image.convert("LA")  # the only way that Pillow knows from there
    _mend_transparency(image, stored)
    if image.mode in ("1", "L", "LA") or stored.coding.startswith("LA;16"):
        return as_mode(_over_white(image), "L")
    if image.mode in ("P", "PA"):
        flat = _over_white(image).convert("RGB")
        red, green, blue = (band.tobytes() for band in flat.split())
        if red == green == blue:
            return flat.convert("L")
    return as_mode(_over_white(_in_srgb(image)), "RGB")


def _deep_grey(image: Image.Image, stored: Stored) -> Image.Image:
    """Grey values of more than 8 bits, from 0 to 1."""
    values = np.asarray(image)
    clear = image.info.get("transparency")
    transparent = values == clear if isinstance(clear, int) else None
    values = values.astype(np.float32)
    lowest, highest = float(values.min()), float(values.max())
    if image.mode == "F":
        if not (lowest >= 0 and highest <= 1):
            raise UnreadableImageError(
                f"its floating point values must lie in 0 to 1; they reach from {lowest:g} to {highest:g}"
            )
    elif stored.bits > SIXTEEN:
        raise UnreadableImageError(
            f"it has integers of {stored.bits} bits, of which nobody knows what is white (these reach "
            f"from {lowest:.0f} to {highest:.0f}); save it with 8 or 16 bits, or as floats from 0 to 1"
        )
    else:
        values /= 2**stored.bits - 1
    if stored.white_is_zero:
        values = 1 - values
    if transparent is not None:
        values[transparent] = 1
    return Image.fromarray(values)


def _mend_transparency(image: Image.Image, stored: Stored) -> None:
    """The transparent value as loaded pixels have it: PNG gives it in the file's bits, Pillow keeps that."""
    clear = image.info.get("transparency")
    scale = {"L;2": 85, "L;4": 17}.get(stored.coding)
    if isinstance(clear, int) and scale:
        image.info["transparency"] = clear * scale
    elif isinstance(clear, tuple) and stored.cut:
        image.info["transparency"] = tuple(value >> 8 for value in clear)


def _over_white(image: Image.Image) -> Image.Image:
    """Transparency laid over white, as most viewers show it; an opaque image as it is."""
    if not image.has_transparency_data:
        return image
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), as_mode(image, "RGBA"))


def as_mode(image: Image.Image, mode: str) -> Image.Image:
    """An image in one of Pillow's modes; if it has it, itself, where Pillow would copy it."""
    return image if image.mode == mode else image.convert(mode)


def _in_srgb(image: Image.Image) -> Image.Image:
    """Colours of an embedded profile brought to sRGB, "RGB" or "RGBA"; without a profile, taken for sRGB."""
    profile = image.info.get("icc_profile")
    clear = image.has_transparency_data
    space: Literal["RGB", "CMYK"] = "CMYK" if image.mode == "CMYK" else "RGB"
    conversion = _to_srgb(profile, space) if profile and image.mode != "LAB" else None
    if conversion is None:
        return as_mode(image, "RGBA" if clear else "RGB")
    if not clear:
        return conversion.apply(as_mode(image, space))
    image = as_mode(image, "RGBA")
    coloured = conversion.apply(image.convert("RGB"))
    coloured.putalpha(image.getchannel("A"))
    return coloured


@lru_cache(maxsize=4)  # a camera writes the same profile into all its files
def _to_srgb(profile: bytes, space: Literal["RGB", "CMYK"]) -> ImageCms.ImageCmsTransform | None:
    """How a profile's colours become sRGB.

    None where they are sRGB already, and where the profile is damaged or for another kind of image: viewers
    ignore it then.
    """
    try:
        conversion = ImageCms.buildTransform(
            ImageCms.ImageCmsProfile(io.BytesIO(profile)), ImageCms.createProfile("sRGB"), space, "RGB"
        )
    except (ImageCms.PyCMSError, OSError, ValueError, ImportError):
        return None
    if space == "CMYK":
        return conversion
    steps = np.arange(0, 256, 15, dtype=np.uint8)
    probe = np.stack(np.meshgrid(steps, steps, steps), -1).reshape(1, -1, 3)
    moved = np.asarray(conversion.apply(Image.fromarray(probe))).astype(int) - probe
    return conversion if np.abs(moved).max() > SAME else None
