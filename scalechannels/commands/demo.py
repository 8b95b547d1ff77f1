"""`scalechannels demo`: a page on this machine to draw, zoom and watch the scale channels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from scalechannels.demo.server import DemoServer

DETECTOR = "digit-detector"


def demo(
    *,
    network: Annotated[
        Path, Parameter(help="A scale-channel network for digits: a run's folder, or a shipped name.")
    ] = Path("fovlse-mnist"),
    plain: Annotated[Path, Parameter(help="The plain CNN beside it.")] = Path("cnn-mnist"),
    detector: Annotated[
        Path | None, Parameter(help="The network that finds digits in scenes; default: the shipped one.")
    ] = None,
    port: Annotated[int, Parameter(help="The port to listen on; 0 takes a free one.")] = 8000,
    open_page: Annotated[
        bool, Parameter(name="--open", help="Open the page in the browser.", negative=())
    ] = False,
) -> None:
    """Draw a digit, zoom it over a factor of 16, and see what every scale channel sees and says.

    Beside it is a plain CNN that was trained on the same digits. A second tab finds digits in whole scenes.
    The page is served only to this machine and works offline. Ctrl-C ends it.

    Examples of use:

    - scalechannels demo --open
    - scalechannels demo --network runs/NAME --plain runs/OTHER --port 8080
    """
    server = open_server(network, plain, detector, port)
    print(f"The demo: {server.address} (Ctrl-C ends it)", flush=True)
    if open_page:
        import webbrowser

        webbrowser.open(server.address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print("\nended")
    finally:
        server.server_close()


def open_server(network: Path, plain: Path, detector: Path | None, port: int) -> DemoServer:
    """A server that listens; every folder is checked before."""
    if not 0 <= port < 2**16:
        raise ValueError(f"--port is a number from 0 to {2**16 - 1}, got {port}")
    from scalechannels.demo.answers import Demo
    from scalechannels.demo.looks import open_looks
    from scalechannels.demo.scene import open_detector
    from scalechannels.demo.server import DemoServer
    from scalechannels.saving.saved_network import shipped_names

    looks = open_looks(network, plain)
    if detector is None and DETECTOR in shipped_names():
        detector = Path(DETECTOR)
    detect = None if detector is None else open_detector(detector)
    try:
        return DemoServer(Demo(looks, detect), port)
    except OSError as error:
        raise OSError(f"cannot listen on port {port}: {error}; choose another --port, or 0") from error
