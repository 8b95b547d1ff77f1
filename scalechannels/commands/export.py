"""`scalechannels export`: a trained network as an ONNX file that agrees with PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from scalechannels.cli import NetworkFolder, ending, must


def export(
    network: NetworkFolder,
    /,
    *,
    onnx: Annotated[Path, Parameter(help="The ONNX file to write.", validator=ending(".onnx"))],
    size: Annotated[
        tuple[int, int] | None,
        Parameter(
            help="Height and width of the images; by default any size, if the network allows it.",
            validator=must(lambda size: min(size) > 0, "be a height and a width in pixels"),
        ),
    ] = None,
    dense: Annotated[
        bool,
        Parameter(
            help="Give the logits and the scale at every fourth pixel, not only for the whole image.",
            negative=(),
        ),
    ] = False,
    windows: Annotated[
        bool,
        Parameter(
            help="Also give what each scale channel sees, of a network that looks at the centre.", negative=()
        ),
    ] = False,
) -> None:
    """Export a network as ONNX, for programs that run without PyTorch.

    The file takes `images` (batch, channels, height, width) and gives `logits` (batch, classes). For networks
    with scale channels it also gives `channel_logits` (batch, scales, classes), what each channel contributed
    to the answer (`contributions`, batch, scales), and the deciding scale of each image (`scales`, batch).
    Batches may have any size. Networks that look everywhere also give `places` (batch, 2): the row and the
    column of the window that decided. They take images of one size, 112x112 pixels unless you give --size.
    The plain CNN for digits takes 112x112 pixels. Foveated networks take images of any size; with --windows
    their file also gives `windows` (batch, scales, channels, n, n).

    The metadata hold the classes, the scales, the size, the range of values and a factor called `reduce`.
    Shrink each image by this factor before you pass it in. The factor is 1, except for networks that were
    trained on your own images of large objects; the command tells you when it is not 1. docs/onnx.md shows
    how to use the file in Python and in a browser.

    With --dense, the file takes one image of any size. It gives `logits` (1, classes, h, w) and the selected
    `scales` (1, h, w) at every fourth pixel, starting with the first. This conversion takes minutes.

    A detector that was trained on boxes needs --size. At every point and scale it gives `boxes` (points, 4),
    the log-odds of an object, `odds` (points,), and `probabilities` (points, classes). docs/detection.md
    shows how to decode them.

    The file is written only if onnxruntime and PyTorch agree to within 1e-4 on random images. This command
    needs pip install "scalechannels[onnx]".

    For example:

    - scalechannels export runs/NAME --onnx digits.onnx
    - scalechannels export digit-detector --dense --onnx detector.onnx
    """
    from scalechannels.dense import DenseNetwork
    from scalechannels.saving.onnx import export_onnx
    from scalechannels.saving.saved_network import SavedNetwork

    saved = SavedNetwork.open(network)
    if saved.detector is not None:
        if size is None:
            raise ValueError("a detector is exported for images of one size: give --size HEIGHT WIDTH")
        from scalechannels.detection.detector import Detector
        from scalechannels.detection.exported import export_detector

        error = export_detector(Detector(saved.network), onnx, size)
        print(f"{onnx}: images (1, channels, {size[0]}, {size[1]}) to boxes, odds and probabilities")
        print(f"onnxruntime agrees with PyTorch within {error:.0e} on a random image")
        _say_shrunk(saved.reduce, "Boxes")
        return
    try:
        exported = DenseNetwork(saved.network) if dense else saved.network
    except TypeError as error:  # a backbone that cannot slide
        raise ValueError(f"'{network}' has no dense form: {error}") from error
    done = export_onnx(exported, onnx, size=size, windows=windows)
    height, width = done.size or ("height", "width")
    megabytes = done.path.stat().st_size / 1e6
    batch = 1 if dense else "batch"
    *others, last = done.outputs
    given = f"{', '.join(others)} and {last}" if others else last
    print(f"{done.path}: {megabytes:.1f} MB, images ({batch}, channels, {height}, {width}) to {given}")
    counts = ", ".join(map(str, done.batches))
    print(f"onnxruntime agrees with PyTorch within {done.error:.0e} on random images in batches of {counts}")
    if getattr(saved.network, "resize", False):
        print(
            f"Resize each image to {height}x{width} pixels first, anti-aliased: the longer side fits, and "
            "beyond the shorter one edges are repeated (scalechannels.plain.resized)."
        )
    if saved.temperature != 1:
        print(
            f"For calibrated probabilities divide the logits by {saved.temperature:.4g} before the softmax "
            "(`temperature` in the metadata)."
        )
    _say_shrunk(saved.reduce, "Scales")


def _say_shrunk(factor: int, what: str) -> None:
    if factor > 1:
        print(
            f"Shrink each image by a factor of {factor} along each side before you pass it in, as the images "
            f"of training were (`reduce` in the metadata). {what} are in pixels of the shrunken image."
        )
