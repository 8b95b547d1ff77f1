"""The page without a server says what the server says, and its folder is written whole or not at all."""

import base64
import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.command_line import run
from helpers.demo_requests import SEVEN
from PIL import Image, ImageDraw

from scalechannels import ScaleChannelNetwork
from scalechannels.data.sizes import MNIST_SIZES
from scalechannels.demo import without_server
from scalechannels.demo.answers import BadRequestError, Body, Demo, example_asked_for
from scalechannels.demo.looks import Looks
from scalechannels.demo.without_server import BROWSER, EXAMPLES, ONNXRUNTIME_WEB, write_static_demo

Answer = Callable[..., Any]


@pytest.fixture(scope="module")
def page(browser: Any, static_demo: str) -> Iterator[Any]:
    opened = browser.new_page()
    opened.goto(static_demo)
    opened.wait_for_selector("body[data-ready]", timeout=120_000)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def in_browser(page: Any) -> Answer:
    """What the page's own script is answered; a file is given as bytes."""

    def answered(path: str, given: Any = None) -> Any:
        is_file = isinstance(given, bytes)
        return page.evaluate(
            """async ([path, given, isFile]) => {
              const { answer } = await import(new URL("answers.js", document.baseURI).href);
              const sent = isFile ? new File([Uint8Array.from(given)], "any") : given ?? undefined;
              return answer(path, sent).catch((error) => ({ error: error.message }));
            }""",
            [path, list(given) if is_file else given, is_file],
        )

    return answered


@pytest.fixture(scope="module")
def on_server(shipped: Looks) -> Iterator[Answer]:
    demo = Demo(shipped)

    def answered(path: str, given: Any) -> Any:
        is_file = isinstance(given, bytes)
        body = Body(given if is_file else json.dumps(given).encode(), is_file)
        try:
            return demo.answer(f"/{path}", body)
        except BadRequestError as error:
            return {"error": str(error)}

    yield answered
    demo.close()


def drawings(count: int = 60) -> list[list[list[list[float]]]]:
    """Built-in digits, a dot, a bar, and scribbles of few and of many points."""
    random = np.random.default_rng(0)
    drawn = [example_asked_for(f"number={number}")["strokes"] for number in range(20)]
    drawn += [[[[0.3, 0.4]]], [[[0.5, 0.1], [0.5, 0.9]]], [[[0, 0], [5e-324, 0]]], SEVEN["strokes"]]
    while len(drawn) < count:
        steps = random.integers(1, 60)
        drawn.append(
            [random.uniform(0, 1, (steps, 2)).round(4).tolist() for _ in range(random.integers(1, 4))]
        )
    return drawn


@pytest.mark.slow
def test_a_drawing_becomes_the_same_digit_bit_by_bit(in_browser: Answer, on_server: Answer):
    for strokes in drawings():
        given = {"strokes": strokes}
        assert in_browser("api/drawing", given) == on_server("api/drawing", given)


def difference(ours: Any, theirs: Any) -> float:
    return float(np.abs(np.array(ours) - np.array(theirs)).max())


def shown(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), np.uint8).astype(int)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_what_is_seen_and_said_is_what_the_server_says(number: int, in_browser: Answer, on_server: Answer):
    digit = in_browser("api/drawing", {"strokes": drawings()[5 * number]})["digit"]
    chosen = set()
    for size in (0.5, 0.61, 1, 1.7, 2, 2.83, 4, 5.5, 8):
        given = {"digit": digit, "size": size, **({"down": -9, "right": 14} if size in (1, 4) else {})}
        ours, theirs = in_browser("api/look", given), on_server("api/look", given)
        assert set(ours) == set(theirs)
        for name in ("selected", "at_edge", "off", "place"):
            assert ours[name] == theirs[name]
        for who in ("verdict", "plain"):
            assert ours[who]["digit"] == theirs[who]["digit"]
            assert difference(ours[who]["probabilities"], theirs[who]["probabilities"]) < 1.01e-4
        assert difference(ours["contributions"], theirs["contributions"]) < 1.01e-4
        assert difference(ours["logits"], theirs["logits"]) < 2e-3
        for name in ("picture", "windows"):
            off = np.abs(shown(ours[name]) - shown(theirs[name]))
            assert off.max() <= 1
            assert off.mean() < 0.01  # a rounding here and there
        chosen.add(ours["selected"])
    assert len(chosen) > 4
    for given in ({"digit": digit}, {"digit": digit, "down": 20, "right": -3}):
        assert in_browser("api/sizes", given) == on_server("api/sizes", given)


def picture(kind: str) -> bytes:
    """Pictures of a digit whose values every reader agrees on."""
    values = {"small": (0, 255, 12), "large": (255, 12, 900), "faint": (120, 150, 240)}[kind]
    paper, ink, side = values
    made = Image.new("L", (side, side * 4 // 5 + 1), paper)
    pen = ImageDraw.Draw(made)
    for stroke in SEVEN["strokes"]:
        pen.line([(0.8 * side * x, 0.7 * side * y) for x, y in stroke], fill=ink, width=max(1, side // 12))
    if kind == "faint":
        noise = np.random.default_rng(0).integers(-4, 5, (made.height, made.width))
        made = Image.fromarray((np.asarray(made) + noise).astype(np.uint8))
    return file_of(made)


def file_of(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["small", "large", "faint", "coloured", "transparent"])
def test_a_picture_becomes_the_same_digit(kind: str, in_browser: Answer, on_server: Answer):
    if kind in ("coloured", "transparent"):
        grey = Image.open(io.BytesIO(picture("large")))
        planes = [grey, grey.point(lambda value: value // 2), grey.point(lambda value: 255 - value // 3)]
        image = Image.merge("RGB", planes)
        if kind == "transparent":
            image.putalpha(grey.point(lambda value: 255 if value < 128 else 0))
            image.paste("white", (20, 20, 90, 700))  # nothing is seen of it over white
        file = file_of(image)
    else:
        file = picture(kind)
    ours, theirs = in_browser("api/picture", file), on_server("api/picture", file)
    assert shown(theirs["digit"]).max() > 200
    assert ours == theirs


@pytest.mark.slow
def test_what_cannot_be_answered_is_said_as_the_server_says_it(in_browser: Answer, on_server: Answer):
    for path, given in (
        ("api/drawing", {"strokes": []}),
        ("api/picture", b"no image"),
        ("api/picture", b""),
        ("api/picture", file_of(Image.new("L", (30, 20), 77))),
        ("api/picture", file_of(Image.new("1", (6000, 4001)))),
    ):
        ours, theirs = in_browser(path, given)["error"], on_server(path, given)["error"]
        assert ours.rstrip(".").lower() == theirs.rstrip(".").lower()


@pytest.mark.slow
def test_built_in_digits_are_the_servers(in_browser: Answer):
    for number, label in ((0, 0), (3, 7), (EXAMPLES - 1, 9)):
        asked = f"number={number}&digit={label}"
        assert in_browser(f"api/example?{asked}") == example_asked_for(asked)
    labels = {in_browser(f"api/example?number={number}")["label"] for number in range(0, 400, 7)}
    assert labels == set(range(10))


@pytest.mark.slow
def test_a_move_is_not_kept_waiting_by_the_strip_of_all_sizes(page: Any, in_browser: Answer):
    """While the strip's seventeen sizes are being answered, a look comes in between."""
    digit = in_browser("api/drawing", SEVEN)["digit"]
    order = page.evaluate(
        """async (digit) => {
          const { answer } = await import(new URL("answers.js", document.baseURI).href), order = [];
          await Promise.all([
            answer("api/sizes", { digit }).then(() => order.push("sizes")),
            answer("api/look", { digit, size: 2 }).then(() => order.push("look")),
          ]);
          return order;
        }""",
        digit,
    )
    assert order == ["look", "sizes"]


@pytest.mark.slow
def test_a_page_opened_as_a_file_says_in_a_line_why_nothing_comes(
    browser: Any, shipped: Looks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    without_networks(monkeypatch, tmp_path)
    write_static_demo(shipped, tmp_path / "demo", tmp_path)
    page = browser.new_page()
    page.goto((tmp_path / "demo" / "index.html").as_uri())
    page.wait_for_timeout(600)
    assert "not into a page that was opened as a file" in page.inner_text("#loading")
    assert page.is_visible("#loading")
    assert not page.is_visible("#tabs")
    assert not page.is_visible("#random")
    page.close()


@pytest.mark.slow
def test_a_file_that_is_missing_is_named(browser: Any, static_demo: str, shipped: Looks, tmp_path: Path):
    page = browser.new_page()
    page.route("**/plain.onnx", lambda route: route.fulfill(status=404))
    page.goto(static_demo)
    page.wait_for_selector("#message:not([hidden])", timeout=120_000)
    assert page.inner_text("#message") == "The file plain.onnx of this page is missing."
    assert not page.is_visible("#loading")
    page.close()


# The folder


def without_networks(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """A stand-in for onnxruntime-web, which lies in `root`, and networks that are exported in no time."""
    contents = {name: name.encode() for name in ONNXRUNTIME_WEB.checksums}
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    for name, content in contents.items():
        (root / name).write_bytes(content)
    monkeypatch.setattr(without_server, "ONNXRUNTIME_WEB", replace(ONNXRUNTIME_WEB, checksums=sums))

    def exported(network: object, path: Path, **options: object) -> Any:
        path.write_text(json.dumps({"windows": options["windows"], "size": options["size"]}))
        return type("Exported", (), {"error": 1e-6})

    monkeypatch.setattr(without_server, "export_onnx", exported)


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    without_networks(monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_folder_has_all_that_the_page_asks_for(light: Path, looks: Looks):
    write_static_demo(looks, light / "demo", light)
    names = {path.name for path in (light / "demo").iterdir()}
    assert {"index.html", "style.css", "demo.js", "worker.js", "onnxruntime.js"} < names
    assert (light / "demo" / "answers.js").read_text() == (BROWSER / "answers.js").read_text()
    assert json.loads((light / "demo" / "network.onnx").read_text()) == {"windows": True, "size": [112, 112]}
    assert json.loads((light / "demo" / "plain.onnx").read_text())["windows"] is False
    told = json.loads((light / "demo" / "settings.json").read_text())
    assert (told["scales"], told["sizes"], told["detector"]) == ([0.5, 1, 2, 4, 8], list(MNIST_SIZES), None)
    assert told["values"][1] == pytest.approx(0.763, abs=1e-3)
    examples = json.loads((light / "demo" / "examples.json").read_text())
    assert [one["label"] for one in examples[-1]] == list(range(10))
    for script in names & {path.name for path in BROWSER.iterdir()}:
        text = (light / "demo" / script).read_text()
        assert "http" not in text
        assert all(name in names for name in imported(text)), script


def imported(text: str) -> list[str]:
    return re.findall(r"""["'(](?:\./)?([\w-]+\.(?:js|json|onnx))["')]""", text)


def test_a_folder_with_files_is_not_touched(light: Path, looks: Looks):
    (light / "site").mkdir()
    (light / "site" / "index.html").write_text("mine")
    with pytest.raises(ValueError, match=r"must be a new or an empty folder; '.*site' holds files already"):
        write_static_demo(looks, light / "site", light)
    assert [path.name for path in (light / "site").iterdir()] == ["index.html"]
    (light / "empty").mkdir()
    write_static_demo(looks, light / "empty", light)
    assert (light / "empty" / "index.html").is_file()


def test_a_network_that_looks_everywhere_is_refused(light: Path, looks: Looks):
    own = looks.network
    everywhere = ScaleChannelNetwork(own.backbone, own.grid, own.pool, look="everywhere")
    with pytest.raises(ValueError, match=r"--static takes a network that looks at the centre"):
        write_static_demo(replace(looks, network=everywhere), light / "demo", light)


def test_a_failed_export_leaves_no_half_of_a_page(light: Path, looks: Looks, monkeypatch: pytest.MonkeyPatch):
    def fail(*rest: object, **more: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr(without_server, "export_onnx", fail)
    before = sorted(light.iterdir())
    with pytest.raises(ValueError, match="no"):
        write_static_demo(looks, light / "demo", light)
    assert sorted(light.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--static", "file.txt"), "--static must be a folder, not a file; got 'file.txt'"),
        (("--static", "page", "--open"), "--open is for the demo that is served"),
        (("--static", "page", "--detector", "runs/boxes"), "--detector is for the demo that is served"),
    ],
)
def test_what_a_user_can_mend_is_one_line(
    words: tuple[str, ...], message: str, light: Path, capsys: pytest.CaptureFixture[str]
):
    (light / "file.txt").touch()
    assert run("demo", *words) == 1
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not (light / "page").exists()


def test_without_npm_the_ways_to_onnxruntime_web_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    monkeypatch.setenv("SCALECHANNELS_DATA", os.fspath(tmp_path / "cache"))
    assert run("demo", "--static", tmp_path / "page") == 1
    said = capsys.readouterr().err
    assert "onnxruntime-web is not in" in said
    assert f"npm pack {ONNXRUNTIME_WEB.package}" in said
    assert "there is no npm on the PATH" in said
    assert not (tmp_path / "page").exists()
