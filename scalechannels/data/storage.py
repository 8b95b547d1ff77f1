"""Where data lies on disk and how it gets there: whole or not at all, and by one process at a time.

The law: a file that has its final name is complete. It is written under a temporary name in the same folder,
flushed to the disk, and then renamed, which the operating system does in one step. A process that is killed in
between leaves at most a temporary file, which nobody reads and which the next process that holds the lock removes.

The limit: a rename is atomic on one file system, and a lock works between processes that share it. Network file
systems that do neither (old NFS) need one process at a time.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

ENVIRONMENT_VARIABLE = "SCALECHANNELS_DATA"
TEMPORARY_MARK = ".partial-"


def cache_root(given: Path | str | None = None) -> Path:
    """The folder that holds downloaded data: the given one, else $SCALECHANNELS_DATA, else the user's cache.

    The folder need not exist; whoever writes creates it.
    """
    if given is not None:
        return Path(given).expanduser()
    from_environment = os.environ.get(ENVIRONMENT_VARIABLE)
    if from_environment:
        return Path(from_environment).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("scalechannels", appauthor=False))


@contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yields a temporary path beside `path` and moves it into place when the block ends well.

    The block may write a file or make a folder. When it raises, what it wrote is removed and `path` is as before.
    A file replaces an older file; a folder replaces nothing (`path` must not exist as a folder with content).
    The temporary name keeps the suffixes of `path`, since writers such as `numpy.save` look at them.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{TEMPORARY_MARK}{uuid4().hex}-{path.name}")
    try:
        yield temporary
        if not temporary.exists():
            raise OSError(f"nothing was written for {path}: the block has to write {temporary.name}")
        _flush_tree(temporary)
        os.replace(temporary, path)
        _flush(path.parent)
    finally:
        _remove(temporary)


@contextmanager
def locked(path: Path | str, timeout: float = -1) -> Iterator[None]:
    """Holds the lock of the resource `path` (a file or a folder); another process waits until it is free.

    The lock is the file `.<name>.lock` beside the resource. It belongs to the process, so a killed one leaves none
    behind. Temporary files that a killed process left for this resource are removed on entry: whoever holds the
    lock knows that nobody is writing them. `timeout` in seconds; negative waits for as long as it takes.
    """
    from filelock import FileLock, Timeout

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=timeout)
    try:
        lock.acquire()
    except Timeout:
        raise OSError(
            f"another process has been working on {path} for more than {timeout:g} s; wait for it or end it"
        ) from None
    try:
        for leftover in path.parent.glob(f"{TEMPORARY_MARK}*-{path.name}"):
            _remove(leftover)
        yield
    finally:
        lock.release()


def checksum(content: bytes | bytearray | memoryview | Path, algorithm: str = "sha256") -> str:
    """Hexadecimal digest of bytes or of the file at a path, read in pieces."""
    digest = hashlib.new(algorithm, usedforsecurity=False)
    if isinstance(content, Path):
        with content.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    else:
        digest.update(content)
    return digest.hexdigest()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _flush_tree(path: Path) -> None:
    if path.is_dir():
        for child in path.rglob("*"):
            _flush(child)
    _flush(path)


def _flush(path: Path) -> None:
    """Asks the system to bring a file or the entries of a folder to the disk before a rename relies on them."""
    if path.is_dir() and os.name == "nt":
        return  # Windows has no handle to a folder that could be flushed
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() or os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
