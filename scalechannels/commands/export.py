"""`scalechannels export`: a trained network as an ONNX file that agrees with PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from scalechannels.cli import NetworkFolder


def export(
    network: NetworkFolder,
    /,
    *,
    onnx: Annotated[Path, Parameter(help="The .onnx file to write.")],
    size: Annotated[
        tuple[int, int] | None,
        Parameter(help="Height and width of the images; by default any, where the network can."),
    ] = None,
    dense: Annotated[
        bool, Parameter(help="Logits and scale at every fourth pixel, not only at the centre.", negative=())
    ] = False,
) -> None:
    """Write a network as ONNX, for onnxruntime and other programs without PyTorch.

    The file takes `images` (batch, channels, height, width) and gives `logits` (batch, classes) and, for
    networks with scale channels, `channel_logits` (batch, scales, classes). Batches may have any size.
    Networks that foveate take images of any size; the plain CNN of digits takes 112x112, and so does swmax
    unless --size says otherwise. The metadata name the classes, scales, size, range of values, and `reduce`:
    how many times smaller images have to be made before they are given to the file, 1 for most networks,
    and data.reduce for those that were trained on own images of large objects. A line says so.

    With --dense the file takes one image of any size and gives `logits` (1, classes, h, w) and the selected
    `scales` (1, h, w) at every fourth pixel, the first included; converting takes minutes.

    Before it has its name, the file is run in onnxruntime and compared with PyTorch on random images: a
    difference above 1e-4 is an error and leaves nothing behind. Needs pip install 'scalechannels[onnx]'.

    Examples: scalechannels export runs/NAME --onnx digits.onnx;
    scalechannels export digit-detector --dense --onnx detector.onnx
    """
    from scalechannels.data.pictures import BACKGROUND
    from scalechannels.saving.onnx import export_onnx
    from scalechannels.saving.saved_network import SavedNetwork

    saved = SavedNetwork.open(network)
    exported = slide(saved.network, network) if dense else saved.network
    done = export_onnx(
        exported,
        onnx,
        size=size,
        classes=saved.classes,
        background=saved.background,
        values=(BACKGROUND, -BACKGROUND) if saved.values == "digits" else (0.0, 1.0),
        reduce=saved.reduce,
    )
    height, width = done.size or ("height", "width")
    megabytes = done.path.stat().st_size / 1e6
    batch = 1 if dense else "batch"
    print(f"{done.path}: {megabytes:.1f} MB, images ({batch}, channels, {height}, {width}) to ", end="")
    print(" and ".join(done.outputs))
    counts = ", ".join(map(str, done.batches))
    print(f"onnxruntime agrees with PyTorch within {done.error:.0e} on batches of {counts} random images")
    if saved.reduce > 1:
        print(
            f"Make images {saved.reduce} times smaller along each side before you give them to the file: "
            "the network was trained on such images (the metadata's reduce; scales are in their pixels)"
        )


def slide(network: Any, name: Path) -> Any:
    """The network at every point of an image; what cannot slide is named."""
    from scalechannels.dense import DenseNetwork

    try:
        return DenseNetwork(network)
    except TypeError as error:
        raise ValueError(f"{name} has no dense form: {error}") from error
