"""The demo as a folder of files for any web page: the browser runs the networks, as ONNX.

The page is the same. In place of the `answers.js` that asks the server it has that of `browser/`, which asks
a worker; the worker answers by the same paths, in the same form. Law: it says what the server says of the
same drawing. Limit: the built-in digits are some of the server's, the browser reads pictures, of the formats
that it knows, and there is no second tab.

onnxruntime-web, which runs the networks, is no part of this library: npm fetches it, once.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from scalechannels.data.mnist_large_scale import SIZE
from scalechannels.data.pictures import BACKGROUND
from scalechannels.data.sources import Source, fetch
from scalechannels.data.strokes import CLASSES
from scalechannels.demo.looks import Looks, example
from scalechannels.demo.server import PAGE
from scalechannels.files import atomic_path
from scalechannels.saving.onnx import export_onnx

BROWSER = Path(__file__).parent / "browser"
ONNXRUNTIME_WEB = Source(
    "onnxruntime-web",
    checksums={
        "ort.wasm.bundle.min.mjs": "11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90",
        "ort-wasm-simd-threaded.wasm": "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
    },
    mirrors=(),
    downloads=(),
    places=("onnxruntime-web", "node_modules/onnxruntime-web/dist", "dist", "."),
    package="onnxruntime-web@1.30.0",
)
RENAMED = {"ort.wasm.bundle.min.mjs": "onnxruntime.js"}
"""Not every web server knows that .mjs is a script."""
EXAMPLES = 16
"""Built-in digits of each class."""


def write_static_demo(
    looks: Looks, folder: Path, root: Path | None = None, say: Callable[[str], None] = lambda text: None
) -> None:
    """Writes the page and all it needs to a folder that is new or empty, whole or not at all.

    root    where onnxruntime-web is looked for first, and put; by default the cache
    say     is told what is done, since it takes a while
    """
    if looks.network.look != "centre":
        raise ValueError("--static takes a network that looks at the centre; this one looks everywhere")
    if folder.is_dir() and any(folder.iterdir()):
        raise ValueError(f"--static must be a new or an empty folder; '{folder}' holds files already")
    runtime = fetch(ONNXRUNTIME_WEB, root)
    say(f"{ONNXRUNTIME_WEB.package}: {runtime.path} ({runtime.how})")
    with atomic_path(folder) as made:
        made.mkdir()
        for path in (*PAGE.iterdir(), *BROWSER.iterdir()):  # the second answers.js replaces the first
            shutil.copyfile(path, made / path.name)
        for name, content in runtime.contents.items():
            (made / RENAMED.get(name, name)).write_bytes(content)
        settings = {**looks.settings(), "detector": None, "values": [BACKGROUND, -BACKGROUND]}
        examples = [[example(number, label) for label in range(CLASSES)] for number in range(EXAMPLES)]
        for name, value in (("settings", settings), ("examples", examples)):
            (made / f"{name}.json").write_text(json.dumps(value, separators=(",", ":")), encoding="utf-8")
        for name, network in (("network", looks.network), ("plain", looks.plain)):
            done = export_onnx(
                network,
                made / f"{name}.onnx",
                size=(SIZE, SIZE),
                values=(BACKGROUND, -BACKGROUND),
                windows=network is looks.network,
            )
            say(f"{name}.onnx: onnxruntime agrees with PyTorch within {done.error:.0e}")


if __name__ == "__main__":  # sets up a machine for the tests
    print(fetch(ONNXRUNTIME_WEB).path)
