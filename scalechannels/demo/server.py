"""The demo's server: the standard library's, on the loopback address only.

    GET  /  /style.css  /demo.js      the page; nothing else is ever read from the disk
    GET  /api/settings                scales, sizes
    GET  /api/example?number=&digit=  a built-in digit as pen strokes
    POST /api/drawing                 {"strokes": [[[x, y], …], …]}           → {"digit"}
    POST /api/picture                 an image file                           → {"digit"}
    POST /api/look                    {"digit", "size"}                       → what both networks see and say
    POST /api/sizes                   {"digit"}                               → their verdicts at all sizes
    POST /api/scene                   {"seed", "background"} or an image file → a scene and what is found

Law: every request is answered, a bad one by a status of 400 and above with {"error": what to do}, and none
ends the server. Limits: bodies of 16 MB, as many waiting requests as `answers.WAITING`.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from scalechannels.demo.answers import BadRequestError, Body, Demo, example_asked_for

LOOPBACK = "127.0.0.1"
HOSTS = ("localhost", LOOPBACK, "[::1]")
MAX_JSON, MAX_FILE = 256_000, 16_000_000
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

    do_HEAD = do_GET  # noqa: N815 (the name is http.server's)

    def do_POST(self) -> None:
        self._reply(self._post)

    def _get(self) -> tuple[bytes, str]:
        path, _, query = self.path.partition("?")
        if path in FILES:
            return self.server.files[path]
        if path == "/api/settings":
            return _json(self.server.demo.settings())
        if path == "/api/example":
            return _json(example_asked_for(query))
        raise BadRequestError("there is nothing here; the page is at /", HTTPStatus.NOT_FOUND)

    def _post(self) -> tuple[bytes, str]:
        path = self.path.partition("?")[0]
        kind = self.headers.get_content_type()
        is_file = kind == "application/octet-stream"
        if path not in self.server.demo.answers:
            raise self._unread(HTTPStatus.NOT_FOUND, "there is nothing here; the page is at /")
        # Neither type can be sent by another site's page without the browser asking here first.
        if not is_file and kind != "application/json":
            wanted = "send application/json, or a file as application/octet-stream"
            raise self._unread(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, wanted)
        content = self._body(MAX_FILE if is_file and path in ("/api/picture", "/api/scene") else MAX_JSON)
        return _json(self.server.demo.answer(path, Body(content, is_file)))

    def _body(self, limit: int) -> bytes:
        given = self.headers.get("Content-Length")
        if given is None or self.headers.get("Transfer-Encoding") is not None:
            raise self._unread(HTTPStatus.LENGTH_REQUIRED, "say how long the body is (Content-Length)")
        if not (given.isascii() and given.isdigit()) or len(given) > 15:
            raise self._unread(HTTPStatus.BAD_REQUEST, "Content-Length must be a whole number")
        length = int(given)
        if length > limit:
            wanted = f"the body must have at most {limit:,} bytes; got {length:,}"
            raise self._unread(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, wanted)
        content = self.rfile.read(length)
        if len(content) < length:
            raise self._unread(HTTPStatus.BAD_REQUEST, "the body ended early")
        return content

    def _unread(self, status: HTTPStatus, message: str) -> BadRequestError:
        """An error before the body was read: what is left of it must not be taken for the next request."""
        self.close_connection = True
        return BadRequestError(message, status)

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
                raise self._unread(HTTPStatus.FORBIDDEN, f"this demo is for this machine only, not {host}")

    def log_message(self, format: str, *values: Any) -> None:
        """Quiet: a line for every move of the slider would hide what matters."""


class DemoServer(ThreadingHTTPServer):
    """Listens on the loopback address; `port` 0 takes a free one. Close it with `server_close`."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, demo: Demo, port: int = 0) -> None:
        self.demo = demo
        # Read once: no request names a file.
        self.files = {path: ((PAGE / name).read_bytes(), kind) for path, (name, kind) in FILES.items()}
        super().__init__((LOOPBACK, port), Handler)

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.server_port}/"

    def server_close(self) -> None:
        super().server_close()
        self.demo.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle of an answer is not an error."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


def _json(value: dict[str, Any]) -> tuple[bytes, str]:
    return json.dumps(value, separators=(",", ":")).encode(), "application/json"
