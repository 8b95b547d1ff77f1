"""The demo's server: the standard library's, on the loopback address only.

    GET  /  /style.css  /demo.js      the page; nothing else is ever read from the disk
    GET  /api/settings                scales, sizes, the detector's classes and threshold
    GET  /api/example?number=&digit=  a built-in digit as pen strokes
    POST /api/drawing                 {"strokes": [[[x, y], …], …]}           → {"digit"}
    POST /api/picture                 an image file                           → {"digit"}
    POST /api/look                    {"digit", "size", "down", "right"}      → what both networks see and say
    POST /api/sizes                   {"digit", "down", "right"}              → their verdicts at all sizes
    POST /api/scene                   {"seed", "background"} or an image file → a scene and what is found

Law: every request is answered, a bad one by a status of 400 and above with {"error": what to do}, or its
connection is closed, and none ends the server. Every answer carries the headers of SAFETY. Only the page that
is served here may ask. Limits: bodies of 16 MB, so many connections, bytes and seconds as stand below and in
`waiting.py`.
"""

from __future__ import annotations

import io
import json
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from scalechannels.demo.answers import BadRequestError, Body, Demo, example_asked_for
from scalechannels.demo.incoming import Incoming, TooLongError
from scalechannels.demo.waiting import SMALL, Waiting

LOOPBACK = "127.0.0.1"
CONNECTIONS = 64
MAX_HEAD, MAX_JSON, MAX_FILE = 64_000, SMALL, 16_000_000
HEAD_SECONDS, BODY_SECONDS, ANSWER_SECONDS, FAREWELL_SECONDS = 30.0, 60.0, 30.0, 1.0
"""Each for all of it, not between two bytes; a head's begin with the end of the answer before."""
PAGE = Path(__file__).parent / "page"
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    "/demo.js": ("demo.js", "text/javascript; charset=utf-8"),
    "/answers.js": ("answers.js", "text/javascript; charset=utf-8"),
}
SAFETY = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
ONCE = ("Host", "Origin", "Sec-Fetch-Site", "Content-Length", "Content-Type")


class Headers(HTTPMessage):
    """Headers alone: the type of a form must not make the standard library look for its parts in them."""

    def get_content_maintype(self) -> str:
        return "text"


class Handler(BaseHTTPRequestHandler):
    """One connection, which may carry many requests."""

    protocol_version = "HTTP/1.1"  # the connection stays open from one move of the slider to the next
    server_version, sys_version = "scalechannels", ""
    # Sent at once: else the body waits 40 ms for the receipt of the head.
    disable_nagle_algorithm = True
    MessageClass = Headers
    server: DemoServer

    def setup(self) -> None:
        super().setup()
        self.incoming = Incoming(self.connection)
        self.rfile = io.BufferedReader(self.incoming)

    def handle_one_request(self) -> None:
        self.command = self.requestline = ""
        self.incoming.allow(HEAD_SECONDS, MAX_HEAD)
        try:
            super().handle_one_request()
        except TooLongError:
            wanted = f"the head of a request must have at most {MAX_HEAD:,} bytes"
            self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, wanted)

    def parse_request(self) -> bool:
        """Whether the head that comes is that of a request to answer; if not, this was told."""
        if not super().parse_request():
            return False
        try:
            self._require_clear_head()
            self._require_own_page()
        except BadRequestError as error:
            self.send_error(error.status, str(error))
            return False
        return True

    def handle_expect_100(self) -> bool:
        """Whoever waits to be asked for the body is asked in `_body`, once it is known to be wanted."""
        return True

    def do_GET(self) -> None:
        self._reply(self._get)

    do_HEAD = do_GET  # noqa: N815 (the name is http.server's)

    def do_POST(self) -> None:
        self._reply(self._post)

    def _require_clear_head(self) -> None:
        """A head that can be read in one way only, above all where its request ends."""
        if self.request_version not in ("HTTP/1.0", "HTTP/1.1"):
            raise BadRequestError("use HTTP/1.1", HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
        # What the standard library cannot read it keeps as a text after the headers.
        if self.headers.defects or self.headers.get_payload():
            raise BadRequestError("a header must be a line 'Name: value'")
        for name in ONCE:
            if len(self.headers.get_all(name, ())) > 1:
                raise BadRequestError(f"the header {name} must be given once")
        if "Transfer-Encoding" in self.headers:
            wanted = "say how long the body is (Content-Length); Transfer-Encoding is not read here"
            raise BadRequestError(wanted, HTTPStatus.LENGTH_REQUIRED)
        if self.command in ("GET", "HEAD") and self.headers.get("Content-Length", "0") != "0":
            raise BadRequestError(f"a request by {self.command} must have no body")

    def _require_own_page(self) -> None:
        """Asked from the page, or by its address. Other sites may give this machine a name of theirs."""
        host = self.headers.get("Host", "").lower()
        if host not in self.server.names:
            raise self._foreign(f"asked for {host or 'no host'}")
        origin = self.headers.get("Origin")
        if origin not in (None, f"http://{host}"):
            raise self._foreign(f"asked from {origin}")
        # Browsers say no origin where a page only shows what it asks for, as an image. A link may lead here.
        site, mode = (self.headers.get(f"Sec-Fetch-{name}") for name in ("Site", "Mode"))
        if site not in (None, "same-origin", "none") and mode != "navigate":
            raise self._foreign(f"asked from another site ({site})")

    def _foreign(self, why: str) -> BadRequestError:
        return BadRequestError(f"this demo is only for {self.server.address}; {why}", HTTPStatus.FORBIDDEN)

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
        self.close_connection, asked = True, self.close_connection  # until the body is read to its end
        path = self.path.partition("?")[0]
        kind = self.headers.get_content_type()
        is_file = kind == "application/octet-stream"
        if path not in self.server.demo.answers:
            raise BadRequestError("there is nothing here; the page is at /", HTTPStatus.NOT_FOUND)
        # Neither type can be sent by another site's page without the browser asking here first.
        if not is_file and kind != "application/json":
            wanted = "send application/json, or a file as application/octet-stream"
            raise BadRequestError(wanted, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        length = self._length(MAX_FILE if is_file and path in ("/api/picture", "/api/scene") else MAX_JSON)
        with self.server.waiting.held(length):
            body = Body(self._body(length), is_file)
            self.close_connection = asked
            return _json(self.server.demo.answer(path, body))

    def _length(self, limit: int) -> int:
        given = self.headers.get("Content-Length")
        if given is None:
            raise BadRequestError("say how long the body is (Content-Length)", HTTPStatus.LENGTH_REQUIRED)
        if not (given.isascii() and given.isdigit()) or len(given) > 15:
            raise BadRequestError("Content-Length must be a whole number")
        if int(given) > limit:
            wanted = f"the body must have at most {limit:,} bytes; got {int(given):,}"
            raise BadRequestError(wanted, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return int(given)

    def _body(self, length: int) -> bytes:
        if self.headers.get("Expect", "").lower() == "100-continue":
            super().handle_expect_100()
        self.incoming.allow(BODY_SECONDS, length)
        try:
            content = self.rfile.read(length)
        except TimeoutError:
            wanted = f"the body must come within {BODY_SECONDS:g} seconds"
            raise BadRequestError(wanted, HTTPStatus.REQUEST_TIMEOUT) from None
        if len(content) < length:
            raise BadRequestError("the body ended early")
        return content

    def _reply(self, answer: Callable[[], tuple[bytes, str]]) -> None:
        try:
            self._send(HTTPStatus.OK, *answer())
        except BadRequestError as error:
            self._send(error.status, *_json({"error": str(error)}))
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception:
            traceback.print_exc(file=sys.stderr)
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, "a fault of the demo; its terminal shows where")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """The base class's own refusals too: what is left of the request must not be taken for the next."""
        self.close_connection = True
        status = HTTPStatus(code)
        self._send(status, *_json({"error": message or status.phrase}))

    def _send(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        self.connection.settimeout(ANSWER_SECONDS)
        self.request_version = self.protocol_version  # to what it takes for HTTP/0.9 the base sends no head
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

    def finish(self) -> None:
        """Whoever is still sending reads the answer first: closed at once, the connection would be reset."""
        self.incoming.allow(FAREWELL_SECONDS, MAX_FILE)
        with suppress(TooLongError, OSError):
            self.connection.shutdown(socket.SHUT_WR)
            while self.incoming.read(2**16):
                pass
        super().finish()

    def log_message(self, format: str, *values: Any) -> None:
        """Quiet: a line for every move of the slider would hide what matters."""


class Refused(Handler):
    """A connection more than there may be."""

    def handle(self) -> None:
        self.command = self.requestline = ""
        self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections at once; try again")

    def finish(self) -> None:
        """At once: nobody else is let in meanwhile."""


class DemoServer(ThreadingHTTPServer):
    """Listens on the loopback address; `port` 0 takes a free one. Close it with `server_close`."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, demo: Demo, port: int = 0) -> None:
        self.demo, self.waiting = demo, Waiting()
        self.places = threading.BoundedSemaphore(CONNECTIONS)
        # Read once: no request names a file.
        self.files = {path: ((PAGE / name).read_bytes(), kind) for path, (name, kind) in FILES.items()}
        super().__init__((LOOPBACK, port), Handler)
        # As browsers say it: without the port where it is HTTP's own.
        written = "" if self.server_port == 80 else f":{self.server_port}"
        self.names = {f"{host}{written}" for host in (LOOPBACK, "localhost")}

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.server_port}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        if self.places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            Refused(request, client_address, self)
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.release()

    def server_close(self) -> None:
        super().server_close()
        self.demo.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle of an answer is not an error."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


def _json(value: dict[str, Any]) -> tuple[bytes, str]:
    return json.dumps(value, separators=(",", ":")).encode(), "application/json"
