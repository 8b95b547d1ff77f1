"""Whatever bytes are sent, the server answers or closes, without a fault, and is right to the next user.

EXAMPLES=10000 pytest tests/demo/test_fuzzed_requests.py tries more than an ordinary run.
"""

import json
import socket
from contextlib import suppress
from typing import Any

import pytest
from helpers.any_request import any_bytes
from helpers.demo_requests import SEVEN, answers, ask, connect, read
from helpers.fuzzing import examples
from hypothesis import event, given

from scalechannels.demo.server import SAFETY, DemoServer


def refuse_constant(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")


@pytest.mark.slow
@examples(300)
@given(sent=any_bytes())
def test_whatever_is_sent(sent: bytes, server: DemoServer, digit: str, capfd: pytest.CaptureFixture[str]):
    got = b""
    with connect(server, b"") as connection, suppress(ConnectionError):
        connection.sendall(sent.replace(b"HERE", f"127.0.0.1:{server.server_port}".encode()))
        connection.shutdown(socket.SHUT_WR)
        got = read(connection)
    assert "Traceback" not in capfd.readouterr().err
    for answer in answers(got, may_be_to_head=b"HEAD" in sent):
        event(f"answered {answer.status}")  # counted by --hypothesis-show-statistics
        assert answer.status < 500 or answer.status in (501, 505)  # not implemented, or not this HTTP
        assert answer.headers.items() >= SAFETY.items()
        if answer.content and answer.headers["Content-Type"] == "application/json":
            told = json.loads(answer.content, parse_constant=refuse_constant)
            assert (answer.status == 200) != ("error" in told)
    assert ask(server, "POST", "/api/drawing", SEVEN) == (200, {"digit": digit})
