"""`scalechannels predict`: class, probability and scale of image files, as CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from cyclopts import Parameter

from scalechannels.cli import Device, Invert, MaxPixels, NetworkFolder, ValueRange, require_device
from scalechannels.commands.evaluate import Coarse
from scalechannels.saving.shipped import find_network

if TYPE_CHECKING:
    from torch import Tensor

Values = Literal["digits", "unit"]
BATCH = 64
BACKGROUND, DETECTOR_FILE = "background", "detector.json"


class Prediction(NamedTuple):
    """What a network says about one image."""

    path: str
    label: str
    probability: float
    scale: float | None
    """σ of the channel that contributes most; None for networks without channels."""
    at_edge: bool | None
    """Whether that channel is the first or last of the grid: the object may be smaller or larger still."""
    contributions: list[float] | None
    """The share of every channel in the winning class."""


def predict(
    network: NetworkFolder,
    images: Annotated[list[Path], Parameter(help="Image files, or folders that are searched for them.")],
    /,
    *,
    out: Annotated[Path | None, Parameter(help="A .csv or .json file; by default CSV on the screen.")] = None,
    invert: Invert = False,
    values: ValueRange = None,
    max_pixels: MaxPixels = None,
    coarse: Coarse = None,
    device: Device = None,
) -> None:
    """Class, probability and estimated scale of images, and what each scale channel contributes.

    The object is looked for at the centre of its image, which may have any size. The scale is the σ of the
    strongest channel, which looks at σ·28 pixels (σ·32 for CIFAR-10, σ·window for own images); at_edge says
    that it is the first or last of the grid, so that the object may be smaller or larger still: then the
    range of the channels should be widened.

    Networks for digits learnt white digits on black: each image is made grey, its darkest pixel becomes
    −0.76 and its brightest 0.76, as in MNIST Large Scale. Give --invert for ink on paper. Networks for own
    images and for colour take 0 to 1. Unreadable files are named and left out, and the exit code is 1.

    Examples: scalechannels predict runs/NAME digit.png;
    scalechannels predict runs/NAME scans/ --invert --out classes.csv
    """
    if out is not None and out.suffix.lower() not in (".csv", ".json"):
        raise ValueError(f"--out takes a .csv or a .json file, got {out}")
    from scalechannels.commands.evaluate import open_network, require_free

    if out is not None:
        require_free(out)
    named, network = network, find_network(network)
    # Every image is refined: its scale is told, and the coarse channels alone would tell it coarsely.
    loaded = open_network(network, coarse, sure=1.0).to(require_device(device))
    paths = image_paths(images)
    reader = Reader(
        getattr(loaded.backbone, "channels", 3) == 1,
        values or values_of(network, loaded),
        invert,
        reduction_of(network),
        max_pixels,
    )
    predictions = list(predict_images(loaded, reader, paths, class_names(network)))
    text = (
        as_json(predictions)
        if out is not None and out.suffix.lower() == ".json"
        else as_csv(predictions, [scale * reader.reduce for scale in getattr(loaded, "grid", ())])
    )
    if out is None:
        print(text, end="")
    else:
        from scalechannels.files import atomic_path

        with atomic_path(out) as temporary:
            temporary.write_text(text, encoding="utf-8")
        print(f"{out}: {len(predictions)} of {len(paths)} images")
    if reader.dark_on_light and not invert:
        print(
            f"warning: {reader.dark_on_light} of {len(paths)} images look dark on light, and this "
            "network learnt light on dark: try --invert",
            file=sys.stderr,
        )
    nothing = sum(one.label == BACKGROUND for one in predictions)
    if nothing and (network / DETECTOR_FILE).exists():
        print(
            f"warning: {nothing} of {len(predictions)} images are background as a whole to this "
            f"detector, at its surest scale; scalechannels detect IMAGE --network {named} finds the "
            "objects in them",
            file=sys.stderr,
        )
    for line in edge_warnings(predictions, getattr(loaded, "grid", ()), deployed_sizes(network)):
        print(f"warning: {line}", file=sys.stderr)
    if reader.unreadable:
        sys.exit(1)


def edge_warnings(
    predictions: Sequence[Prediction], grid: Sequence[float], deployed: Sequence[float] | None = None
) -> list[str]:
    """What to do where the winning scale lies at an end of the grid: nothing there tells a size beyond it.

    grid       of the network, as --network.low and --network.high say it
    deployed   the pixel sizes that set the grid, where such were given: then these are to be widened
    """
    from scalechannels.report.own_images import wider

    warnings = []
    # Where a pixel measures more, objects are smaller.
    for place, end, beyond, option, pixels in (
        (0, "smallest", "smaller", "low", max(deployed or (1,)) * 2),
        (-1, "largest", "larger", "high", min(deployed or (1,)) / 2),
    ):
        ended = [one for one in predictions if one.at_edge and _strongest(one) == place % _channels(one)]
        if ended:
            advice = (
                f"--deploy-pixel-sizes that reach to {pixels:g}"
                if deployed
                else f"--network.{option} {wider(grid, -1 if option == 'low' else 1)}"
            )
            warnings.append(
                f"{len(ended)} of {len(predictions)} images, such as {ended[0].path}: the strongest channel "
                f"is the {end} (σ = {ended[0].scale or 1:.3g}), so the object may be {beyond} than any "
                f"channel is for. Widen the range: train with {advice}"
            )
    return warnings


def _strongest(one: Prediction) -> int:
    shares = one.contributions or [0.0]
    return shares.index(max(shares))


def _channels(one: Prediction) -> int:
    return len(one.contributions or [0.0])


class Reader:
    """Reads files as the network wants them, and keeps account of those that it cannot."""

    def __init__(
        self, grey: bool, values: Values, invert: bool, reduce: int = 1, max_pixels: int | None = None
    ) -> None:
        self.grey, self.values, self.invert = grey, values, invert
        self.reduce, self.max_pixels = reduce, max_pixels
        self.unreadable = 0
        self.dark_on_light = 0

    def read(self, paths: Iterable[Path]) -> Iterator[tuple[Path, Tensor]]:
        """Every readable path with its image (C, H, W); the others are named on stderr."""
        from scalechannels.data.folder import MAX_PIXELS, UnreadableImageError, read_image
        from scalechannels.data.frames import reduced

        for path in paths:
            try:
                image = read_image(path, grey=self.grey, max_pixels=self.max_pixels or MAX_PIXELS)
            except UnreadableImageError as error:
                print(f"error: {error}", file=sys.stderr)
                self.unreadable += 1
                continue
            if self.invert:
                image = 1 - image
            if self.values == "digits":
                self.dark_on_light += bool(_border_mean(image) > (image.amin() + image.amax()) / 2)
                image = as_digits(image)
            yield path, reduced(image, self.reduce)


def as_digits(image: Tensor) -> Tensor:
    """Values from 0 to 1 as MNIST Large Scale has them: I from 0 to 255, then (2/π)·arctan(0.02·(I − 128)).

    An image of one grey is all background.
    """
    import math

    from scalechannels.data.mnist_large_scale import GAIN, MIDDLE

    contrast = image.amax() - image.amin()
    stretched = (image - image.amin()) / contrast.clamp_min(1e-6) * 255
    return 2 / math.pi * (GAIN * (stretched - MIDDLE)).atan()


def predict_images(
    network: Any, reader: Reader, paths: Sequence[Path], classes: Sequence[str] | None
) -> Iterator[Prediction]:
    """One prediction for each readable image, in order; neighbours of one size go through together."""
    import torch

    waiting: list[tuple[Path, Tensor]] = []
    with torch.inference_mode():
        for path, image in reader.read(paths):
            if waiting and (len(waiting) == BATCH or waiting[0][1].shape != image.shape):
                yield from _predict_batch(network, waiting, classes, reader.reduce)
                waiting = []
            waiting.append((path, image))
        if waiting:
            yield from _predict_batch(network, waiting, classes, reader.reduce)


def _predict_batch(
    network: Any, batch: Sequence[tuple[Path, Tensor]], classes: Sequence[str] | None, reduce: int = 1
) -> Iterator[Prediction]:
    import torch

    device = next(network.parameters()).device
    images = torch.stack([image for _, image in batch]).to(device)  # (B, C, H, W)
    try:
        said = network.explain(images)
    except ValueError as error:
        raise ValueError(f"{batch[0][0]}: {error}") from error
    shares = said.contributions  # (B, S), or None without channels
    probabilities, labels = said.logits.softmax(1).max(1)
    for index, (path, _) in enumerate(batch):
        label = int(labels[index])
        named = classes[label] if classes is not None else str(label)
        scale = at_edge = contributions = None
        if shares is not None:
            strongest, last = int(shares[index].argmax()), len(network.grid) - 1
            # One channel alone has no range that could be widened.
            scale, at_edge = network.grid[strongest] * reduce, last > 0 and strongest in (0, last)
            contributions = shares[index].tolist()
        yield Prediction(str(path), named, float(probabilities[index]), scale, at_edge, contributions)


def image_paths(given: Sequence[Path]) -> list[Path]:
    """The files as given, and every image below the folders, in the order of their names."""
    from scalechannels.data.folder import SUFFIXES

    paths: list[Path] = []
    for path in given:
        if path.is_dir():
            inside = [
                found
                for found in sorted(path.rglob("*"))
                if found.suffix.lower() in SUFFIXES and not found.name.startswith(".") and found.is_file()
            ]
            if not inside:
                raise ValueError(f"no images ({', '.join(SUFFIXES)}) in {path}")
            paths += inside
        elif path.exists():
            paths.append(path)
        else:
            raise FileNotFoundError(f"{path} does not exist; give image files or folders of them")
    return paths


def values_of(folder: Path, network: Any) -> Values:
    """The range of values that a network learnt from: what its run says, else by its colour channels."""
    from scalechannels.commands.evaluate import run_config

    config = run_config(folder)
    if config is not None:
        return "unit" if config.data.name in ("cifar10", "folder") else "digits"
    return "digits" if getattr(network.backbone, "channels", 3) == 1 else "unit"


def reduction_of(folder: Path) -> int:
    """How many times smaller a run makes its images before it looks at them; 1 for all but own images."""
    from scalechannels.commands.evaluate import run_config

    config = run_config(folder)
    return 1 if config is None else config.data.reduce or 1


def deployed_sizes(folder: Path) -> tuple[float, ...] | None:
    """The pixel sizes that set a run's channels; None where no run says them."""
    from scalechannels.commands.evaluate import run_config

    config = run_config(folder)
    return None if config is None or config.data.pixel_size is None else config.data.deploy_pixel_sizes


def class_names(folder: Path) -> list[str] | None:
    """The names of a run's classes, or of a detector's with the background; None where nothing says them."""
    from scalechannels.training.runs import RESULT

    if (folder / DETECTOR_FILE).exists():
        from scalechannels.commands.detect import read_detector

        about = read_detector(folder / DETECTOR_FILE)
        names = list(about.classes or ())
        if about.background is not None:
            names.insert(about.background, BACKGROUND)
        return names
    path = folder / RESULT
    return json.loads(path.read_text(encoding="utf-8"))["classes"] if path.exists() else None


def as_csv(predictions: Sequence[Prediction], scales: Sequence[float]) -> str:
    """One line for each image; one column for each channel."""
    from scalechannels.report.text import size_name

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    heads = ["path", "class", "probability", "scale", "at_edge"]
    channels = [f"channel_{size_name(scale)}" for scale in scales]
    writer.writerow(heads + channels)
    for one in predictions:
        scale = "" if one.scale is None else f"{one.scale:.4g}"
        edge = "" if one.at_edge is None else str(one.at_edge).lower()
        shares = [f"{share:.4f}" for share in one.contributions or [float("nan")] * len(channels)]
        writer.writerow([one.path, one.label, f"{one.probability:.4f}", scale, edge, *shares])
    return text.getvalue()


def as_json(predictions: Sequence[Prediction]) -> str:
    rows = [
        {"class" if key == "label" else key: value for key, value in one._asdict().items()}
        for one in predictions
    ]
    return json.dumps(rows, indent=1) + "\n"


def _border_mean(image: Tensor) -> Tensor:
    """The mean of the outermost rows and columns of (C, H, W)."""
    import torch

    edges = (image[:, 0], image[:, -1], image[:, :, 0], image[:, :, -1])
    return torch.cat([edge.flatten() for edge in edges]).mean()
