"""ONNX: a network as one file that other programs run, compared with PyTorch before it gets its name.

    images (batch, C, height, width) ──▶ logits (batch, K)
                       … of scale channels: what each says, channel_logits (batch, S, K), and contributes to
                           the answer, contributions (batch, S), and the deciding scales (batch,)
                       … looking everywhere: the places (batch, 2) of the deciding window, too
                       … with `windows`: what each channel sees, windows (batch, S, C, n, n)
    images (1, C, height, width) ──dense──▶ logits (1, K, h, w), scales (1, h, w)

These are the fields of `network.explain`. The metadata hold, each as JSON, `classes`, `background`, the
`scales` of the channels, the side n of their `window`, `input_size`, the range of `values`, `temperature`,
`resize`, and `reduce`: how many times smaller, along each side, an image has to be made first
(`scalechannels.data.frames.reduced`, or any program's averaging by a triangle). Size and scales are in
pixels of the reduced image. docs/onnx.md says what a program does with each.
"""

from __future__ import annotations

import copy
import json
import logging
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from scalechannels import __version__
from scalechannels.backbones.inference import colours
from scalechannels.dense import DenseNetwork
from scalechannels.files import atomic_path, require_writable
from scalechannels.saving.saved_network import Network
from scalechannels.saving.usage import used

OPSET = 20
TOLERANCE = 1e-4
TIES = 0.01
"""The share of answers in which rounding may decide between two channels."""
BATCHES = (1, 2, 7)
ANY_SIZES = ((112, 112), (61, 150))
"""A network for any size is compared on usual images and on small, oblong ones."""
SLIDING_SIZE = (112, 112)

Size = tuple[int, int]


class ExportError(ValueError):
    """The network could not be written as ONNX, or the file did not agree with PyTorch."""


@dataclass(frozen=True)
class Exported:
    """What was written, and how well it agrees with PyTorch."""

    path: Path
    size: Size | None
    """Height and width of the images; None for any."""
    outputs: tuple[str, ...]
    batches: tuple[int, ...]
    """The batches of random images that it was compared on."""
    error: float
    """The largest difference to PyTorch, over the largest logit where that exceeds 1."""


def export_onnx(
    network: nn.Module,
    path: str | os.PathLike[str],
    *,
    size: Size | None = None,
    classes: Sequence[str] | None = None,
    background: int | None = None,
    values: tuple[float, float] | None = None,
    reduce: int | None = None,
    temperature: float | None = None,
    windows: bool = False,
) -> Exported:
    """Write a network as ONNX, once onnxruntime agrees with PyTorch.

    network     any of the library, or a DenseNetwork
    size        height and width of the images; None for any where the network foveates, else for the one
                that it takes, 112x112 for a sliding one
    classes     their names, for the metadata
    background  which class is no object, for the metadata of a detector
    values      the least and greatest value of the images that the network was trained on
    reduce      how many times smaller images have to be made first, for the metadata
    temperature what logits have to be divided by for calibrated probabilities, for the metadata
    windows     whether the file also gives what each channel sees, of a network that looks at the centre

    What the metadata are to say and is not given is what the network's `usage` says.

    Law: logits agree within 1e-4 (relative to the largest where that exceeds 1) on random images, for
    batches of several sizes and, where the size is free, images of two. A file that fails is not left behind,
    and one that was there before stays. Limit: eval mode, float32.
    """
    try:
        import onnx
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as lacking:
        raise ImportError(
            f"ONNX export needs onnx, onnxruntime and onnxscript ({lacking}); "
            'run pip install "scalechannels[onnx]"'
        ) from lacking
    target = Path(path)
    if target.suffix.lower() != ".onnx":
        raise ValueError(f"the name of the file must end in .onnx; got '{path}'")
    require_writable(target)
    inner: Any = getattr(network, "network", network)  # of a dense one
    usage = used(inner) if isinstance(inner, Network) else {}
    classes = usage.get("classes") if classes is None else classes
    background = usage.get("background") if background is None else background
    reduce = usage.get("reduce", 1) if reduce is None else reduce
    temperature = usage.get("temperature", 1.0) if temperature is None else temperature
    if values is None:
        from scalechannels.data.pictures import BACKGROUND

        values = (BACKGROUND, -BACKGROUND) if usage.get("values") == "digits" else (0.0, 1.0)
    if not values[0] < values[1]:
        raise ValueError(f"values must be (least, greatest); got {values}")
    if isinstance(reduce, bool) or not isinstance(reduce, int) or reduce < 1:
        raise ValueError(f"reduce must be a whole number of at least 1; got {reduce!r}")
    if windows and getattr(network, "look", None) != "centre":
        raise ValueError(
            "windows are what a scale-channel network sees about the centre; this "
            f"{type(network).__name__} looks elsewhere"
        )
    size = _size(network, size)
    module = _Outputs(copy.deepcopy(network).cpu().float().eval(), windows)
    channels = colours(getattr(inner, "backbone", inner), otherwise=3)
    batches = (1,) if module.dense else BATCHES
    sizes = ANY_SIZES if size is None else (size,)
    with atomic_path(target) as temporary, torch.no_grad():
        program = _convert(module, _images(batches[-1], channels, sizes[0], values), free_size=size is None)
        described = {
            "network": type(network).__name__,
            "scalechannels": __version__,
            "classes": None if classes is None else list(classes),
            "background": background,
            "scales": list(getattr(network, "grid", ())) or None,
            "window": inner.foveate.window if hasattr(inner, "foveate") else None,
            "resize": getattr(network, "resize", False),
            "input_size": None if size is None else list(size),
            "values": list(values),
            "reduce": reduce,
            "temperature": temperature,
            **({"step": network.step} if module.dense else {}),
        }
        for name, value in described.items():
            program.model.metadata_props[name] = json.dumps(value)
        program.save(str(temporary), external_data=False)
        onnx.checker.check_model(str(temporary))
        given = [_images(count, channels, each, values) for each in sizes for count in batches]
        error = _compare(temporary, module, given)
    return Exported(target, size, module.names, batches, error)


class _Outputs(nn.Module):
    """A network that also gives what it explains, where that is its own answer, and what its channels see."""

    network: Any

    def __init__(self, network: nn.Module, windows: bool = False) -> None:
        super().__init__()
        self.network, self.dense, self.windows = network, isinstance(network, DenseNetwork), windows
        self.fields: tuple[str, ...] = ("logits",)
        # A network that pools features does not need the channels' logits for its answer.
        if self.dense:
            self.fields += ("scales",)
        elif hasattr(network, "channel_logits") and getattr(network, "head", None) is None:
            self.fields += ("channels",)
            if hasattr(network.pool, "contributions"):
                self.fields += ("contributions", "scales")
                self.fields += ("places",) if network.look == "everywhere" else ()
        named = ("channel_logits" if field == "channels" else field for field in self.fields)
        self.names = (*named, *(("windows",) if windows else ()))

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """A dense network works on one image after the other, the others on batches."""
        said = self.network(images) if self.dense else self.network.explain(images)
        seen = (self.network.foveate(images),) if self.windows else ()
        return *(getattr(said, field) for field in self.fields), *seen


def _size(network: nn.Module, size: Size | None) -> Size | None:
    """The size that the exported network takes; None for any."""
    if size is not None and not all(isinstance(side, int) and side > 0 for side in size):
        raise ValueError(f"size must be a height and a width in whole pixels; got {size}")
    look = getattr(network, "look", None)
    side: Any = getattr(network, "window", None) if look == "whole" else None
    if side is not None:
        if size not in (None, (side, side)):
            raise ValueError(f"this network takes only images of {side}x{side} pixels; got the size {size}")
        return side, side
    if size is None and look == "everywhere":
        return SLIDING_SIZE  # a free size takes minutes to convert: each channel has its own
    return size


def _images(count: int, channels: int, size: Size, values: tuple[float, float]) -> Tensor:
    generator = torch.Generator().manual_seed(count)
    low, high = values
    return low + (high - low) * torch.rand(count, channels, *size, generator=generator)


def _convert(module: _Outputs, images: Tensor, *, free_size: bool) -> Any:
    """The network as torch's ONNXProgram."""
    free: dict[int, Any] = {} if module.dense else {0: torch.export.Dim("batch")}
    if free_size:
        free |= {2: torch.export.Dim("height", min=2), 3: torch.export.Dim("width", min=2)}
    # Without the exporter's remarks on packages that are not needed, and on its own future.
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.onnx.export(
                module,
                (images,),
                dynamo=True,
                opset_version=OPSET,
                input_names=["images"],
                output_names=list(module.names),
                dynamic_shapes=(free,),
                verbose=False,
            )
    except Exception as error:  # the exporter's errors have many classes, and pages of text
        name = type(module.network).__name__
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        reason = str(cause).strip().splitlines() or [type(cause).__name__]
        raise ExportError(f"this {name} cannot be written as ONNX: {reason[0]}") from error
    finally:
        logger.setLevel(level)


def _compare(path: Path, module: _Outputs, given: Sequence[Tensor]) -> float:
    """The largest difference between onnxruntime and PyTorch, if it is small enough."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ExportError(f"onnxruntime does not take the file: {error}") from error
    largest = 0.0
    for images in given:
        expected = module(images)
        got = session.run(list(module.names), {"images": images.numpy()})
        for name, ours, theirs in zip(module.names, expected, got, strict=True):
            theirs = torch.from_numpy(theirs)
            shapes = tuple(theirs.shape), tuple(ours.shape)
            if shapes[0] != shapes[1]:
                raise ExportError(f"onnxruntime gives {name} of the shape {shapes[0]}, PyTorch {shapes[1]}")
            if name in ("contributions", "scales", "places"):  # which jump where two channels tie
                if not float(((theirs - ours).abs() > TOLERANCE).double().mean()) <= TIES:
                    raise ExportError(f"onnxruntime and PyTorch select different {name}; nothing was written")
                continue
            difference = float((theirs - ours).abs().max()) / max(1.0, float(ours.abs().max()))
            if not difference <= TOLERANCE:  # so put that not-a-number fails too
                raise ExportError(
                    f"onnxruntime and PyTorch differ by {difference:.1e} in {name} for images "
                    f"{tuple(images.shape)}, more than {TOLERANCE:g}; nothing was written"
                )
            largest = max(largest, difference)
    return largest
