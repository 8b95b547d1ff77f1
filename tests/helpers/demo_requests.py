"""Requests to a demo's server: right ones, and whatever bytes."""

import http.client
import json
import re
import socket
from dataclasses import dataclass
from typing import Any

from scalechannels.demo.server import DemoServer

JSON = {"Content-Type": "application/json"}
FILE = {"Content-Type": "application/octet-stream"}
SEVEN = {"strokes": [[[0.2, 0.1], [0.8, 0.1], [0.4, 0.9]]]}


def ask(
    server: DemoServer, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    if isinstance(body, (dict, list)):
        body, headers = json.dumps(body), {**JSON, **(headers or {})}
    connection.request(method, path, body, headers or {})
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    kind = reply.getheader("Content-Type", "")
    return reply.status, json.loads(content) if kind == "application/json" and content else content


def works(server: DemoServer, digit: str) -> bool:
    status, seen = ask(server, "POST", "/api/look", {"digit": digit, "size": 2})
    return status == 200 and len(seen["logits"]) == 5


def connect(server: DemoServer, content: bytes) -> socket.socket:
    """A connection on which this was sent; HERE stands for the server's host and port."""
    connection = socket.create_connection(("127.0.0.1", server.server_port), timeout=20)
    connection.sendall(content.replace(b"HERE", f"127.0.0.1:{server.server_port}".encode()))
    return connection


def read(connection: socket.socket) -> bytes:
    """All that comes until the server closes."""
    got = b""
    while piece := connection.recv(65536):
        got += piece
    return got


def raw(server: DemoServer, content: bytes) -> bytes:
    """Whatever bytes, and what comes back."""
    with connect(server, content) as connection:
        connection.shutdown(socket.SHUT_WR)
        return read(connection)


def head(line: str, *headers: str) -> bytes:
    """The head of a request to this server."""
    return "\r\n".join((line, "Host: HERE", *headers, "", "")).encode()


def post(path: str, kind: str, length: object) -> bytes:
    """The head of a request, with whatever it says of its body."""
    return head(f"POST {path} HTTP/1.1", f"Content-Type: {kind}", f"Content-Length: {length}")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def error(self) -> str:
        return json.loads(self.content)["error"]


def answers(got: bytes, may_be_to_head: bool = False) -> list[Answer]:
    """The answers in what came back, which must be nothing else; fails where an answer is not whole.

    To HEAD an answer has the length of a body, but none.
    """
    found = []
    while got:
        top, _, got = got.partition(b"\r\n\r\n")
        first, *lines = top.decode("latin-1").split("\r\n")
        said = re.fullmatch(r"HTTP/1\.1 (\d{3}) .*", first)
        assert said, first
        status, headers = int(said[1]), dict(line.split(": ", 1) for line in lines)
        if status == 100:
            continue
        bare = may_be_to_head and (not got or got.startswith(b"HTTP/1.1 "))
        length = 0 if bare else int(headers["Content-Length"])
        content, got = got[:length], got[length:]
        assert len(content) == length
        found.append(Answer(status, headers, content))
    return found
