"""The server answers every request, a bad one by its reason, and stays up."""

import http.client
import io
import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.demo_requests import FILE, JSON, ask, connect, post, works
from helpers.pictures import tiff
from PIL import Image

from scalechannels import ScaleGrid, cnn, fovlse
from scalechannels.cli import main
from scalechannels.demo.answers import Body
from scalechannels.demo.server import FILES, PAGE, DemoServer


def test_the_page_needs_nothing_from_elsewhere(server: DemoServer):
    for path in FILES:
        status, content = ask(server, "GET", path)
        assert status == 200
        text = content.decode()
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
        assert "@import" not in text
        for word in re.findall(r"""(?:src|href)="([^"]+)\"""", text):
            assert f"/{word}" in FILES or word == "data:,"
    assert ask(server, "HEAD", "/") == (200, b"")


def test_a_drawing_is_looked_at_in_every_size(server: DemoServer, digit: str):
    for size in (0.5, 1, 8):
        status, seen = ask(server, "POST", "/api/look", {"digit": digit, "size": size})
        assert status == 200
        assert seen["size"] == size
        assert 0 <= seen["plain"]["digit"] <= 9
    status, said = ask(server, "POST", "/api/sizes", {"digit": digit})
    assert (status, len(said["plain"])) == (200, 17)
    status, told = ask(server, "GET", "/api/settings")
    assert (status, told["scales"], told["trained"]) == (200, [0.5, 1, 2, 4, 8], [2.0])
    assert told["detector"]["digits"] is True
    status, made = ask(server, "GET", "/api/example?number=3&digit=8")
    assert (status, made["label"]) == (200, 8)


def test_pictures_and_scenes(server: DemoServer):
    buffer = io.BytesIO()
    picture = np.full((90, 120), 240, np.uint8)
    picture[30:60, 50:60] = 10
    Image.fromarray(picture).save(buffer, "PNG")
    status, made = ask(server, "POST", "/api/picture", buffer.getvalue(), FILE)
    assert (status, len(made["digit"])) == (200, 1048)
    status, found = ask(server, "POST", "/api/scene", buffer.getvalue(), FILE)
    assert (status, found["width"], found["height"], found["truth"]) == (200, 120, 90, None)
    assert found["found"] == [{"box": [10, 20, 66, 76], "class": "3", "probability": 0.9877, "size": 2.0}]
    for background in ("plain", "noisy", "textured"):
        status, found = ask(server, "POST", "/api/scene", {"seed": 5, "background": background})
        assert (status, len(found["truth"])) == (200, 12)
        assert found["picture"].startswith("data:image/png;base64,")


def test_a_picture_of_any_mode_is_one(server: DemoServer, digit: str):
    """One in LAB was the only fault of the demo."""
    lab = np.full((90, 120, 3), 128, np.uint8)
    lab[..., 0] = 240
    lab[30:60, 50:60, 0] = 10
    status, made = ask(server, "POST", "/api/picture", tiff(lab, photometric=8), FILE)
    assert (status, len(made["digit"])) == (200, 1048)
    status, found = ask(server, "POST", "/api/scene", tiff(lab, photometric=8), FILE)
    assert (status, found["width"], found["height"]) == (200, 120, 90)
    signed = tiff(lab[..., :1].astype(np.int32))
    for path in ("/api/picture", "/api/scene"):
        status, told = ask(server, "POST", path, signed, FILE)
        assert (status, "signed integers" in told["error"]) == (422, True)
    assert works(server, digit)


def test_a_large_picture_is_reduced_before_it_is_searched(server: DemoServer):
    buffer = io.BytesIO()
    Image.fromarray(np.eye(2048, 512, dtype=np.uint8) * 255).save(buffer, "PNG")
    status, found = ask(server, "POST", "/api/scene", buffer.getvalue(), FILE)
    assert (status, found["height"], found["width"]) == (200, 1024, 256)


GOOD = "A" * 1044 + "AA=="
BAD_JSON: list[tuple[str, Any, str]] = [
    ("/api/look", {"digit": GOOD, "size": 0.4}, "size must be a number from 0.5 to 8"),
    ("/api/look", {"digit": GOOD, "size": 9}, "size must be a number"),
    ("/api/look", {"digit": GOOD, "size": "2"}, "size must be a number"),
    ("/api/look", {"digit": GOOD, "size": True}, "size must be a number"),
    ("/api/look", {"digit": GOOD, "size": float("nan")}, "size must be a number"),
    ("/api/look", {"digit": GOOD, "size": 10**400}, "size must be a number"),
    ("/api/look", {"digit": GOOD}, "size must be a number"),
    ("/api/look", {"size": 1}, "28x28 bytes"),
    ("/api/look", {"digit": "AAAA", "size": 1}, "28x28 bytes"),
    ("/api/look", {"digit": "é" * 1048, "size": 1}, "28x28 bytes"),
    ("/api/look", {"digit": [1], "size": 1}, "28x28 bytes"),
    ("/api/look", [1, 2], "JSON object"),
    ("/api/sizes", {}, "28x28 bytes"),
    ("/api/drawing", {}, "list of at most 64 strokes"),
    ("/api/drawing", {"strokes": [[[0, 0]]] * 65}, "at most 64"),
    ("/api/drawing", {"strokes": [[[0, 0]] * 4001]}, "at most 4000"),
    ("/api/drawing", {"strokes": [7]}, "list of points"),
    ("/api/drawing", {"strokes": [[[0]]]}, "two numbers"),
    ("/api/drawing", {"strokes": [[[0, "a"]]]}, "two numbers"),
    ("/api/drawing", {"strokes": [[[0, float("inf")]]]}, "two numbers"),
    ("/api/drawing", {"strokes": [[[0, 10**400]]]}, "two numbers"),
    ("/api/drawing", {"strokes": []}, "nothing is drawn"),
    ("/api/scene", {"seed": -1}, "seed must be a number"),
    ("/api/scene", {"seed": 1, "background": "green"}, "background must be one of plain"),
    ("/api/scene", {"seed": 1, "background": ["plain"]}, "background must be one of plain"),
]


@pytest.mark.parametrize(("path", "body", "message"), BAD_JSON)
def test_bad_values_are_named(path: str, body: Any, message: str, server: DemoServer, digit: str):
    status, told = ask(server, "POST", path, body)
    assert status in (400, 422)
    assert message in told["error"]
    assert works(server, digit)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"nul", b"1" * 5000])
def test_what_is_no_json_is_named(text: bytes, server: DemoServer, digit: str):
    for path in ("/api/look", "/api/drawing", "/api/scene"):
        status, told = ask(server, "POST", path, text, JSON)
        assert status == 400
        assert "JSON" in told["error"]
    assert works(server, digit)


def test_pictures_that_are_none_are_named(server: DemoServer, digit: str):
    blank, bomb = io.BytesIO(), io.BytesIO()
    Image.new("L", (40, 40), 128).save(blank, "PNG")
    Image.new("1", (20_000, 20_000)).save(bomb, "PNG")
    for content, message in (
        (b"", "empty"),
        (b"text", "damaged, or not an image"),
        (blank.getvalue(), "no digit"),
        (bomb.getvalue(), "more than 24,000,000"),
    ):
        status, told = ask(server, "POST", "/api/picture", content, FILE)
        assert status == 422
        assert message in told["error"]
    status, found = ask(server, "POST", "/api/scene", blank.getvalue(), FILE)
    assert (status, found["found"]) == (200, [])  # a scene without any object has none
    assert works(server, digit)


@pytest.mark.parametrize(
    "path",
    [
        "/server.py",
        "/../server.py",
        "/..%2fserver.py",
        "/%2e%2e/%2e%2e/pyproject.toml",
        "//etc/passwd",
        "/page/index.html",
        "/style.css/../../server.py",
        "/index.html%00",
        "/api/look",
        "/api/",
    ],
)
def test_no_path_leads_outside(path: str, server: DemoServer):
    status, told = ask(server, "GET", path)
    assert status == 404
    assert "error" in told
    assert {name for name, _ in FILES.values()} == {file.name for file in PAGE.iterdir()}


@pytest.mark.parametrize(
    "query", ["", "number=x", "number=-1", "number=1&digit=10", "number=" + "9" * 5000, "a=1&b&c&d&e&f"]
)
def test_bad_queries_are_named(query: str, server: DemoServer):
    status, told = ask(server, "GET", f"/api/example?{query}")
    assert status == 400
    assert "number=0" in told["error"]


def test_one_connection_carries_many_requests(server: DemoServer, digit: str):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    for size in (1, 99, 2):  # an error in between does not end it
        connection.request("POST", "/api/look", json.dumps({"digit": digit, "size": size}), JSON)
        first = connection.sock
        reply = connection.getresponse()
        reply.read()
        assert reply.status == (400 if size == 99 else 200)
        assert connection.sock is first
    connection.close()


def test_many_users_at_once_get_their_own_answers(server: DemoServer):
    digits = [
        ask(server, "POST", "/api/drawing", {"strokes": [[[0, 0], [1, number / 8]]]})[1]["digit"]
        for number in range(8)
    ]
    expected = [ask(server, "POST", "/api/look", {"digit": one, "size": 2})[1] for one in digits]
    with ThreadPoolExecutor(8) as users:
        got = list(
            users.map(lambda one: ask(server, "POST", "/api/look", {"digit": one, "size": 2})[1], digits * 4)
        )
    assert got == expected * 4


def test_a_fault_is_told_and_leaves_it_up(server: DemoServer, digit: str, capfd):
    def broken(body: Body) -> dict:
        raise RuntimeError("broken on purpose")

    server.demo.answers["/api/sizes"] = broken
    status, told = ask(server, "POST", "/api/sizes", {"digit": digit})
    assert status == 500
    assert "purpose" not in told["error"]
    assert "broken on purpose" in capfd.readouterr().err
    assert works(server, digit)


def test_whoever_goes_away_is_no_fault(server: DemoServer, digit: str, capfd):
    body = json.dumps({"digit": digit, "size": 1}).encode()
    for _ in range(5):
        connection = connect(server, post("/api/look", "application/json", len(body)) + body)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        connection.close()  # a reset, not an orderly end
    assert works(server, digit)
    assert "Traceback" not in capfd.readouterr().err


# The command


def test_the_command_says_what_a_user_can_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], server: DemoServer
):
    monkeypatch.chdir(tmp_path)
    fovlse(ScaleGrid.of(1, 2)).save_pretrained("net")
    cnn().save_pretrained("plain")
    good = ("--network", "net", "--plain", "plain")
    for words, message in (
        (("--network", "nowhere", "--plain", "plain"), "'nowhere' is neither a folder nor a shipped network"),
        (
            ("--network", "plain", "--plain", "plain"),
            "--network must be a scale-channel network; 'plain' is a plain CNN",
        ),
        ((*good, "--port", "70000"), "--port must be from 0 to 65535; got '70000'"),
        ((*good, "--port", str(server.server_port)), "choose another --port"),
        ((*good, "--detector", "plain"), "'plain' holds no detector: the network"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["demo", *words])
        assert ended.value.code == 1
        said = capsys.readouterr()
        assert said.err.startswith("error: ")
        assert message in said.err
        assert said.err.count("\n") == 1
        assert said.out == ""


def test_the_command_serves_until_it_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    fovlse(ScaleGrid.of(1, 2)).save_pretrained(tmp_path / "net")
    cnn().save_pretrained(tmp_path / "plain")
    asked = []

    def serve(self: DemoServer) -> None:
        asked.append(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(DemoServer, "serve_forever", serve)
    main(["demo", "--network", str(tmp_path / "net"), "--plain", str(tmp_path / "plain"), "--port", "0"])
    said = capsys.readouterr()
    assert re.fullmatch(
        r"The demo: http://127\.0\.0\.1:\d+/ \(press Ctrl-C to stop the server\)\n\nstopped\n", said.out
    )
    assert asked[0].socket.fileno() == -1  # the port is free again
