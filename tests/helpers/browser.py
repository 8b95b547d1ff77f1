"""The browser that is installed, for the tests that drive one, and a web server for folders of files."""

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from scalechannels.data.sources import DataNotFoundError, fetch
from scalechannels.demo.without_server import ONNXRUNTIME_WEB


def chromium() -> str:
    for name in (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name) if name else None
        if found:
            return found
    pytest.fail("no Chromium: install Debian's package chromium, or name one by CHROMIUM=/path")


def onnxruntime_web() -> dict[str, bytes | bytearray]:
    """Its files by their names, without a network where `make test-all` has prepared the machine."""
    try:
        return fetch(ONNXRUNTIME_WEB).contents
    except DataNotFoundError:
        if shutil.which("npm"):
            raise
        pytest.skip(f"no npm, which brings {ONNXRUNTIME_WEB.package}, and it is not in the cache")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *values: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which a folder's files are served for a while, as any web server does."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()
