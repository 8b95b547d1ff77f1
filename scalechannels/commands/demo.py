"""`scalechannels demo`: a page on this machine to draw, zoom and watch the scale channels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from scalechannels.cli import must

DETECTOR = "digit-detector"


def demo(
    *,
    network: Annotated[
        Path,
        Parameter(
            help="A scale-channel network for digits, which looks at the centre or everywhere: a run's "
            "folder, or the name of a shipped network."
        ),
    ] = Path("fovlse-mnist"),
    plain: Annotated[Path, Parameter(help="The plain CNN to compare it with.")] = Path("cnn-mnist"),
    detector: Annotated[
        Path | None,
        Parameter(
            help="What finds objects on the second tab: a run's folder, such as that of `scalechannels train "
            "--data boxes.json`; by default the shipped detector of digits."
        ),
    ] = None,
    port: Annotated[
        int,
        Parameter(
            help="The port to listen on; 0 picks a free one.",
            validator=must(lambda port: 0 <= port < 2**16, f"be from 0 to {2**16 - 1}"),
        ),
    ] = 8000,
    open_page: Annotated[
        bool, Parameter(name="--open", help="Open the page in a browser.", negative=())
    ] = False,
) -> None:
    """Serve a web page on which you draw a digit, zoom it, drag it about, and see what every channel says.

    The page also shows the answer of a plain CNN that was trained on the same digits. A second tab finds
    digits in whole scenes, or with --detector your own objects in pictures that you open or drop there; it
    then comes first. Pictures of more than 1024 pixels a side are searched at 1024, so that the answer comes
    in seconds: `scalechannels detect` searches all of them. The page is served only to this machine, and
    works offline. Press Ctrl-C to stop the server.

    For example:

    - scalechannels demo --open
    - scalechannels demo --network runs/NAME --plain runs/OTHER --port 8080
    - scalechannels demo --detector runs/boxes --open
    """
    from scalechannels.demo.answers import Demo
    from scalechannels.demo.looks import open_looks
    from scalechannels.demo.scene import open_detector
    from scalechannels.demo.server import DemoServer

    looks = open_looks(network, plain)
    finder = open_detector(detector or Path(DETECTOR))
    try:
        server = DemoServer(Demo(looks, finder), port)
    except OSError as error:
        reason = error.strerror or error
        raise OSError(f"port {port} cannot be used ({reason}); choose another --port, or 0") from error
    page = server.address if finder.of_digits else f"{server.address}#scene"
    print(f"The demo: {page} (press Ctrl-C to stop the server)", flush=True)
    if open_page:
        import webbrowser

        webbrowser.open(page)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print("\nstopped")
    finally:
        server.server_close()
