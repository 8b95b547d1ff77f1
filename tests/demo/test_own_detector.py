"""The second tab with a detector of the user's own: its names, colours, threshold; pictures, not scenes."""

import base64
import io
import json
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.demo_requests import FILE, ask
from PIL import Image

from scalechannels import Detector, ScaleChannelNetwork, ScaleGrid
from scalechannels.backbones.paper import ConvBackbone
from scalechannels.cli import main
from scalechannels.data.pictures import read_image
from scalechannels.demo.answers import Demo
from scalechannels.demo.looks import Looks
from scalechannels.demo.scene import LONGEST, Finder, open_detector
from scalechannels.demo.server import SAFETY, DemoServer
from scalechannels.detection.detector import Rules
from scalechannels.pooling import MaxOverScales

CLASSES = ["leaf", "red fruit", "stone"]


def save_detector(folder: Path, *, channels: int = 3, reduce: int = 1) -> None:
    """One of random weights that finds something in any picture: three classes, boxes and a background."""
    torch.manual_seed(1)
    backbone = ConvBackbone((4, 8), window=16, channels=channels, classes=3 + 1 + 4, hidden=8)
    with torch.no_grad():
        backbone.classifier.weight.mul_(30)
    network = ScaleChannelNetwork(backbone, ScaleGrid(1, 4, ratio=2), MaxOverScales(), 16, antialias=True)
    network.usage = {"classes": CLASSES, "background": 3, "values": "unit", "reduce": reduce}
    Detector(
        network.eval(), background=3, rules=Rules(threshold=0.35, pixels=12, regressed=True)
    ).save_pretrained(folder)


def picture(height: int = 90, width: int = 120) -> bytes:
    """A coloured one: no two planes are alike."""
    pixels = np.random.default_rng(0).integers(0, 255, (height // 10, width // 10, 3), dtype=np.uint8)
    pixels[..., 0] //= 4
    buffer = io.BytesIO()
    Image.fromarray(pixels).resize((width, height), Image.Resampling.NEAREST).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture(params=[(3, 1), (3, 2), (1, 1)], ids=["colour", "reduced", "grey"])
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    channels, reduce = request.param
    save_detector(tmp_path / "own", channels=channels, reduce=reduce)
    return tmp_path / "own"


@pytest.fixture
def finder(own: Path) -> Finder:
    return open_detector(own)


@pytest.fixture
def served(looks: Looks, finder: Finder) -> Iterator[DemoServer]:
    made = DemoServer(Demo(looks, finder))
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def test_the_page_learns_its_classes_colours_and_threshold(served: DemoServer):
    told = ask(served, "GET", "/api/settings")[1]["detector"]
    assert told["digits"] is False
    assert told["threshold"] == 0.35
    assert [one["name"] for one in told["classes"]] == CLASSES
    assert told["classes"][0]["colour"] == "#ff9500"  # as in the pictures of `scalechannels detect`
    assert len({one["colour"] for one in told["classes"]}) == 3


def test_a_picture_gives_the_boxes_that_detect_gives(
    served: DemoServer, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """In pixels of the picture as it is shown: `detect` gives them in the file's."""
    (tmp_path / "a.png").write_bytes(picture())
    monkeypatch.chdir(tmp_path)
    main(["detect", "a.png", "--network", str(own), "--json", "a.json"])
    wanted = json.loads(Path("a.json").read_text())["objects"]
    status, found = ask(served, "POST", "/api/scene", picture(), FILE)
    assert (status, found["truth"], found["shrunk"]) == (200, None, 1)
    assert len(wanted) > 1
    assert [one["class"] for one in found["found"]] == [one["class"] for one in wanted]
    assert {one["class"] for one in found["found"]} <= set(CLASSES)
    pixel = found["pixel"]
    for one, other in zip(found["found"], wanted, strict=True):
        assert one["probability"] == pytest.approx(other["probability"], abs=1e-4)
        sides = [pixel * (one["box"][k + 2] - one["box"][k]) for k in (0, 1)]
        assert sides == pytest.approx([other["box"][k + 2] - other["box"][k] for k in (0, 1)], abs=0.06)
    shown = Image.open(io.BytesIO(base64.b64decode(found["picture"].partition(",")[2])))
    assert shown.mode == "RGB"  # of a network that takes grey images too
    assert shown.size == (found["width"], found["height"]) == (120 / pixel, 90 / pixel)
    if pixel == 1:
        Image.open(io.BytesIO(picture())).save("b.png")
        assert torch.equal(read_image("b.png"), torch.from_numpy(np.array(shown)).permute(2, 0, 1) / 255)


def test_scenes_of_digits_are_refused(served: DemoServer):
    status, said = ask(served, "POST", "/api/scene", {"seed": 5, "background": "plain"})
    assert status == HTTPStatus.NOT_FOUND
    assert said["error"] == "this demo's detector is not for scenes of digits; send a picture"


def test_large_pictures_are_searched_smaller_and_it_is_said(served: DemoServer, finder: Finder):
    status, found = ask(served, "POST", "/api/scene", picture(40, 4 * LONGEST), FILE)
    assert (status, found["width"], found["shrunk"]) == (200, LONGEST, 4 / finder.reduce)
    assert found["pixel"] == 4  # of the file's in one that is shown, whoever reduced it


def test_what_is_no_picture_is_named(served: DemoServer):
    for content, said in ((b"", "the file is empty"), (b"no image", "damaged, or not an image")):
        status, answer = ask(served, "POST", "/api/scene", content, FILE)
        assert status == HTTPStatus.UNPROCESSABLE_ENTITY
        assert said in answer["error"]


def test_bodies_stay_bounded_and_headers_safe(served: DemoServer):
    for length, wanted in ((16_000_001, HTTPStatus.REQUEST_ENTITY_TOO_LARGE), (0, HTTPStatus.OK)):
        asked = HTTPConnection("127.0.0.1", served.server_port, timeout=60)
        asked.putrequest("POST", "/api/scene")
        asked.putheader("Content-Type", FILE["Content-Type"])
        asked.putheader("Content-Length", str(length or len(picture())))
        asked.endheaders(None if length else picture())
        reply = asked.getresponse()
        assert reply.status == wanted
        assert SAFETY.items() <= dict(reply.getheaders()).items()
        asked.close()


def test_the_command_leads_to_the_tab_of_the_detector(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def serve(self: DemoServer) -> None:
        assert self.demo.finder is not None
        assert list(self.demo.finder.classes) == CLASSES
        raise KeyboardInterrupt

    monkeypatch.setattr(DemoServer, "serve_forever", serve)
    main(["demo", "--detector", str(own), "--port", "0"])
    assert "/#scene (press Ctrl-C" in capsys.readouterr().out
