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
        Parameter(help="Height and width of the images; default: any size, if the network allows it."),
    ] = None,
    dense: Annotated[
        bool,
        Parameter(help="Give logits and scale at every fourth pixel, not only at the centre.", negative=()),
    ] = False,
) -> None:
    """Write a network as ONNX, for onnxruntime and other programs without PyTorch.

    The file takes `images` (batch, channels, height, width) and gives `logits` (batch, classes) and, for
    networks with scale channels, `channel_logits` (batch, scales, classes). Batches may have any size.
    Networks that foveate take images of any size; the plain CNN of digits takes 112x112, and so does swmax
    unless --size says otherwise. The metadata hold the classes, scales, size, range of values and `reduce`.
    Shrink images by the factor `reduce` before you pass them in. It is 1, except for networks trained on own
    images of large objects; the command then says so.

    With --dense the file takes one image of any size and gives `logits` (1, classes, h, w) and the selected
    `scales` (1, h, w) at every fourth pixel, the first included; converting takes minutes.

    The file is written only after onnxruntime agrees with PyTorch on random images to within 1e-4. Needs
    pip install 'scalechannels[onnx]'.

    Examples of use:

    - scalechannels export runs/NAME --onnx digits.onnx
    - scalechannels export digit-detector --dense --onnx detector.onnx
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
