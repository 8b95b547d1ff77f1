"""What a connection sends, bounded in time and in bytes."""

from __future__ import annotations

import io
import socket
import time
from typing import Any


class TooLongError(Exception):
    """More was sent than is allowed."""


class Incoming(io.RawIOBase):
    """The bytes of a connection.

    Law: after `allow`, reading ends within that many seconds and bytes in all, however slowly they come.
    Raises TimeoutError and TooLongError.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.allow(0, 0)

    def allow(self, seconds: float, size: int) -> None:
        self._end, self._left = time.monotonic() + seconds, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        seconds = self._end - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        if self._left == 0:
            raise TooLongError
        self._connection.settimeout(seconds)
        count = self._connection.recv_into(memoryview(buffer)[: self._left])
        self._left -= count
        return count
