"""The demo's server: the standard library's, on the loopback address alone.

    GET  /  /style.css  /demo.js      the page; nothing else is ever read from the disk
    GET  /api/settings                scales, sizes
    GET  /api/example?number=&digit=  a built-in digit as pen strokes
    POST /api/drawing                 {"strokes": [[[x, y], …], …]}           → {"digit"}
    POST /api/picture                 an image file                           → {"digit"}
    POST /api/look                    {"digit", "size"}                       → what both networks see and say
    POST /api/sizes                   {"digit"}                               → their verdicts at all sizes
    POST /api/scene                   {"seed", "background"} or an image file → a scene and what is found

A digit travels as 784 bytes in base64: the page keeps it and the server keeps nothing, so any number of
users may ask at once. Law: every request is answered, a bad one by a status of 400 and above with
{"error": what to do}, and none ends the server. Limits: bodies of 16 MB, as many waiting requests as WAITING.
"""

from __future__ import annotations

import base64
import binascii
import json
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import torch
from torch import Tensor

from scalechannels.data.pictures import UnreadableImageError
from scalechannels.demo.digit import (
    MAX_POINTS,
    MAX_STROKES,
    SIDE,
    NoDigitError,
    digit_from_picture,
    digit_from_strokes,
)
from scalechannels.demo.looks import LARGEST, SMALLEST, Looks, example
from scalechannels.demo.scene import Detect, dropped_picture, made_scene

LOOPBACK = "127.0.0.1"
HOSTS = ("localhost", LOOPBACK, "[::1]")
MAX_JSON, MAX_FILE = 256_000, 16_000_000
WORKERS, WAITING = 2, 32
PAGE = Path(__file__).parent / "page"
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    "/demo.js": ("demo.js", "text/javascript; charset=utf-8"),
}
SAFETY = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class BadRequestError(Exception):
    """A request that cannot be answered: the status and what to do."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Body:
    """What came with a request: an image file, or JSON."""

    content: bytes
    is_file: bool

    def json(self) -> dict[str, Any]:
        try:
            value = json.loads(self.content)
        except (ValueError, RecursionError):
            raise _refused("the body is no JSON") from None
        if not isinstance(value, dict):
            raise _refused("the body is a JSON object, such as {}")
        return value


class Demo:
    """The answers: each a function of the request alone."""

    def __init__(self, looks: Looks, detect: Detect | None = None) -> None:
        self.looks, self.detect = looks, detect
        self.answers: dict[str, Callable[[Body], dict[str, Any]]] = {
            "/api/drawing": self._drawing,
            "/api/picture": self._picture,
            "/api/look": self._look,
            "/api/sizes": self._sizes,
            "/api/scene": self._scene,
        }
        # Digits are small: threads inside one answer would cost more than they bring, so that users share the
        # cores instead. Few workers, because every thread that computes keeps its own memory.
        self.workers = ThreadPoolExecutor(WORKERS, "demo", initializer=partial(torch.set_num_threads, 1))
        self.waiting = threading.BoundedSemaphore(WAITING)

    def settings(self) -> dict[str, Any]:
        return {**self.looks.settings(), "detector": self.detect is not None}

    def answer(self, path: str, body: Body) -> dict[str, Any]:
        """The answer to a POST; raises BadRequestError."""
        if not self.waiting.acquire(blocking=False):
            raise BadRequestError(HTTPStatus.SERVICE_UNAVAILABLE, "too many requests at once; try again")
        try:
            return self.workers.submit(self.answers[path], body).result()
        except (UnreadableImageError, NoDigitError) as error:
            raise BadRequestError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None
        finally:
            self.waiting.release()

    def close(self) -> None:
        self.workers.shutdown(cancel_futures=True)

    def _drawing(self, body: Body) -> dict[str, Any]:
        return _with_digit(digit_from_strokes(_strokes(body.json())))

    def _picture(self, body: Body) -> dict[str, Any]:
        return _with_digit(digit_from_picture(body.content))

    def _look(self, body: Body) -> dict[str, Any]:
        given = body.json()
        return self.looks.at(_digit(given), _number(given, "size", SMALLEST, LARGEST))

    def _sizes(self, body: Body) -> dict[str, Any]:
        return self.looks.at_all_sizes(_digit(body.json()))

    def _scene(self, body: Body) -> dict[str, Any]:
        if self.detect is None:
            raise BadRequestError(HTTPStatus.NOT_FOUND, "this demo was started without a detector")
        if body.is_file:
            return dropped_picture(self.detect, body.content)
        given = body.json()
        background, seed = given.get("background", "plain"), _number(given, "seed", 0, 2**30 - 1)
        try:
            return made_scene(self.detect, int(seed), background)
        except ValueError as error:
            raise _refused(str(error)) from None


class Handler(BaseHTTPRequestHandler):
    """One connection, which may carry many requests."""

    protocol_version = "HTTP/1.1"  # the connection stays open from one move of the slider to the next
    server_version, sys_version = "scalechannels", ""
    timeout = 30  # seconds without a word
    # Head and body in one write, sent at once: as two, the second waits 40 ms for the first one's receipt.
    wbufsize, disable_nagle_algorithm = -1, True
    server: DemoServer

    def do_GET(self) -> None:
        self._reply(self._get)

    def do_HEAD(self) -> None:
        self._reply(self._get)

    def do_POST(self) -> None:
        self._reply(self._post)

    def _get(self) -> tuple[bytes, str]:
        path, _, query = self.path.partition("?")
        if path in FILES:
            return self.server.files[path]
        if path == "/api/settings":
            return _json(self.server.demo.settings())
        if path == "/api/example":
            return _json(_example(query))
        raise BadRequestError(HTTPStatus.NOT_FOUND, "there is nothing here; the page is at /")

    def _post(self) -> tuple[bytes, str]:
        path = self.path.partition("?")[0]
        kind = self.headers.get_content_type()
        is_file = kind == "application/octet-stream"
        if path not in self.server.demo.answers:
            raise self._unread(HTTPStatus.NOT_FOUND, "there is nothing here; the page is at /")
        # Neither type can be sent by another site's page without the browser asking here first.
        if not is_file and kind != "application/json":
            raise self._unread(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                "send application/json, or a file as application/octet-stream",
            )
        content = self._body(MAX_FILE if is_file and path in ("/api/picture", "/api/scene") else MAX_JSON)
        return _json(self.server.demo.answer(path, Body(content, is_file)))

    def _body(self, limit: int) -> bytes:
        given = self.headers.get("Content-Length")
        if given is None or self.headers.get("Transfer-Encoding") is not None:
            raise self._unread(HTTPStatus.LENGTH_REQUIRED, "say how long the body is (Content-Length)")
        if not (given.isascii() and given.isdigit()) or len(given) > 15:
            raise self._unread(HTTPStatus.BAD_REQUEST, "Content-Length is a whole number")
        length = int(given)
        if length > limit:
            raise self._unread(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {limit:,} bytes are taken, got {length:,}"
            )
        content = self.rfile.read(length)
        if len(content) < length:
            raise self._unread(HTTPStatus.BAD_REQUEST, "the body ended early")
        return content

    def _unread(self, status: HTTPStatus, message: str) -> BadRequestError:
        """An error before the body was read: what is left of it must not be taken for the next request."""
        self.close_connection = True
        return BadRequestError(status, message)

    def _reply(self, answer: Callable[[], tuple[bytes, str]]) -> None:
        status = HTTPStatus.OK
        try:
            self._require_own_page()
            content, kind = answer()
        except BadRequestError as error:
            status = error.status
            content, kind = _json({"error": str(error)})
        except (ConnectionError, TimeoutError):
            self.close_connection = True
            return
        except Exception:
            traceback.print_exc(file=sys.stderr)
            self.close_connection = True
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            content, kind = _json({"error": "a fault of the demo; its terminal shows where"})
        self.send_response(status)
        for name, value in SAFETY.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _require_own_page(self) -> None:
        """Other sites may resolve their own names to this address; only names of this machine are served."""
        origin = self.headers.get("Origin")
        named = [self.headers.get("Host", ""), *([] if origin is None else [origin.partition("://")[2]])]
        for name in named:
            host = name.rsplit(":", 1)[0] if name.rpartition(":")[2].isdigit() else name
            if host.lower() not in HOSTS:
                raise self._unread(HTTPStatus.FORBIDDEN, f"this demo is for this machine alone, not {host}")

    def log_message(self, format: str, *values: Any) -> None:
        """Quiet: a line for every move of the slider would hide what matters."""


class DemoServer(ThreadingHTTPServer):
    """Listens on the loopback address; `port` 0 takes a free one. Close it with `server_close`."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, demo: Demo, port: int = 0) -> None:
        self.demo = demo
        self.files = {
            path: ((PAGE / name).read_bytes(), kind) for path, (name, kind) in FILES.items()
        }  # read once: no request names a file
        super().__init__((LOOPBACK, port), Handler)

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.server_port}/"

    def server_close(self) -> None:
        super().server_close()
        self.demo.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever goes away in the middle of an answer is no fault."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


def _refused(message: str) -> BadRequestError:
    return BadRequestError(HTTPStatus.BAD_REQUEST, message)


def _json(value: dict[str, Any]) -> tuple[bytes, str]:
    return json.dumps(value, separators=(",", ":")).encode(), "application/json"


def _with_digit(digit: Tensor) -> dict[str, Any]:
    return {"digit": base64.b64encode(digit.contiguous().numpy().tobytes()).decode("ascii")}


def _digit(given: dict[str, Any]) -> Tensor:
    text = given.get("digit")
    try:
        content = base64.b64decode(text if isinstance(text, str) else "", validate=True)
    except (binascii.Error, ValueError):
        content = b""
    if len(content) != SIDE * SIDE:
        raise _refused(f"digit is {SIDE}x{SIDE} bytes in base64")
    return torch.frombuffer(bytearray(content), dtype=torch.uint8).view(SIDE, SIDE)


def _number(given: dict[str, Any], name: str, low: float, high: float) -> float:
    value = given.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise _refused(f"{name} is a number from {low:g} to {high:g}")
    return float(value)


def _strokes(given: dict[str, Any]) -> list[list[tuple[float, float]]]:
    strokes = given.get("strokes")
    if not isinstance(strokes, list) or len(strokes) > MAX_STROKES:
        raise _refused(f"strokes is a list of at most {MAX_STROKES} strokes")
    if not all(isinstance(stroke, list) for stroke in strokes) or sum(map(len, strokes)) > MAX_POINTS:
        raise _refused(f"a stroke is a list of points, at most {MAX_POINTS} in all")
    return [[_point(point) for point in stroke] for stroke in strokes if stroke]


def _point(given: Any) -> tuple[float, float]:
    if (
        not isinstance(given, list)
        or len(given) != 2
        or any(isinstance(side, bool) or not isinstance(side, (int, float)) for side in given)
        or not all(abs(side) <= 1e5 for side in given)  # which not-a-number is not either
    ):
        raise _refused("a point is [x, y], two numbers")
    return float(given[0]), float(given[1])


def _example(query: str) -> dict[str, Any]:
    try:
        named = parse_qs(query, max_num_fields=4)
        number = int(named["number"][0])
        label = int(named["digit"][0]) if "digit" in named else None
        return example(number, label)
    except (KeyError, ValueError) as error:
        raise _refused(f"give number=0 and, for one class, digit=7 ({error})") from None
