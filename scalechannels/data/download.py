"""Bytes from elsewhere: a URL, or a package of the npm registry that this machine is set up to use.

Neither function stores or trusts what it gets: the caller verifies its checksum first.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path

from scalechannels.files import scratch_folder

# A mirror that does not answer is passed over after this many seconds; the next one may be nearer.
TIMEOUT = 10.0
NPM_TIMEOUT = 1800.0


class DownloadError(OSError):
    """One way to the data did not work; the message says which and why."""


def download(url: str, timeout: float = TIMEOUT) -> bytearray:
    """The content at `url` (https, http or file); progress is shown where standard error is a terminal.

    `timeout` bounds the wait for the connection and for each further piece, not the whole transfer.
    """
    if not url.startswith(("https://", "http://", "file://")):
        raise ValueError(f"a URL must start with https://, http:// or file://; got {url!r}")
    content = bytearray()
    try:
        with urllib.request.urlopen(url, timeout=timeout) as response:
            length = int(response.headers.get("Content-Length") or 0)
            with _progress(url.rsplit("/", 1)[-1], length or None) as advance:
                while piece := response.read(1 << 18):
                    content += piece
                    advance(len(piece))
    except urllib.error.HTTPError as error:
        error.close()  # it holds the connection open otherwise
        raise DownloadError(f"{url}: {error}") from None
    except (OSError, HTTPException, ValueError) as error:
        raise DownloadError(f"{url}: {getattr(error, 'reason', None) or error}") from None
    if length and len(content) != length:
        raise DownloadError(f"{url}: the connection ended after {len(content)} of {length} bytes")
    return content


def npm_pack(package: str, beside: Path) -> bytes:
    """The archive that npm downloads for `package` ("name@version"), by way of a folder next to `beside`.

    None of the package's scripts is run.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise DownloadError(f"npm pack {package}: there is no npm on the PATH")
    command = [npm, "pack", package, "--ignore-scripts", "--loglevel=error"]
    with scratch_folder(beside) as folder, _progress(f"npm pack {package}", None):
        try:
            ended = subprocess.run(
                command,
                cwd=folder,
                timeout=NPM_TIMEOUT,
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DownloadError(f"npm pack {package}: {error}") from None
        archives = sorted(folder.glob("*.tgz"))
        if ended.returncode == 0 and archives:
            return archives[-1].read_bytes()
    reason = next((line for line in ended.stderr.splitlines() if line.strip()), "no archive was written")
    raise DownloadError(f"npm pack {package}: {reason.strip()}")


@contextmanager
def _progress(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on standard error while the block runs; yields the function that moves it by some bytes."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    console, disable = Console(stderr=True), not sys.stderr.isatty()
    with Progress(*columns, console=console, transient=True, disable=disable) as progress:
        task = progress.add_task(label, total=total)
        yield lambda count: progress.advance(task, count)
