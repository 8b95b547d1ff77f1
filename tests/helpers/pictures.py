"""Image files of kinds that Pillow alone cannot write."""

import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image


def save(path: Path, image: Image.Image, **options: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, **options)
    return path


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def png(values: np.ndarray, bits: int, *chunks: tuple[bytes, bytes]) -> bytes:
    """Values (H, W, C) of 1 to 16 bits as a PNG, with further chunks such as tRNS."""
    height, width, channels = values.shape
    header = struct.pack(">IIBBBBB", width, height, bits, {1: 0, 2: 4, 3: 2, 4: 6}[channels], 0, 0, 0)
    rows = b"".join(b"\0" + packed(row.reshape(-1), bits, ">") for row in values)
    parts = ((b"IHDR", header), *chunks, (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in parts
    )


def packed(row: np.ndarray, bits: int, order: str) -> bytes:
    """A row of unsigned values, those of less than 8 bits several to a byte, from the left."""
    if bits == 16:
        return row.astype(f"{order}u2").tobytes()
    places = np.unpackbits(row.astype(np.uint8)[:, None], axis=1)[:, -bits:]
    return np.packbits(places).tobytes()


def tiff(
    values: np.ndarray,
    order: str = "<",
    *,
    photometric: int | None = None,
    orientation: int = 1,
    bits: int | None = None,
) -> bytes:
    """Values (H, W, C) of any type of numbers as a TIFF without compression, little or big endian.

    photometric   0: white is zero; 1: black is zero; 2: RGB; 5: CMYK; 6: YCbCr; 8: LAB
    bits          12 packs two values of 16 bits into three bytes
    """
    height, width, channels = values.shape
    if photometric is None:
        photometric = {1: 1, 2: 1, 3: 2, 4: 2}[channels]
    if bits == 12:
        places = np.unpackbits(values.astype(">u2").view(np.uint8).reshape(height, -1, 2), axis=2)
        content = b"".join(np.packbits(row[:, 4:].reshape(-1)).tobytes() for row in places)
    else:
        content = values.astype(values.dtype.newbyteorder(order)).tobytes()
    kind = {"u": 1, "i": 2, "f": 3}[values.dtype.kind]
    colours = {0: 1, 1: 1, 2: 3, 5: 4, 6: 3, 8: 3}[photometric]
    tags: dict[int, list[int]] = {
        256: [width],
        257: [height],
        258: [bits or 8 * values.dtype.itemsize] * channels,
        259: [1],
        262: [photometric],
        273: [0],
        274: [orientation],
        277: [channels],
        278: [height],
        279: [len(content)],
        339: [kind] * channels,
    }
    if channels > colours:
        tags[338] = [2] * (channels - colours)  # alpha that was not multiplied in
    at = 8 + 2 + 12 * len(tags) + 4
    beyond = sum(2 * len(numbers) for numbers in tags.values() if len(numbers) > 2)
    tags[273] = [at + beyond]
    entries, lists = b"", b""
    for tag, numbers in sorted(tags.items()):
        if tag in (273, 279):
            entries += struct.pack(f"{order}HHII", tag, 4, 1, numbers[0])
            continue
        listed = struct.pack(f"{order}{len(numbers)}H", *numbers)
        if len(numbers) > 2:
            entries += struct.pack(f"{order}HHII", tag, 3, len(numbers), at + len(lists))
            lists += listed
        else:
            entries += struct.pack(f"{order}HHI", tag, 3, len(numbers)) + listed.ljust(4, b"\0")
    start = {"<": b"II*\0", ">": b"MM\0*"}[order] + struct.pack(f"{order}IH", 8, len(tags))
    return start + entries + struct.pack(f"{order}I", 0) + lists + content


def deep_png(path: Path, values: np.ndarray) -> Path:
    """16 bits (H, W, C) as a PNG."""
    return write(path, png(values, 16))


def deep_tiff(path: Path, values: np.ndarray) -> Path:
    """16 bits (H, W, 3) as a TIFF without compression."""
    return write(path, tiff(values.astype(np.uint16)))
