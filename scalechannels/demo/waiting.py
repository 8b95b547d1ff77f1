"""How many requests the demo holds at once, and how many bytes of them: the rest is told to come back.

Law: a request counts from before its body is read until it is answered, so that bodies which never end cannot
fill the memory. Limit: small bodies are bounded by the number of requests alone, so that a few large ones do
not shut them out; together that is at most LARGE + WAITING * SMALL bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from scalechannels.demo.answers import BadRequestError

WAITING = 32
SMALL, LARGE = 256_000, 64_000_000
"""Bytes: up to SMALL a body does not count; those above hold at most LARGE together."""


class Waiting:
    """The requests that are held now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.requests = self._bytes = 0

    @contextmanager
    def held(self, length: int) -> Iterator[None]:
        """A place for a request with a body of this many bytes; BadRequestError where there is none."""
        counted = length if length > SMALL else 0
        with self._lock:
            if self.requests >= WAITING or self._bytes + counted > LARGE:
                raise BadRequestError("too many requests at once; try again", HTTPStatus.SERVICE_UNAVAILABLE)
            self.requests += 1
            self._bytes += counted
        try:
            yield
        finally:
            with self._lock:
                self.requests -= 1
                self._bytes -= counted
