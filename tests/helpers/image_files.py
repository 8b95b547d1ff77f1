"""Strategies of hypothesis for image files: every kind that can be met, whole, damaged and misnamed."""

import io
import struct
from typing import Any, NamedTuple

import numpy as np
from helpers.pictures import png, tiff
from helpers.profiles import cmyk_profile, grey_profile, rgb_profile
from hypothesis import strategies as st
from PIL import Image

from scalechannels.data.image_files import FORMATS

SUFFIXES = tuple(suffix for names in FORMATS.values() for suffix in names)
MODES = (
    "1",
    "L",
    "LA",
    "La",
    "P",
    "PA",
    "RGB",
    "RGBA",
    "RGBa",
    "CMYK",
    "YCbCr",
    "LAB",
    "HSV",
    "I;16",
    "I",
    "F",
)
WRITTEN = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF", "PPM", "JPEG2000", "AVIF", "EPS", "TGA", "PCX", "ICO")
PROFILES = (
    None,
    rgb_profile(),
    rgb_profile(1.0),
    grey_profile(),
    cmyk_profile(),
    b"none",
    rgb_profile()[:99],
)
UPRIGHT: dict[int, Any] = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: a[::-1].swapaxes(0, 1),
    7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
    8: lambda a: a[:, ::-1].swapaxes(0, 1),
}
"""What is done to stored rows and columns to see an image of this EXIF orientation upright."""

sides = st.integers(1, 9)


class KnownFile(NamedTuple):
    """A file whose grey values are known."""

    content: bytes
    values: np.ndarray  # (H, W), 0 to 1, upright
    step: float  # how far the values read may lie from them


@st.composite
def pixels(draw: st.DrawFn, most: int, channels: int = 1) -> np.ndarray:
    """Whole numbers (H, W, channels) from 0 to `most`, often the extreme ones."""
    shape = (draw(sides), draw(sides), channels)
    values = np.random.default_rng(draw(st.integers(0, 2**16))).integers(0, most + 1, shape)
    return np.where(values % 5 == 0, values // (most + 1) * most, values)


@st.composite
def known_png(draw: st.DrawFn) -> KnownFile:
    """Grey of 1 to 16 bits, or grey as RGB, with or without transparency, orientation and profile."""
    bits = draw(st.sampled_from((1, 2, 4, 8, 16)))
    channels = draw(st.sampled_from((1, 2, 3, 4) if bits >= 8 else (1,)))
    most = 2**bits - 1
    values = draw(pixels(most))
    seen = values[..., 0] / most
    chunks = [orientation_chunk(turn := draw(st.sampled_from(list(UPRIGHT))))]
    alpha = draw(pixels(most))
    stored = values.repeat(3, 2) if channels > 2 else values
    if channels in (2, 4):
        alpha = np.resize(alpha, values.shape)
        seen = seen * (alpha[..., 0] / most) + 1 - alpha[..., 0] / most
        stored = np.concatenate((stored, alpha), 2)
    elif draw(st.booleans()):
        clear = int(values.reshape(-1)[0])
        chunks.append((b"tRNS", struct.pack(">H", clear) * channels))
        coarse = values[..., 0] >> 8 if channels == 3 and bits == 16 else values[..., 0]
        seen = np.where(coarse == (clear >> 8 if channels == 3 and bits == 16 else clear), 1.0, seen)
    clear_by_degrees = channels in (2, 4)
    step = 1.5e-5 if bits == 16 and channels == 1 else 1e-6
    if bits == 16 and channels > 1:  # 8 bits where Pillow has no more, of the value and of how clear it is
        step = (1 + clear_by_degrees) / 255
    # Beside that, what lies over white is rounded.
    return KnownFile(png(stored, bits, *chunks), UPRIGHT[turn](seen), step + clear_by_degrees / 255)


def orientation_chunk(orientation: int) -> tuple[bytes, bytes]:
    return b"eXIf", b"II*\0" + struct.pack("<IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)


@st.composite
def known_tiff(draw: st.DrawFn) -> KnownFile:
    """Grey of 8, 12, 16 bits or floating point, black or white at zero, in either order of bytes."""
    bits = draw(st.sampled_from((8, 12, 16, 32)))
    order = draw(st.sampled_from("<>" if bits != 12 else "<"))
    # Pillow reads these combinations; the others are unreadable, which another test allows.
    zero_is_white = bits != 12 and not (bits == 16 and order == ">") and draw(st.booleans())
    turn = draw(st.sampled_from(list(UPRIGHT)))
    most = 2 ** min(bits, 16) - 1
    values = draw(pixels(most))
    kind = {8: np.uint8, 32: np.float32}.get(bits, np.uint16)
    stored = (values / most).astype(kind) if bits == 32 else values.astype(kind)
    content = tiff(stored, order, photometric=1 - zero_is_white, orientation=turn, bits=bits)
    seen = values[..., 0] / most
    return KnownFile(content, UPRIGHT[turn](1 - seen if zero_is_white else seen), 1e-6)


@st.composite
def known_pgm(draw: st.DrawFn) -> KnownFile:
    """Grey of any largest value up to 65535, as text or as bytes."""
    most = draw(st.integers(1, 65535))
    values = draw(pixels(most))[..., 0]
    height, width = values.shape
    head = f"{width} {height} {most}\n".encode()
    if draw(st.booleans()):
        content = b"P2 " + head + " ".join(map(str, values.reshape(-1))).encode()
    else:
        content = b"P5 " + head + values.astype(">u2" if most > 255 else ">u1").tobytes()
    # Pillow rounds to whole values of 8 or 16 bits.
    return KnownFile(content, values / most, 0.51 / (255 if most < 256 else 65535))


@st.composite
def known_saved(draw: st.DrawFn) -> KnownFile:
    """Grey that Pillow writes without loss in its own formats."""
    kind, mode, options = draw(
        st.sampled_from(
            (
                *(("BMP", "L", {}), ("GIF", "L", {}), ("JPEG2000", "L", {"irreversible": False})),
                *(("JPEG2000", "I;16", {"irreversible": False}), ("WEBP", "RGB", {"lossless": True})),
                *(
                    ("TIFF", "L", {"compression": "tiff_lzw"}),
                    ("TIFF", "I;16", {"compression": "tiff_deflate"}),
                ),
            )
        )
    )
    deep = mode == "I;16"
    values = draw(pixels(65535 if deep else 255))[..., 0]
    image = Image.fromarray(values.astype(np.uint16 if deep else np.uint8))
    file = io.BytesIO()
    image.convert(mode).save(file, kind, **options)
    return KnownFile(file.getvalue(), values / (65535 if deep else 255), 1e-6)


known_files = st.one_of(known_png(), known_tiff(), known_pgm(), known_saved())


@st.composite
def saved_by_pillow(draw: st.DrawFn) -> bytes:
    """Any mode in any format, where Pillow writes that; with orientation, profile and transparency."""
    mode, kind = draw(st.sampled_from(MODES)), draw(st.sampled_from(WRITTEN))
    size = (draw(sides), draw(sides))
    noise = np.random.default_rng(draw(st.integers(0, 2**16)))
    image = plain = Image.fromarray(noise.integers(0, 256, (*size, 3), dtype=np.uint8))
    if mode in ("La", "RGBa"):
        image = image.convert(mode.upper()).convert(mode)
    elif mode == "I;16":
        image = Image.fromarray(noise.integers(0, 65536, size, dtype=np.uint16))
    elif mode == "PA":
        image = image.convert("P").convert("PA")
    else:
        image = image.convert(mode)
    options: dict[str, Any] = {}
    if (profile := draw(st.sampled_from(PROFILES))) is not None:
        options["icc_profile"] = profile
    if draw(st.booleans()):
        options["exif"] = orientation_chunk(draw(st.integers(0, 9)))[1]
    if draw(st.booleans()) and mode in ("L", "P", "1"):
        options["transparency"] = 0
    file = io.BytesIO()
    try:
        image.save(file, kind, **options)
    except (OSError, ValueError, KeyError, TypeError):  # not every format has every mode
        file = io.BytesIO()
        plain.save(file, "PNG")
    return file.getvalue()


@st.composite
def any_tiff(draw: st.DrawFn) -> bytes:
    """Any type of numbers and number of channels, said to be any kind of colour."""
    kind = draw(st.sampled_from(("u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8")))
    values = draw(pixels(255, draw(st.integers(1, 4)))).astype(kind)
    photometric = draw(st.sampled_from((0, 1, 2, 5, 6, 8)))
    orientation = draw(st.integers(0, 9))
    return tiff(values, draw(st.sampled_from("<>")), photometric=photometric, orientation=orientation)


whole = st.one_of(known_files.map(lambda file: file.content), saved_by_pillow(), any_tiff())


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A file that is cut, has other bytes in places, or goes on after its end."""
    content = bytearray(draw(whole))
    for _ in range(draw(st.integers(0, 6))):
        content[draw(st.integers(0, len(content) - 1))] = draw(st.integers(0, 255))
    if draw(st.booleans()):
        del content[draw(st.integers(0, len(content))) :]
    return bytes(content) + draw(st.binary(max_size=4))


STARTS = (
    b"",
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff\xe0",
    b"II*\0",
    b"RIFF\0\0\0\0WEBP",
    b"BM",
    b"GIF89a",
    b"P5 ",
)
headed = st.tuples(st.sampled_from(STARTS), st.binary(max_size=200)).map(b"".join)
names = st.sampled_from((*SUFFIXES, ".PNG", ".txt", "")).map(lambda suffix: f"image{suffix}")
any_files = st.tuples(names, st.one_of(whole, damaged(), damaged(), headed))
"""A name and a content that need not fit it."""
