"""A demo with small networks of random weights, listening on a free port; in browsers, with shipped ones."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.browser import chromium, onnxruntime_web, served
from helpers.demo_requests import SEVEN, ask
from torch import Tensor

from scalechannels import ScaleGrid, cnn, fovlse
from scalechannels.data.mnist_large_scale import large_scale
from scalechannels.demo.answers import Demo
from scalechannels.demo.digit import digit_from_strokes
from scalechannels.demo.looks import Looks, example, open_looks
from scalechannels.demo.scene import Finder
from scalechannels.demo.server import DemoServer
from scalechannels.demo.without_server import write_static_demo


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@dataclass(frozen=True)
class Object:
    """As a detector finds them."""

    box: tuple[float, float, float, float] = (10, 20, 66, 76)
    label: int = 3
    probability: float = 0.987654321
    scale: float = 2.0


@pytest.fixture(scope="session")
def find_one() -> Finder:
    """A detector that finds one object wherever the image has any ink."""

    def detect(image: Tensor) -> list[Object]:
        assert image.ndim == 3
        assert image.dtype == torch.float32
        assert float(image.abs().max()) < 0.77
        return [Object()] if float(image.max()) > 0.5 else []

    return Finder(detect)


@pytest.fixture
def looks() -> Looks:
    torch.manual_seed(0)
    shown, plain = fovlse(ScaleGrid(0.5, 8, ratio=2)), cnn()
    # Logits that differ by several units, so that the verdict depends on the size.
    sizes = torch.tensor([0.5, 1, 2, 4, 8])
    images = large_scale(digit_from_strokes(example(1, 4)["strokes"]).expand(5, -1, -1), sizes)
    with torch.no_grad():
        for network in (shown.eval(), plain.eval()):
            classifier = network.backbone.classifier
            classifier.weight *= 100
            classifier.bias -= network(images).mean(0)
    return Looks(shown, plain, (2.0,))


@pytest.fixture
def server(looks: Looks, find_one: Finder) -> Iterator[DemoServer]:
    made = DemoServer(Demo(looks, find_one))
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.fixture
def digit(server: DemoServer) -> str:
    return ask(server, "POST", "/api/drawing", SEVEN)[1]["digit"]


@pytest.fixture(scope="session")
def shipped() -> Looks:
    return open_looks(Path("fovlse-mnist"), Path("cnn-mnist"))


@pytest.fixture(scope="session")
def static_demo(shipped: Looks, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the demo without a server, below the root of a site."""
    onnxruntime_web()  # or skip
    site = tmp_path_factory.mktemp("site")
    write_static_demo(shipped, site / "some" / "demo")
    with served(site) as address:
        yield f"{address}some/demo/"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium())
        yield launched
        launched.close()
