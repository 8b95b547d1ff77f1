"""`scalechannels detect`: objects of any size anywhere in an image, as JSON and as a picture."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from scalechannels.cli import Device, Invert, MaxPixels, NetworkFolder, ValueRange, require_device

if TYPE_CHECKING:
    from torch import Tensor

    from scalechannels.commands.predict import Values
    from scalechannels.detection.detector import Detection

DETECTOR = "digit-detector"
WITHOUT_BACKGROUND = 0.9
Look = Literal["everywhere", "interest"]


@dataclass(frozen=True)
class About:
    """What a detector has to know beside its weights, from detector.json or from the run."""

    classes: list[str] | None
    background: int | None
    values: Values
    reduce: int = 1
    """How many times smaller it makes an image before it looks at it."""


def detect(
    image: Annotated[Path, Parameter(help="An image file.")],
    /,
    *,
    network: NetworkFolder = Path(DETECTOR),
    json_file: Annotated[
        Path | None, Parameter(name="--json", help="By default NAME-detections.json in this folder.")
    ] = None,
    overlay: Annotated[
        Path | None, Parameter(help="A .png with the boxes; by default NAME-detections.png in this folder.")
    ] = None,
    look: Annotated[
        Look, Parameter(help="At every point, or only at points of interest: faster, finds less.")
    ] = "everywhere",
    threshold: Annotated[
        float | None,
        Parameter(help="The least probability of an object; by default 0.5, or 0.9 without a background."),
    ] = None,
    invert: Invert = False,
    values: ValueRange = None,
    max_pixels: MaxPixels = None,
    device: Device = None,
) -> None:
    """Find objects of any size anywhere in an image: a list, JSON, and a picture with their boxes.

    The shipped digit-detector finds handwritten digits from 14 to 112 pixels; it learnt digits of 28 pixels,
    white on black, and a class for everything else. Any network whose backbone slides can be given; one
    without a background class answers everywhere, so its --threshold has to be found by trying.

    A box is what the deciding scale channel saw, a square, as x0, y0, x1, y1 in pixel-centre coordinates: the
    image reaches from −0.5 to width − 0.5. An object whose channel is the first or last of the grid may be
    smaller or larger than its box: it is marked, and a grid of a wider range should be taken.

    Images of one colour channel are stretched to full contrast first, as `scalechannels predict` does.

    Examples: scalechannels data scene scene.png; scalechannels detect scene.png;
    scalechannels detect page.jpg --invert --threshold 0.9 --look interest
    """
    json_file = json_file or Path(f"{image.stem}-detections.json")
    overlay = overlay or Path(f"{image.stem}-detections.png")
    require_outputs(image, json_file, overlay)

    from scalechannels.commands.evaluate import open_network
    from scalechannels.data.folder import MAX_PIXELS, read_image
    from scalechannels.data.frames import reduced
    from scalechannels.detection.detector import Detector
    from scalechannels.saving.shipped import find_network

    folder = find_network(network)
    if not image.is_file():
        raise FileNotFoundError(f"{image} does not exist or is no file; give an image file")
    on = require_device(device)
    loaded = open_network(folder).to(on)
    about = read_about(folder, loaded)
    threshold = threshold if threshold is not None else default_threshold(about)
    try:
        detector = Detector(loaded, background=about.background, threshold=threshold)
    except TypeError as error:  # a backbone that cannot slide
        raise ValueError(f"{network} cannot detect: {error}") from error
    grey = getattr(loaded.backbone, "channels", 3) == 1
    picture = read_image(image, grey=grey, max_pixels=max_pixels or MAX_PIXELS)  # (C, H, W), 0 to 1
    prepared = reduced(prepare(picture, values or about.values, invert), about.reduce).to(on)
    found = detector(prepared) if look == "everywhere" else detector.at_interest_points(prepared)
    found = [enlarged(one, about.reduce, prepared.shape, picture.shape) for one in found]
    result = as_dictionary(found, image, picture.shape, str(network), look, threshold, about.classes)
    write(result, picture, json_file, overlay)
    print(table(result))
    for remark in remarks(result, about, prepared, loaded):
        print(remark, file=sys.stderr)


def require_outputs(image: Path, json_file: Path, overlay: Path) -> None:
    """Before any work: outputs have fitting names, and none is the image itself."""
    from scalechannels.commands.evaluate import require_free
    from scalechannels.data.show import png_path

    if json_file.suffix.lower() != ".json":
        raise ValueError(f"--json takes a .json file, got {json_file}")
    require_free(json_file)
    png_path(overlay)
    if overlay.resolve() == image.resolve():
        raise ValueError(f"--overlay would replace the image {image}; choose another name")


def read_about(folder: Path, network: Any) -> About:
    """detector.json of a detector; of any other network what predict knows."""
    from scalechannels.commands.predict import class_names, reduction_of, values_of

    path = folder / "detector.json"
    if not path.exists():
        return About(class_names(folder), None, values_of(folder, network), reduction_of(folder))
    return read_detector(path)


def read_detector(path: Path) -> About:
    """What a detector.json says."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        classes = [str(name) for name in read["classes"]]
        return About(classes, int(read["background"]), read["values"], int(read.get("reduce", 1)))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error!r}") from error


def default_threshold(about: About) -> float:
    return 0.5 if about.background is not None else WITHOUT_BACKGROUND


def prepare(picture: Tensor, values: Values, invert: bool) -> Tensor:
    """The values that the network learnt from; `picture` stays as it is.

    The same as `as_digits` of `predict`, in one copy: a large image has no room for several.
    """
    import math

    from scalechannels.data.mnist_large_scale import GAIN, MIDDLE

    shown = 1 - picture if invert else picture.clone()
    if values == "unit":
        return shown
    darkest, brightest = shown.aminmax()
    shown.sub_(darkest).mul_(255 / (brightest - darkest).clamp_min(1e-6))
    return shown.sub_(MIDDLE).mul_(GAIN).atan_().mul_(2 / math.pi)


def enlarged(one: Detection, factor: int, seen: Sequence[int], shape: Sequence[int]) -> Detection:
    """An object of an image (C, h, w) that was reduced by a factor, in the whole image (C, H, W)."""
    middles = [((side - 1) / 2, (whole - 1) / 2) for side, whole in zip(seen[1:], shape[1:], strict=True)]
    (row, whole_row), (column, whole_column) = middles
    x0, x1 = ((x - column) * factor + whole_column for x in one.box[::2])
    y0, y1 = ((y - row) * factor + whole_row for y in one.box[1::2])
    return replace(one, box=(x0, y0, x1, y1), scale=one.scale * factor)


def as_dictionary(
    found: Sequence[Detection],
    image: Path,
    shape: Sequence[int],
    network: str,
    look: Look,
    threshold: float,
    classes: list[str] | None,
) -> dict[str, Any]:
    return {
        "image": str(image),
        "height": shape[1],
        "width": shape[2],
        "network": network,
        "look": look,
        "threshold": threshold,
        "objects": [
            {
                "class": classes[one.label] if classes else str(one.label),
                "probability": round(one.probability, 6),
                "box": [round(edge, 2) for edge in one.box],
                "scale": round(one.scale, 4),
                "at_edge": one.at_edge,
            }
            for one in found
        ],
    }


def write(result: dict[str, Any], picture: Tensor, json_file: Path, overlay: Path) -> None:
    from scalechannels.detection.overlay import draw
    from scalechannels.files import atomic_path

    with atomic_path(json_file) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    with atomic_path(overlay) as temporary:
        draw(picture, result["objects"]).save(temporary, format="png")
    result["files"] = [str(json_file), str(overlay)]


def table(result: dict[str, Any]) -> str:
    """One line for each object, the files below."""
    objects = result["objects"]
    lines = [f"{'class':>8}{'probability':>13}{'size':>7}   x0, y0, x1, y1"] if objects else []
    for one in objects:
        box = ", ".join(f"{edge:.1f}" for edge in one["box"])
        edge = "   at the edge of the scales" if one["at_edge"] else ""
        lines.append(f"{one['class']:>8}{one['probability']:>13.3f}{one['scale']:>7.2f}   {box}{edge}")
    count = {0: "no objects", 1: "1 object"}.get(len(objects), f"{len(objects)} objects")
    lines.append(f"{count}: {', '.join(result['files'])}")
    return "\n".join(lines)


def remarks(result: dict[str, Any], about: About, prepared: Tensor, network: Any) -> list[str]:
    """What a user should know about this result."""
    from scalechannels.commands.predict import _border_mean

    said = []
    edge = sum(one["at_edge"] for one in result["objects"])
    if edge:
        grid = network.grid
        said.append(
            f"warning: {edge} of {len(result['objects'])} objects were decided by the first or last scale of "
            f"the grid ({grid.minimum:.3g} to {grid.maximum:.3g}) and may be smaller or larger than their "
            "boxes: take a network with a wider range of scales"
        )
    if about.background is None:
        said.append(
            "warning: this network has no background class, so that it answers where there is no object; "
            f"raise --threshold (now {result['threshold']:g}) until only objects remain"
        )
    if about.values == "digits" and prepared.amax() > prepared.amin():
        middle = (prepared.amin() + prepared.amax()) / 2
        if _border_mean(prepared) > middle:
            said.append(
                "warning: the image looks dark on light, the network learnt light on dark: try --invert"
            )
    return said
