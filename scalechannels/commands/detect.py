"""`scalechannels detect`: objects of any size anywhere in images, as JSON, tables and pictures."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from scalechannels.cli import LOOKING, LookingOptions, NetworkFolder, ending, must, require_device

if TYPE_CHECKING:
    from torch import Tensor

    from scalechannels.saving.saved_network import SavedNetwork


def detect(
    *images: Annotated[
        Path, Parameter(help="Image files, folders of them, or patterns such as 'photos/*.jpg'.")
    ],
    network: NetworkFolder = Path("digit-detector"),
    json_file: Annotated[
        Path | None,
        Parameter(
            name="--json",
            help="The JSON file to write; by default IMAGE-detections.json, or detections.json for several "
            "images, in the current folder.",
            validator=ending(".json"),
        ),
    ] = None,
    overlay: Annotated[
        Path | None,
        Parameter(
            help="The PNG to write, with the boxes; by default IMAGE-detections.png in the current folder. "
            "For several images, a folder.",
        ),
    ] = None,
    coco: Annotated[
        Path | None,
        Parameter(help="Also write all boxes as COCO's JSON, scores included.", validator=ending(".json")),
    ] = None,
    csv: Annotated[
        Path | None,
        Parameter(
            help="Also write all boxes as a table: image_path, xmin, ymin, xmax, ymax, label, score, "
            "object_score.",
            validator=ending(".csv"),
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
            help="Minimum probability of an object; by default the one the detector was trained with, else "
            "0.5, or 0.9 without a background class.",
            validator=must(lambda least: 0 <= least < 1, "be a probability of at least 0 and below 1"),
        ),
    ] = None,
    options: LookingOptions = LOOKING,
) -> None:
    """Find objects of any size anywhere in images, list them, and draw their boxes.

    The shipped digit-detector finds handwritten digits from 14 to 112 pixels. It was trained on white digits
    of 28 pixels on black, with a background class for everything else. Train a detector of your own objects
    with `scalechannels train --data boxes.json`. Any other scale-channel network will do if its backbone is
    fully convolutional. A network without a background class finds objects everywhere: raise --threshold
    until only real objects are left.

    A box is x0, y0, x1, y1 in pixels, where the centre of the first pixel is 0, 0; with --coco and --csv,
    pixels are counted from the image's corner, as these formats do. The probability is that of an object of
    this class (score in COCO and CSV files), and the object probability that of an object of any class
    (object_score). The size (the scale in the JSON file)
    is the longer side of the box divided by that of an object which fits channel 1; for digits, 1 is a box of
    28 pixels. An object is marked "at the edge of the scales" if the deciding channel is the smallest or the
    largest. The object may then be smaller or larger than its box: use a network with a wider range of
    scales.

    For networks trained on digits, the image is first stretched to full contrast, as in
    `scalechannels predict`. Of several files, unreadable ones are reported and skipped. The exit code is
    then 1.

    For example:

    - scalechannels data scene scene.png
    - scalechannels detect scene.png
    - scalechannels detect photos/ --network runs/NAME --csv found.csv
    - scalechannels detect page.jpg --invert --threshold 0.9 --look interest
    """
    from scalechannels.detection.found_files import expanded

    files = expanded(images)
    several = len(files) > 1 or images[0].is_dir()
    json_file = json_file or Path("detections.json" if several else f"{files[0].stem}-detections.json")
    overlay = overlay or Path("detections" if several else f"{files[0].stem}-detections.png")
    if not several and (overlay.suffix.lower() != ".png" or overlay.is_dir()):
        raise ValueError(f"--overlay must end in .png; got '{overlay}'")
    if several and overlay.suffix.lower() == ".png":
        raise ValueError(f"--overlay must be a folder for several images; got '{overlay}'")
    pictures = {file: overlay / f"{name}.png" if several else overlay for file, name in named(files).items()}
    taken = {file.resolve() for file in files}
    for picture in pictures.values():
        if picture.resolve() in taken:
            raise ValueError(f"--overlay would replace the image '{picture}'; choose another name")

    from scalechannels.data.decoding import UnreadableImageError
    from scalechannels.data.image_files import written
    from scalechannels.detection.detector import Detector
    from scalechannels.detection.found_files import as_coco, as_table
    from scalechannels.files import make_folder, require_writable, require_writable_folder, write_text
    from scalechannels.saving.saved_network import SavedNetwork, require_free

    require_free(json_file)
    for path in (json_file, *((coco,) if coco else ()), *((csv,) if csv else ())):
        require_writable(path)
    if several:
        require_writable_folder(overlay)
    else:
        require_writable(overlay)
    saved = SavedNetwork.open(network)
    on = require_device(options.device)
    if threshold is None:
        threshold = saved.threshold
    try:
        detector = Detector(saved.network.to(on), threshold=threshold)
    except TypeError as error:  # a backbone that cannot slide
        raise ValueError(f"'{network}' cannot detect: {error}") from error
    if several:
        make_folder(overlay)
    results = []
    for number, file in enumerate(files, start=1):
        try:
            result, remarked = found_in(file, detector, saved, network, look, options, pictures[file])
        except UnreadableImageError as error:
            if not several:
                raise
            print(f"error: {error}", file=sys.stderr)  # what is found in the others is not lost
            continue
        results.append(result)
        if several:
            objects = counted(result["objects"])
            print(f"{number} of {len(files)}: {result['image']}: {objects}", file=sys.stderr, flush=True)
        else:
            files_written = [written(path) for path in (json_file, overlay, coco, csv) if path]
            print(table(result["objects"], files_written))
        for remark in remarked:
            print(f"warning: {remark}", file=sys.stderr)
    if not results:
        sys.exit(1)  # every file was reported
    write_text(json_file, json.dumps(results if several else results[0], indent=1) + "\n")
    names = saved.classes or sorted({one["class"] for result in results for one in result["objects"]})
    if coco:
        write_text(coco, json.dumps(as_coco(results, names), indent=1) + "\n")
    if csv:
        write_text(csv, as_table(results))
    if several:
        total = counted([one for result in results for one in result["objects"]])
        files_written = [written(path) for path in (json_file, overlay, coco, csv) if path]
        print(f"{total} in {len(results)} images: {', '.join(files_written)}")
    if len(results) < len(files):
        sys.exit(1)


def found_in(
    file: Path,
    detector: Any,
    saved: SavedNetwork,
    network: Path,
    look: str,
    options: LookingOptions,
    overlay: Path,
) -> tuple[dict[str, Any], list[str]]:
    """What is in one image, as the JSON has it, and what a user should know; the picture is written."""
    from scalechannels.data.decoding import MAX_PIXELS
    from scalechannels.data.frames import reduced
    from scalechannels.data.image_files import written
    from scalechannels.data.pictures import as_taken, read_image
    from scalechannels.detection.found import enlarged
    from scalechannels.detection.overlay import draw
    from scalechannels.files import atomic_path
    from scalechannels.network import NotFiniteError

    limit = options.max_pixels or MAX_PIXELS
    picture = read_image(file, grey=saved.grey, max_pixels=limit)  # (C, H, W), 0 to 1
    smaller = reduced(picture, saved.reduce)
    prepared = as_taken(smaller, options.values or saved.values, options.invert)
    prepared = prepared.to(next(detector.network.parameters()).device)
    try:
        found = detector(prepared) if look == "everywhere" else detector.at_interest_points(prepared)
    except NotFiniteError as error:
        raise NotFiniteError(f"'{written(file)}': {error}") from error
    found = [enlarged(one, saved.reduce, prepared.shape, picture.shape) for one in found]
    result: dict[str, Any] = {
        "image": written(file),
        "height": picture.shape[1],
        "width": picture.shape[2],
        "network": str(network),
        "look": look,
        "threshold": detector.threshold,
        "objects": [
            {
                "class": saved.classes[one.label] if saved.classes else str(one.label),
                "probability": round(one.probability, 6),
                "object_probability": round(one.object_probability, 6),
                "box": [round(edge, 2) for edge in one.box],
                "scale": round(one.scale, 4),
                "at_edge": one.at_edge,
            }
            for one in found
        ],
    }
    remarked = list(remarks(result, saved, prepared))
    if saved.grey:  # drawn in colour all the same, once the room that the search took is free again
        del smaller, prepared
        picture = read_image(file, max_pixels=limit)
    with atomic_path(overlay) as temporary:
        draw(picture, result["objects"], saved.classes).save(temporary, format="png")
    return result, remarked


def named(files: Sequence[Path]) -> dict[Path, str]:
    """A name for the picture of each file: its stem; with its folder where two have the same stem, and a
    number where these are the same, too. Small and large letters count as the same: some disks take them so.
    """
    stems = Counter(file.stem.lower() for file in files)
    names: dict[Path, str] = {}
    taken: set[str] = set()
    for file in files:
        whole = "-".join((*file.parts[-2:-1], file.name)).strip("/")
        own = name = file.stem if stems[file.stem.lower()] == 1 else whole
        number = 2
        while name.lower() in taken:
            name, number = f"{own}-{number}", number + 1
        taken.add(name.lower())
        names[file] = f"{name}-detections"
    return names


def counted(objects: Sequence[Any]) -> str:
    return {0: "no objects", 1: "1 object"}.get(len(objects), f"{len(objects)} objects")


def table(objects: Sequence[dict[str, Any]], files: Sequence[str]) -> str:
    """One line for each object, the files below."""
    width = max(8, *(len(one["class"]) + 2 for one in objects)) if objects else 8
    lines = [f"{'class':>{width}}{'probability':>13}{'size':>7}   x0, y0, x1, y1"] if objects else []
    for one in objects:
        box = ", ".join(f"{edge:.1f}" for edge in one["box"])
        edge = "   at the edge of the scales" if one["at_edge"] else ""
        lines.append(f"{one['class']:>{width}}{one['probability']:>13.3f}{one['scale']:>7.2f}   {box}{edge}")
    return "\n".join([*lines, f"{counted(objects)}: {', '.join(files)}"])


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
