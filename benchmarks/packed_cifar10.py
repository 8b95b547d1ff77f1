"""CIFAR-10 in a few files of half its size, for a machine that takes small files and has little beyond NumPy.

    python -m benchmarks.packed_cifar10 pack cifar10.bin FOLDER [--files 3]   writes part-0.xz, part-1.xz, …
    python -m benchmarks.packed_cifar10 unpack cifar10.bin PART [PART …]      all parts, in any order

`cifar10.bin` is what `scalechannels data fetch cifar10` keeps. Pixels become differences: red and blue from
green, and each pixel from what its neighbours above and to the left let expect (the median of the left one,
the upper one, and their plane), which LZMA packs to 55 %. Unpacking gives the same bytes, or an error.
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

RECORD, SIDE = 3073, 32
TOGETHER = 2000
"""Images in a block, which is packed by itself."""


def expected(left: np.ndarray, above: np.ndarray, corner: np.ndarray) -> np.ndarray:
    """The value of a pixel, from those of its neighbours."""
    high, low = np.maximum(left, above), np.minimum(left, above)
    return np.where(corner >= high, low, np.where(corner <= low, high, left + above - corner))


def packed(records: np.ndarray) -> bytes:
    """Records (N, 3073) of a label and an image."""
    images = records[:, 1:].reshape(-1, 3, SIDE, SIDE).copy()
    images[:, 0] -= images[:, 1]
    images[:, 2] -= images[:, 1]
    wide = np.pad(images.astype(np.int16), ((0, 0), (0, 0), (1, 0), (1, 0)))
    left, above, corner = wide[..., 1:, :-1], wide[..., :-1, 1:], wide[..., :-1, :-1]
    differences = (images - expected(left, above, corner)).astype(np.uint8)
    return lzma.compress(records[:, 0].tobytes() + differences.tobytes())


def unpacked(content: bytes) -> np.ndarray:
    """The records (N, 3073) again."""
    values = np.frombuffer(lzma.decompress(content), np.uint8)
    count = len(values) // RECORD
    labels, differences = values[:count], values[count:].reshape(count, 3, SIDE, SIDE)
    steps = np.ascontiguousarray(differences.transpose(2, 3, 0, 1))  # (32, 32, N, 3)
    wide = np.zeros((SIDE + 1, SIDE + 1, count, 3), np.int16)
    for row in range(SIDE):
        for column in range(SIDE):
            known = wide[row + 1, column], wide[row, column + 1], wide[row, column]
            wide[row + 1, column + 1] = (steps[row, column] + expected(*known)) & 255
    images = wide[1:, 1:].transpose(2, 3, 0, 1).astype(np.uint8)
    images[:, 0] += images[:, 1]
    images[:, 2] += images[:, 1]
    return np.concatenate([labels[:, None], images.reshape(count, -1)], 1)


def pack(source: Path, folder: Path, files: int) -> list[Path]:
    content = source.read_bytes()
    records = np.frombuffer(content, np.uint8).reshape(-1, RECORD)
    starts = range(0, len(records), TOGETHER)
    with ProcessPoolExecutor() as processes:
        blocks = list(processes.map(packed, [records[start : start + TOGETHER] for start in starts]))
    folder.mkdir(parents=True, exist_ok=True)
    whole, paths = hashlib.sha256(content).digest(), []
    for number in range(files):
        paths.append(folder / f"part-{number}.xz")
        with paths[-1].open("wb") as file:
            file.write(whole + len(blocks).to_bytes(4, "little"))
            for place in range(number, len(blocks), files):
                file.write(place.to_bytes(4, "little") + len(blocks[place]).to_bytes(4, "little"))
                file.write(blocks[place])
    return paths


def unpack(target: Path, parts: Sequence[Path]) -> None:
    found: dict[int, bytes] = {}
    said = set()
    for path in parts:
        content = path.read_bytes()
        said.add(content[:36])
        place = 36
        while place < len(content):
            number, length = (int.from_bytes(content[at : at + 4], "little") for at in (place, place + 4))
            found[number] = content[place + 8 : place + 8 + length]
            place += 8 + length
    if len(said) != 1:
        raise ValueError(f"these are parts of {len(said)} different files")
    (about,) = said
    if missing := int.from_bytes(about[32:], "little") - len(found):
        raise ValueError(f"{missing} blocks are missing: give all parts")
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        content = b"".join(
            one.tobytes() for one in processes.map(unpacked, [found[number] for number in sorted(found)])
        )
    if hashlib.sha256(content).digest() != about[:32]:
        raise ValueError("the parts are damaged: what they hold is not what was packed")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("way", choices=("pack", "unpack"))
    parser.add_argument("file", type=Path, help="cifar10.bin")
    parser.add_argument("others", type=Path, nargs="+", help="the folder of the parts, or the parts")
    parser.add_argument("--files", type=int, default=3)
    given = parser.parse_args(words)
    if given.way == "pack":
        for path in pack(given.file, given.others[0], given.files):
            print(path, f"{path.stat().st_size / 1e6:.1f} MB")
    else:
        unpack(given.file, given.others)


if __name__ == "__main__":
    main()
