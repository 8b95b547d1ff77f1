"""Where data lies on disk and how it gets there: whole or not at all, and by one process at a time.

The law: a file that has its final name is complete. It is written under a temporary name in the same
folder, flushed to the disk, and then renamed, which the operating system does in one step. A process that
is killed in between leaves at most temporary files, which nobody reads and which the next process that
holds the lock removes.

The limit: a rename is atomic on one file system, and a lock works between processes that share it. File
systems that do neither (old network file systems) need one process at a time.
"""

from __future__ import annotations

import errno
import glob
import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from torch import Tensor

ENVIRONMENT_VARIABLE = "SCALECHANNELS_DATA"
# Matches the names that `_beside` gives, with the exact length of the random part: a plain `*` before the
# name would also match what another process is writing for `x-<name>`, under another lock.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""How an operating system says that there is no room for a file: on the disk, for this user, in one piece."""
_PARTIAL = f".partial-{'[0-9a-f]' * 32}-"


def cache_root(given: Path | str | None = None) -> Path:
    """The folder that holds data: the given one, else $SCALECHANNELS_DATA, else the user's cache.

    The folder need not exist: it is made when something is written.
    """
    named = os.environ.get(ENVIRONMENT_VARIABLE) if given is None else given
    if named:
        return Path(named).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("scalechannels", appauthor=False))


@contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yields a temporary path beside `path` and moves it into place when the block ends well.

    The block may write a file or make a folder. When it raises, what it wrote is removed and `path` is as
    before. A file replaces an older file; a folder replaces at most an empty one. The temporary name ends
    with the name of `path`, since writers such as `numpy.save` go by the suffix.
    """
    path = Path(path)
    with _beside(path, path) as temporary:
        yield temporary
        if not temporary.exists():
            raise OSError(f"nothing was written for {path}: the block has to write to the path it is given")
        for written in (*temporary.rglob("*"), temporary):
            _flush(written)
        os.replace(temporary, path)
        _flush(path.parent)


def write_text(path: Path | str, text: str) -> None:
    """Writes a text file, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def json_lines(path: Path | str) -> list[Any]:
    """The values of a file that holds one on each line; none where there is no such file.

    Law: what `append_line` wrote is read. A last line that a kill cut short is left out; any other line that
    is damaged is an error that names it.
    """
    path, found = Path(path), []
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else ()
    for number, line in enumerate(lines, 1):
        try:
            found.append(json.loads(line))
        except ValueError as error:
            if not line.endswith(b"\n"):
                break
            raise ValueError(f"line {number} of {path} is no JSON ({error}): repair or remove it") from None
    return found


def append_line(path: Path | str, value: Any) -> None:
    """Adds a value to a file of `json_lines`; it is on the disk before this returns.

    A last line that was cut short is removed: nobody could read it, nor what would be joined to it.
    """
    path = Path(path)
    make_folder(path.parent)
    with path.open("a+b") as file:
        file.seek(0)
        before = file.read()
        if before and not before.endswith(b"\n"):
            last = before.rpartition(b"\n")[2]
            try:
                json.loads(last)
            except ValueError:
                file.truncate(len(before) - len(last))
            else:
                file.write(b"\n")
        file.write(json.dumps(value, ensure_ascii=False).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def write_tensors(temporary: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str]) -> None:
    """Writes a safetensors file to a path of `atomic_path`.

    As bytes: safetensors by itself makes files that only their owner may read, and reports a full disk as if
    the tensors were at fault.
    """
    import safetensors.torch

    temporary.write_bytes(safetensors.torch.save(dict(tensors), metadata))


def require_writable(path: Path | str) -> None:
    """Refuse a path at which no file can be written, before the work whose result it is for.

    Law: a file is written beside it and removed; all is as before. Limit: the disk may become full later.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a folder; give the name of a file")
    _try_beside(path, path)


def require_writable_folder(path: Path | str) -> None:
    """The same of a folder that results are to be written to."""
    _try_beside(Path(path) / "any", Path(path))


def require_utf8(name: Path | str) -> None:
    """Refuse a name that cannot be written to a text file, such as that of a file named in Latin-1."""
    try:
        str(name).encode()
    except UnicodeEncodeError:
        shown = str(name).encode("utf-8", "backslashreplace").decode()
        raise ValueError(
            f"'{shown}' is no valid UTF-8, so it cannot be written to a file; rename it"
        ) from None


@contextmanager
def scratch_folder(path: Path | str) -> Iterator[Path]:
    """Yields an empty folder beside the resource `path`, removed afterwards however the block ends."""
    with _beside(Path(path), Path(path)) as temporary:
        temporary.mkdir()
        yield temporary


@contextmanager
def locked(path: Path | str, timeout: float = -1) -> Iterator[None]:
    """Holds the lock of the resource `path` (a file or a folder); another process waits until it is free.

    The lock is the file `.<name>.lock` beside the resource, held through the operating system, so that a
    killed process holds nothing. The lock of a folder covers the files in it. On entry, what a killed process
    left half-written for this resource is removed: nobody else can be writing it.
    `timeout` in seconds; negative waits for as long as it takes.
    """
    from filelock import FileLock, Timeout

    path = Path(path)
    make_folder(path.parent)
    lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=timeout)
    try:
        lock.acquire()
    except Timeout:
        raise OSError(
            f"another process has been working on {path} for more than {timeout:g} s; wait for it or stop it"
        ) from None
    try:
        for leftover in (*path.parent.glob(_PARTIAL + glob.escape(path.name)), *path.glob(_PARTIAL + "*")):
            _remove(leftover)
        yield
    finally:
        lock.release()


def json_text(value: Any, whole: Collection[str] = (), indent: str = "") -> str:
    """JSON with one line for each innermost object, for files that people diff and grep.

    whole   keys whose values stay on one line although they hold objects
    """
    if not isinstance(value, (dict, list, tuple)):
        return json.dumps(value)
    named = isinstance(value, dict)
    items = dict(value) if named else dict(enumerate(value))
    texts = {key: json_text(item, whole, indent + " ") for key, item in items.items()}
    if not any(isinstance(item, dict) or "\n" in texts[key] for key, item in items.items()):
        return json.dumps(value)
    lines = []
    for key, item in items.items():
        name = f"{json.dumps(str(key))}: " if named else ""
        lines.append(f"\n{indent} {name}" + (json.dumps(item) if key in whole else texts[key]))
    begin, end = "{}" if named else "[]"
    return f"{begin}{','.join(lines)}\n{indent}{end}"


def make_folder(path: Path) -> None:
    """Makes a folder to write to, where there is none."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise
    except OSError as error:
        raise OSError(f"the folder '{path}' cannot be made: {error.strerror}; choose another") from None


@contextmanager
def _beside(path: Path, named: Path) -> Iterator[Path]:
    """Yields a temporary path in the same folder; what lies there afterwards is removed.

    named      what errors speak of
    """
    make_folder(path.parent)
    temporary = path.with_name(f".partial-{uuid4().hex}-{path.name}")
    try:
        yield temporary
    except OSError as error:
        # The user knows the file by its own name; where the disk is full, no name is given at all.
        if error.errno in FULL:
            advice = "free some space, or choose another place"
        elif error.errno is not None and error.filename == str(temporary):
            advice = "choose another place"
        else:
            raise
        raise OSError(f"'{named}' cannot be written: {os.strerror(error.errno)}; {advice}") from None
    finally:
        _remove(temporary)


def _try_beside(path: Path, named: Path) -> None:
    """Writes a file beside `path`, whose folder need not exist, and leaves nothing of it."""
    missing = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    try:
        with _beside(path, named) as temporary:
            temporary.touch()
    finally:
        for folder in missing:
            with suppress(OSError):  # it was not made, or another process uses it by now
                folder.rmdir()


def _remove(path: Path) -> None:
    with suppress(OSError):  # it may not be there; and what went wrong before must not be hidden
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def _flush(path: Path) -> None:
    """Brings a file, or the entries of a folder, to the disk before a rename relies on it."""
    if os.name == "nt" and path.is_dir():
        return  # Windows has no handle to a folder that could be flushed
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
