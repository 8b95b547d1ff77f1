"""`scalechannels detect`: objects of any size anywhere in an image, as JSON and as a picture."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from scalechannels.cli import LOOKING, LookingOptions, NetworkFolder, ending, must, require_device

if TYPE_CHECKING:
    from torch import Tensor

    from scalechannels.saving.saved_network import SavedNetwork


def detect(
    image: Annotated[Path, Parameter(help="The image file.")],
    /,
    *,
    network: NetworkFolder = Path("digit-detector"),
    json_file: Annotated[
        Path | None,
        Parameter(
            name="--json",
            help="The JSON file to write; by default IMAGE-detections.json in the current folder.",
            validator=ending(".json"),
        ),
    ] = None,
    overlay: Annotated[
        Path | None,
        Parameter(
            help="The PNG to write, with the boxes; by default IMAGE-detections.png in the current folder.",
            validator=ending(".png"),
        ),
    ] = None,
    look: Annotated[
        Literal["everywhere", "interest"],
        Parameter(
            help="Search everywhere, or only at interest points, which is faster but finds fewer objects."
        ),
    ] = "everywhere",
    threshold: Annotated[
        float | None,
        Parameter(
            help="Minimum probability of an object; by default 0.5, or 0.9 without a background class.",
            validator=must(lambda least: 0 <= least < 1, "be a probability of at least 0 and below 1"),
        ),
    ] = None,
    options: LookingOptions = LOOKING,
) -> None:
    """Find objects of any size anywhere in an image, list them, and draw their boxes.

    The shipped digit-detector finds handwritten digits from 14 to 112 pixels. It was trained on white digits
    of 28 pixels on black, with a background class for everything else. Any other scale-channel network will
    do if its backbone is fully convolutional. A network without a background class finds objects everywhere:
    raise --threshold until only real objects are left.

    A box is about the square that the deciding scale channel saw: x0, y0, x1, y1 in pixels, where the centre
    of the first pixel is 0, 0. The size (the scale in the JSON file) is the side of the box divided by the
    side of the network's window; for digits, 1 is a box of 28 pixels. An object is marked "at the edge of the
    scales" if the deciding channel is the smallest or the largest. The object may then be smaller or larger
    than its box: use a network with a wider range of scales.

    For networks trained on digits, the image is first stretched to full contrast, as in
    `scalechannels predict`.

    For example:

    - scalechannels data scene scene.png
    - scalechannels detect scene.png
    - scalechannels detect page.jpg --invert --threshold 0.9 --look interest
    """
    json_file = json_file or Path(f"{image.stem}-detections.json")
    overlay = overlay or Path(f"{image.stem}-detections.png")
    if overlay.resolve() == image.resolve():
        raise ValueError(f"--overlay would replace the image '{image}'; choose another name")

    from scalechannels.data.decoding import MAX_PIXELS
    from scalechannels.data.frames import reduced
    from scalechannels.data.image_files import written
    from scalechannels.data.pictures import as_taken, read_image
    from scalechannels.detection.detector import Detector, enlarged
    from scalechannels.detection.overlay import draw
    from scalechannels.files import atomic_path, require_writable, write_text
    from scalechannels.saving.saved_network import SavedNetwork, require_free

    require_free(json_file)
    for path in (json_file, overlay):
        require_writable(path)
    saved = SavedNetwork.open(network)
    if not image.is_file():
        trouble = "is a folder; detect takes one image file" if image.is_dir() else "does not exist"
        raise FileNotFoundError(f"'{image}' {trouble}")
    on = require_device(options.device)
    if threshold is None:
        threshold = saved.threshold
    try:
        detector = Detector(saved.network.to(on), background=saved.background, threshold=threshold)
    except TypeError as error:  # a backbone that cannot slide
        raise ValueError(f"'{network}' cannot detect: {error}") from error
    limit = options.max_pixels or MAX_PIXELS
    picture = read_image(image, grey=saved.grey, max_pixels=limit)  # (C, H, W), 0 to 1
    taken = as_taken(picture, options.values or saved.values, options.invert)
    prepared = reduced(taken, saved.reduce).to(on)
    found = detector(prepared) if look == "everywhere" else detector.at_interest_points(prepared)
    found = [enlarged(one, saved.reduce, prepared.shape, picture.shape) for one in found]
    result: dict[str, Any] = {
        "image": written(image),
        "height": picture.shape[1],
        "width": picture.shape[2],
        "network": str(network),
        "look": look,
        "threshold": threshold,
        "objects": [
            {
                "class": saved.classes[one.label] if saved.classes else str(one.label),
                "probability": round(one.probability, 6),
                "box": [round(edge, 2) for edge in one.box],
                "scale": round(one.scale, 4),
                "at_edge": one.at_edge,
            }
            for one in found
        ],
    }
    write_text(json_file, json.dumps(result, indent=1) + "\n")
    with atomic_path(overlay) as temporary:
        draw(picture, result["objects"]).save(temporary, format="png")
    print(table(result["objects"], (written(json_file), written(overlay))))
    for remark in remarks(result, saved, prepared):
        print(f"warning: {remark}", file=sys.stderr)


def table(objects: Sequence[dict[str, Any]], files: Sequence[str]) -> str:
    """One line for each object, the files below."""
    lines = [f"{'class':>8}{'probability':>13}{'size':>7}   x0, y0, x1, y1"] if objects else []
    for one in objects:
        box = ", ".join(f"{edge:.1f}" for edge in one["box"])
        edge = "   at the edge of the scales" if one["at_edge"] else ""
        lines.append(f"{one['class']:>8}{one['probability']:>13.3f}{one['scale']:>7.2f}   {box}{edge}")
    count = {0: "no objects", 1: "1 object"}.get(len(objects), f"{len(objects)} objects")
    return "\n".join([*lines, f"{count}: {', '.join(files)}"])


def remarks(result: dict[str, Any], saved: SavedNetwork, prepared: Tensor) -> Iterator[str]:
    """What a user should know about this result."""
    from scalechannels.data.pictures import is_dark_on_light

    edge = sum(one["at_edge"] for one in result["objects"])
    if edge:
        grid = saved.network.grid
        yield (
            f"{edge} of {len(result['objects'])} objects were found by the smallest or the largest scale "
            f"channel (σ = {grid.minimum:.3g} or {grid.maximum:.3g}) and may be smaller or larger than "
            "their boxes; use a network with a wider range of scales"
        )
    if saved.background is None and not result["objects"]:
        yield f"no object has a probability of {result['threshold']:g}; lower --threshold to see others"
    elif saved.background is None:
        yield (
            "this network has no background class, so it may find objects where there are none; raise "
            f"--threshold (now {result['threshold']:g}) until only real objects are left"
        )
    if saved.values == "digits" and is_dark_on_light(prepared):
        yield "the image looks dark on light, but this network expects light objects on dark; try --invert"
