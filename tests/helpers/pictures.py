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


def deep_png(path: Path, values: np.ndarray) -> Path:
    """16 bits (H, W, C) as a PNG, which Pillow cannot write."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    height, width, channels = values.shape
    header = struct.pack(">IIBBBBB", width, height, 16, {1: 0, 2: 4, 3: 2, 4: 6}[channels], 0, 0, 0)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts))
    return path


def deep_tiff(path: Path, values: np.ndarray) -> Path:
    """16 bits (H, W, 3) as a TIFF without compression."""
    height, width, channels = values.shape
    content, at = values.astype("<u2").tobytes(), 8 + 2 + 12 * 9 + 4
    shape = ((256, width), (257, height), (258, at), (259, 1), (262, 2))
    place = ((273, at + 2 * channels), (277, channels), (278, height), (279, len(content)))
    tags = b"".join(
        struct.pack("<HHII", tag, 4, channels if tag == 258 else 1, value) for tag, value in (*shape, *place)
    ).replace(struct.pack("<HHI", 258, 4, channels), struct.pack("<HHI", 258, 3, channels))
    path.parent.mkdir(parents=True, exist_ok=True)
    bits = struct.pack(f"<{channels}H", *[16] * channels)
    path.write_bytes(b"II*\0" + struct.pack("<IH", 8, 9) + tags + struct.pack("<I", 0) + bits + content)
    return path
