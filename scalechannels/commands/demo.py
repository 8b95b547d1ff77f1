"""`scalechannels demo`: a page on this machine to draw, zoom and watch the scale channels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from scalechannels.cli import FOLDER, Root, must

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
    static: Annotated[
        Path | None,
        Parameter(
            help="Serve nothing; write the first tab to this new or empty folder as files for any web page, "
            "on which the browser runs the networks.",
            validator=FOLDER,
        ),
    ] = None,
    root: Root = None,
) -> None:
    """Serve a web page on which you draw a digit, zoom it, drag it about, and see what every channel says.

    The page also shows the answer of a plain CNN that was trained on the same digits. A second tab finds
    digits in whole scenes, or with --detector your own objects in pictures that you open or drop there; it
    then comes first. Pictures of more than 1024 pixels a side are searched at 1024, so that the answer comes
    in seconds: `scalechannels detect` searches all of them. The page is served only to this machine, and
    works offline. Press Ctrl-C to stop the server.

    With --static, the page needs no server of its own: copy the folder to any web page. It holds the networks
    as ONNX, and onnxruntime-web, which runs them. That is found in --root or in the cache, or else fetched by
    npm, once (33 MB). This needs pip install "scalechannels[onnx]".

    For example:

    - scalechannels demo --open
    - scalechannels demo --network runs/NAME --plain runs/OTHER --port 8080
    - scalechannels demo --detector runs/boxes --open
    - scalechannels demo --static demo-page
    """
    if static is not None:
        if detector is not None or open_page:
            given = "--open" if open_page else "--detector"
            raise ValueError(f"{given} is for the demo that is served; --static has the first tab, as files")
        from scalechannels.demo.looks import open_looks
        from scalechannels.demo.without_server import write_static_demo

        write_static_demo(open_looks(network, plain), static, root, print)
        print(f"{static}: copy it to a web server, or try it by python -m http.server --directory {static}")
        return
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
