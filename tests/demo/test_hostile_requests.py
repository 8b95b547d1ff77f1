"""Whatever comes, the server answers in its one form or closes, holds little, and stays up."""

import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from helpers.demo_requests import Answer, answers, ask, connect, head, post, raw, read, works

from scalechannels.demo import server as serving
from scalechannels.demo import waiting
from scalechannels.demo.answers import BadRequestError
from scalechannels.demo.server import SAFETY, DemoServer

GET = head("GET /api/settings HTTP/1.1")
FILE = "application/octet-stream"


def only_answer(got: bytes) -> Answer:
    """The refusal that is all that came back: one answer in the demo's form, and the connection closed."""
    (answer,) = answers(got)
    assert answer.headers.items() >= SAFETY.items()
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Connection"] == "close"
    assert answer.error
    return answer


MALFORMED = {
    "nonsense": (b"nonsense\r\n\r\n", 400),
    "a method alone": (b"GET\r\n\r\n", 400),
    "four words": (b"GET / / HTTP/1.1\r\n\r\n", 400),
    "no version": (b"GET / HTP/1.1\r\n\r\n", 400),
    "HTTP/0.9": (b"GET /\r\n\r\n", 505),
    "HTTP/0.9 by POST": (b"POST /\r\n\r\n", 400),
    "HTTP/0.9 by name": (head("GET / HTTP/0.9"), 505),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "HTTP/9.9": (head("GET / HTTP/9.9"), 505),
    "a secure connection": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n", 400),
    "a long path": (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 431),
    "a long header": (head("GET / HTTP/1.1", "A: " + "b" * 70_000), 431),
    "many headers": (head("GET / HTTP/1.1", *["A: b"] * 300), 431),
    "long and many headers": (head("GET / HTTP/1.1", *["A: " + "b" * 1000] * 90), 431),
    "a line that is no header": (head("GET / HTTP/1.1", "nonsense"), 400),
    "a header without a name": (head("GET / HTTP/1.1", ": nameless"), 400),
    "a space in a name": (head("GET / HTTP/1.1", "Content-Length : 5"), 400),
    # The standard library's reader of headers is one of mails: it forgets the line before such a last one.
    "a mail's first line": (head("GET / HTTP/1.1", "Content-Length: 5", "From a mail"), 400),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 403),
    "a form": (
        head("POST /api/look HTTP/1.1", "Content-Type: multipart/form-data", "Content-Length: 0"),
        415,
    ),
    **{
        method: (head(f"{method} / HTTP/1.1"), 501)
        for method in ("PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get", "_reply")
    },
}


@pytest.mark.parametrize(("content", "status"), MALFORMED.values(), ids=MALFORMED)
def test_every_refusal_has_the_form_and_headers_of_all_answers(
    content: bytes, status: int, server: DemoServer, digit: str, capfd: pytest.CaptureFixture[str]
):
    assert only_answer(raw(server, content)).status == status
    assert works(server, digit)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("content", [b"", b"\r\n\r\n", b"\x16\x03\x01", b"GET / HTT"])
def test_what_is_no_request_yet_is_closed_or_refused(content: bytes, server: DemoServer, digit: str):
    got = raw(server, content)
    assert not got or only_answer(got).status == 400
    assert works(server, digit)


def test_answers_that_are_no_refusals_have_the_headers_too(server: DemoServer):
    for path in ("/", "/demo.js", "/api/settings", "/api/example?number=1", "/nowhere"):
        for method in ("GET", "HEAD"):
            (answer,) = answers(raw(server, head(f"{method} {path} HTTP/1.1")), method == "HEAD")
            assert bool(answer.content) == (method == "GET")
            assert answer.headers.items() >= SAFETY.items()
            assert answer.status == (404 if path == "/nowhere" else 200)


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT"])
@pytest.mark.parametrize(
    "headers", [[f"Content-Length: {len(GET)}"], ["Content-Length: 0x5"], ["Transfer-Encoding: chunked"]]
)
def test_a_body_where_none_belongs_is_never_the_next_request(
    method: str, headers: list[str], server: DemoServer, digit: str
):
    got = raw(server, head(f"{method} /api/settings HTTP/1.1", *headers) + GET)
    (answer,) = answers(got, method == "HEAD")
    assert answer.status in (400, 411, 501)
    assert answer.headers["Connection"] == "close"
    assert works(server, digit)


def test_no_body_may_be_said_to_have_no_bytes(server: DemoServer):
    twice = raw(server, head("GET /api/settings HTTP/1.1", "Content-Length: 0") + GET)
    assert [answer.status for answer in answers(twice)] == [200, 200]


@pytest.mark.parametrize("encoding", ["chunked", "identity", "gzip, chunked", ""])
def test_a_transfer_encoding_is_refused_beside_a_length_too(encoding: str, server: DemoServer):
    headers = ("Content-Type: application/json", "Content-Length: 2", f"Transfer-Encoding: {encoding}")
    got = raw(server, head("POST /api/look HTTP/1.1", *headers) + b"{}" + GET)
    assert only_answer(got).status == 411


@pytest.mark.parametrize("name", ["Host", "Origin", "Content-Length", "Content-Type", "content-length"])
def test_what_is_said_twice_is_refused(name: str, server: DemoServer):
    values = {
        "host": "HERE",
        "origin": "http://HERE",
        "content-length": "2",
        "content-type": "application/json",
    }
    lines = [f"{each}: {value}" for each, value in values.items()]
    request = "\r\n".join(("POST /api/look HTTP/1.1", *lines, f"{name}: {values[name.lower()]}", "", "{}"))
    answer = only_answer(raw(server, request.encode()))
    assert answer.status == 400
    assert "once" in answer.error


def test_bodies_are_limited_before_they_are_read(server: DemoServer, digit: str):
    for path, kind, length in (
        ("/api/look", "application/json", 256_001),
        ("/api/picture", FILE, 16_000_001),
        ("/api/look", FILE, 256_001),
        ("/api/scene", "application/json", 10**14),
    ):
        assert only_answer(raw(server, post(path, kind, length))).status == 413
    for length in ("-1", "1e3", "x", "9" * 400, "1 2", "5, 5", "+5", "5_0", "²", ""):
        assert only_answer(raw(server, post("/api/look", "application/json", length))).status == 400
    without = head("POST /api/look HTTP/1.1", "Content-Type: application/json")
    assert only_answer(raw(server, without)).status == 411
    early = only_answer(raw(server, post("/api/look", "application/json", 50) + b"{}"))
    assert "the body ended early" in early.error
    assert works(server, digit)


def test_whoever_is_refused_while_sending_still_reads_why(server: DemoServer):
    with connect(server, post("/api/picture", FILE, 16_000_001)) as connection:
        connection.sendall(bytes(8_000_000))
        assert only_answer(read(connection)).status == 413


def test_a_body_is_asked_for_once_it_is_wanted(server: DemoServer):
    """By a client that waits for it, as curl does with large files."""
    expect = ("Content-Type: application/json", "Expect: 100-continue")
    with connect(server, head("POST /api/look HTTP/1.1", *expect, "Content-Length: 2")) as connection:
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"{}")
        connection.shutdown(socket.SHUT_WR)
        (answer,) = answers(read(connection))
        assert "28x28 bytes" in answer.error
    got = raw(server, head("POST /api/look HTTP/1.1", *expect, "Content-Length: 9999999"))
    assert got.startswith(b"HTTP/1.1 413")


# Who may ask


def test_only_its_own_address_is_served(server: DemoServer):
    """A page of another site may resolve its own name to this machine."""
    port = server.server_port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LocalHost:{port}"):
        assert ask(server, "GET", "/", None, {"Host": host})[0] == 200
    for host in (
        "evil.example",
        f"evil.example:{port}",
        f"127.0.0.1.evil.example:{port}",
        f"127.0.0.1:{port}.evil.example",
        "localhost",
        "127.0.0.1",
        f"127.0.0.1:{port + 1}",
        f"127.0.0.1:0{port}",
        f"[::1]:{port}",
        f"evil@127.0.0.1:{port}",
        f"0.0.0.0:{port}",
        "",
    ):
        status, told = ask(server, "GET", "/", None, {"Host": host})
        assert status == 403
        assert server.address in told["error"]
    assert server.server_address[0] == "127.0.0.1"


def test_only_the_page_of_that_address_may_ask(server: DemoServer, digit: str):
    port, body = server.server_port, {"digit": digit, "size": 1}
    for host in ("127.0.0.1", "localhost"):
        headers = {"Host": f"{host}:{port}", "Origin": f"http://{host}:{port}"}
        assert ask(server, "POST", "/api/look", body, headers)[0] == 200
    for origin in (
        "null",
        "",
        "https://evil.example",
        f"https://127.0.0.1:{port}",
        "http://127.0.0.1",
        f"http://127.0.0.1:{port + 1}",
        f"http://localhost:{port}",
        f"http://127.0.0.1:{port}/",
        f"http://127.0.0.1:{port}.evil.example",
        f"http://evil.example@127.0.0.1:{port}",
        f"x://127.0.0.1:{port}",
        f"127.0.0.1:{port}",
        "http://[::1",
    ):
        assert ask(server, "POST", "/api/look", body, {"Origin": origin})[0] == 403
        assert ask(server, "GET", "/", None, {"Origin": origin})[0] == 403
    assert ask(server, "POST", "/api/look", json.dumps(body), {"Content-Type": "text/plain"})[0] == 415


def test_other_sites_may_lead_here_but_use_nothing(server: DemoServer):
    """What a page shows without reading it, such as an image, is asked for without an origin."""
    for site in ("cross-site", "same-site"):
        headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
        assert ask(server, "GET", "/api/settings", None, headers)[0] == 403
        assert ask(server, "GET", "/", None, {**headers, "Sec-Fetch-Mode": "navigate"})[0] == 200
    for site in ("same-origin", "none"):
        assert ask(server, "GET", "/api/settings", None, {"Sec-Fetch-Site": site})[0] == 200


# How much is held, and how long


@pytest.fixture
def slow(server: DemoServer) -> Iterator[Callable[[bytes], socket.socket]]:
    """Connections that stay open until the end of the test."""
    opened = []

    def sent(content: bytes) -> socket.socket:
        opened.append(connect(server, content))
        return opened[-1]

    yield sent
    for connection in opened:
        connection.close()


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether it comes to hold: the server's threads take their time on a busy machine."""
    end = time.monotonic() + 20
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def answered(connections: list[socket.socket]) -> list[socket.socket]:
    """Those on which something came, if only the end."""
    return select.select(connections, [], [], 0)[0]


def test_unfinished_large_bodies_hold_a_bounded_memory(slow, server: DemoServer, digit: str):
    sent = [slow(post("/api/picture", FILE, 16_000_000) + b"x") for _ in range(8)]
    assert 4 * 16_000_000 <= waiting.LARGE == 64_000_000
    assert eventually(lambda: len(answered(sent)) == 4)
    refused = answered(sent)
    held = [connection for connection in sent if connection not in refused]
    for connection in refused:
        assert only_answer(read(connection)).status == 503
    assert works(server, digit)  # small ones have room beside them
    assert not answered(held)
    for connection in held:
        connection.shutdown(socket.SHUT_WR)
        assert only_answer(read(connection)).status == 400  # it ended early
    again = slow(post("/api/picture", FILE, 16_000_000) + b"x")
    again.shutdown(socket.SHUT_WR)
    assert only_answer(read(again)).status == 400  # there is room again: it was not refused


def test_unfinished_bodies_count_as_requests(
    slow, server: DemoServer, digit: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(waiting, "WAITING", 2)
    first, second = (slow(post("/api/look", "application/json", 9) + b"{") for _ in range(2))
    assert eventually(lambda: server.waiting.requests == 2)
    assert not answered([first, second])
    status, told = ask(server, "POST", "/api/look", {"digit": digit, "size": 2})
    assert (status, "too many requests" in told["error"]) == (503, True)
    assert ask(server, "GET", "/api/settings")[0] == 200
    first.sendall(bytes(8))
    assert b" 400 " in first.recv(9999)
    assert works(server, digit)


def test_a_request_is_held_until_it_is_answered(server: DemoServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(waiting, "WAITING", 1)
    begun, go = threading.Event(), threading.Event()

    def slow_answer(body: object) -> dict:
        begun.set()
        go.wait(20)
        return {}

    server.demo.answers["/api/look"] = slow_answer
    with connect(server, post("/api/look", "application/json", 2) + b"{}") as connection:
        assert begun.wait(20)
        assert ask(server, "POST", "/api/look", {})[0] == 503
        go.set()
        assert connection.recv(9999).startswith(b"HTTP/1.1 200")
    assert ask(server, "POST", "/api/look", {})[0] == 200


def test_whatever_ends_a_request_gives_its_place_back():
    held = waiting.Waiting()
    for _ in range(2 * waiting.WAITING):
        with pytest.raises(OSError, match="gone"), held.held(waiting.LARGE):
            raise OSError("gone")
    with held.held(waiting.LARGE), held.held(waiting.SMALL):
        refused = held.held(waiting.SMALL + 1)
        with pytest.raises(BadRequestError, match="too many requests"):
            refused.__enter__()


@pytest.mark.parametrize("whole", [False, True])
def test_a_body_has_a_time_for_all_of_it(
    whole: bool, slow, server: DemoServer, digit: str, monkeypatch: pytest.MonkeyPatch
):
    """Not only between two bytes."""
    monkeypatch.setattr(serving, "BODY_SECONDS", 20 if whole else 0.6)
    body = json.dumps({"digit": digit, "size": 2}).encode()
    connection = slow(post("/api/look", "application/json", len(body)) + body[:-10])
    for byte in body[-10:]:
        connection.sendall(bytes([byte]))
        time.sleep(0.1)
    if whole:
        assert connection.recv(9999).startswith(b"HTTP/1.1 200")
    else:
        assert only_answer(read(connection)).status == 408
    assert works(server, digit)


def test_a_head_has_a_time_for_all_of_it(
    slow, server: DemoServer, digit: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(serving, "HEAD_SECONDS", 0.6)
    monkeypatch.setattr(serving, "FAREWELL_SECONDS", 0.1)
    connection = slow(b"GET / HTTP/1.1\r\n")
    started = time.monotonic()
    with suppress(ConnectionError):
        while time.monotonic() < started + 10:
            connection.sendall(b"A: b\r\n")
            time.sleep(0.1)
    assert time.monotonic() < started + 5
    assert works(server, digit)


def test_an_answer_has_a_time_for_all_of_it(server: DemoServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(serving, "ANSWER_SECONDS", 0.5)
    server.files["/"] = (bytes(50_000_000), "text/html")
    got = 0
    with connect(server, head("GET / HTTP/1.1")) as connection, suppress(ConnectionError):
        for pause in (*[0.1] * 20, *[0] * 100_000):  # slowly, then all that is left
            piece = connection.recv(100_000)
            got += len(piece)
            if not piece:
                break
            time.sleep(pause)
    assert 0 < got < 50_000_000


def test_connections_are_counted(slow, server: DemoServer, digit: str):
    before = threading.active_count()
    open_ones = [slow(b"GET") for _ in range(serving.CONNECTIONS)]
    for _ in range(3):
        refused = only_answer(read(slow(b"")))
        assert (refused.status, "connections" in refused.error) == (503, True)
    assert threading.active_count() <= before + serving.CONNECTIONS
    for connection in open_ones:
        connection.close()
    end = time.monotonic() + 20
    while ask(server, "GET", "/api/settings")[0] == 503:
        assert time.monotonic() < end
    assert works(server, digit)
