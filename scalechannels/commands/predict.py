"""`scalechannels predict`: class, probability, scale and place of image files, as CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from scalechannels.cli import LOOKING, LookingOptions, NetworkFolder, ending, require_device
from scalechannels.scales import octave_beyond

if TYPE_CHECKING:
    from torch import Tensor

    from scalechannels.saving.saved_network import SavedNetwork

BATCH = 64  # images that go through the network together, at most
BATCH_PIXELS = 4_000_000
"""And at most so many pixels, so that memory stays bounded; one image may have more, and goes alone."""


class Prediction(NamedTuple):
    """What a network says about one image."""

    path: str
    """As it is written: bytes of a name that are not UTF-8 as \\xff."""
    label: str
    probability: float
    scale: float | None
    """σ of the channel that contributes most; None for networks without channels."""
    at_edge: bool | None
    """Whether that channel is the first or the last, so that the object may lie beyond."""
    contributions: list[float] | None
    """The share of every channel in the winning class."""
    row: float | None = None
    column: float | None = None
    """Of the centre of the deciding window, in pixels of the file; None for networks that look at the centre
    alone."""
    size: float | None = None
    """The object's, in times of the training objects; None where nobody measured it."""
    pixels: float | None = None
    """The same in pixels of the file."""
    probabilities: dict[str, float] | None = None
    """Of all classes."""

    def ends_at(self, place: int) -> bool:
        """Whether the strongest channel is the first (0) or the last (−1)."""
        shares = self.contributions or [0.0]
        return shares.index(max(shares)) == place % len(shares)


class Taken(NamedTuple):
    """An image as the network takes it."""

    path: Path
    image: Tensor  # (C, H, W), reduced where the network was trained on reduced images
    size: tuple[int, int]
    """Height and width of the file."""


def predict(
    network: NetworkFolder,
    images: Annotated[list[Path], Parameter(help="Image files, or folders to search for image files.")],
    /,
    *,
    out: Annotated[
        Path | None,
        Parameter(
            help="The CSV or JSON file to write; by default CSV is printed.",
            validator=ending(".csv", ".json"),
        ),
    ] = None,
    draw: Annotated[
        Path | None,
        Parameter(help="A folder for pictures: each image with the window that decided, as PNG."),
    ] = None,
    options: LookingOptions = LOOKING,
) -> None:
    """Predict the class of each image, its probability, and the object's scale and place.

    The object should be at the centre of its image, unless the network was trained to look everywhere
    (--network.look everywhere). The image may have any size (plain CNNs for digits need 112x112 pixels).
    There is one row for each image, with these columns:

    - class and probability: the most likely class, and how likely it is
    - scale: σ of the strongest scale channel, which sees a window of σ·28 pixels (σ·32 for CIFAR-10, σ·window
      for your own images)
    - at_edge: true if the strongest channel is the smallest or the largest one. The object may then be
      smaller or larger than any channel expects: train a network with a wider range of scales.
    - row and column: the centre of the window that decided, in pixels of the file counted from 0 at the
      centre of the upper left one; only for networks that look everywhere
    - size and pixels: how large the object is, in times of the training objects and in pixels of the file,
      right to about half an octave; only for networks with channels that were trained on your own images
    - probability_CLASS: of each class
    - channel_σ: how much each channel contributes to the class

    Networks for digits expect white digits on black; give --invert for ink on paper. For these networks each
    image is made grey and stretched to full contrast, from −0.76 to 0.76. Other networks take values from 0
    to 1.

    Unreadable files are reported and skipped. The exit code is then 1. Bytes of a file's name that are not
    UTF-8 are written as \\xff.

    For example:

    - scalechannels predict runs/NAME digit.png
    - scalechannels predict runs/NAME scans/ --invert --out classes.csv
    - scalechannels predict runs/NAME photos/ --out classes.csv --draw windows
    """
    from scalechannels.data.image_files import written
    from scalechannels.saving.saved_network import SavedNetwork, require_free

    if out is not None:
        from scalechannels.files import require_writable

        require_free(out)
        require_writable(out)
    if draw is not None:
        from scalechannels.files import require_writable_folder

        require_writable_folder(draw)
    saved = SavedNetwork.open(network)
    if draw is not None and not saved.scales:
        raise ValueError(f"--draw shows the window of a scale channel, and '{network}' has no channels")
    if saved.detector is not None:
        raise ValueError(f"'{network}' is a detector: use scalechannels detect IMAGES --network {network}")
    saved.network.to(require_device(options.device))
    paths = image_paths(images)
    dark: list[Path] = []
    predictions, drawn = [], Drawings(draw, saved)
    for path, one in predict_images(saved, read_images(paths, saved, options, dark)):
        predictions.append(one)
        drawn.add(path, one, options)
    if not predictions:
        sys.exit(1)  # every file was reported
    as_table = out is None or out.suffix.lower() == ".csv"
    text = as_csv(predictions, saved.scales) if as_table else as_json(predictions)
    if out is None:
        print(text, end="")
    else:
        from scalechannels.files import write_text

        write_text(out, text)
        print(f"{written(out)}: {len(predictions)} of {len(paths)} images")
        if draw is not None:
            print(f"{written(draw)}: {len(drawn.names)} pictures")
    for remark in remarks(predictions, saved, 0 if options.invert else len(dark), network):
        print(f"warning: {remark}", file=sys.stderr)
    if len(predictions) < len(paths):
        sys.exit(1)


def image_paths(given: Sequence[Path]) -> list[Path]:
    """The files as given, and every image below the folders, in the order of their names.

    A warning names what is left out of a folder.
    """
    from scalechannels.data.image_files import find_images, left_out, suffixes, warn_of_left_out
    from scalechannels.saving.saved_network import CONFIG, RUN

    paths: list[Path] = []
    for path in given:
        if not path.exists():
            raise FileNotFoundError(f"'{path}' does not exist; give image files or folders of images")
        if (path / RUN).exists() or (path / CONFIG).exists():
            raise ValueError(f"IMAGES must be image files or folders of them; '{path}' is a network's folder")
        if not path.is_dir():
            paths.append(path)
            continue
        found = find_images(path)
        if not found.images:
            others = f"; {left_out(path, found.left_out)}" if found.left_out else ""
            raise ValueError(f"'{path}' holds no images ({', '.join(suffixes())}){others}")
        warn_of_left_out(path, found.left_out)
        paths += found.images
    return paths


def read_images(
    paths: Iterable[Path], saved: SavedNetwork, options: LookingOptions, dark: list[Path]
) -> Iterator[Taken]:
    """Every readable image as the network takes it.

    Unreadable files are named on stderr. Where digits are expected, files that look dark on light are
    added to `dark`.
    """
    from scalechannels.data import pictures
    from scalechannels.data.decoding import MAX_PIXELS, UnreadableImageError

    values = options.values or saved.values
    limit = options.max_pixels or MAX_PIXELS
    for path in paths:
        try:
            image = pictures.read_image(path, grey=saved.grey, max_pixels=limit)
        except UnreadableImageError as error:
            print(f"error: {error}", file=sys.stderr)
            continue
        if values == "digits" and pictures.is_dark_on_light(image):
            dark.append(path)
        size = image.shape[1], image.shape[2]
        if saved.reduce > 1:
            from scalechannels.data.frames import reduced

            image = reduced(image, saved.reduce)
        image = pictures.as_taken(image, values, options.invert)
        yield Taken(path, image, size)
        del image  # before the next one is read


def predict_images(saved: SavedNetwork, images: Iterable[Taken]) -> Iterator[tuple[Path, Prediction]]:
    """One prediction for each image, in order; neighbours of one size go through together.

    Of large images one at a time is in memory.
    """
    batch: list[Taken] = []
    for one in images:
        if batch and one.image.shape != batch[0].image.shape:
            yield from predict_batch(saved, batch)
        batch.append(one)
        if len(batch) == BATCH or (len(batch) + 1) * one.image[0].numel() > BATCH_PIXELS:
            del one
            yield from predict_batch(saved, batch)
    if batch:
        yield from predict_batch(saved, batch)


def predict_batch(saved: SavedNetwork, batch: list[Taken]) -> list[tuple[Path, Prediction]]:
    """What the network says about some images of one shape; the list is then empty."""
    import torch

    from scalechannels.data.image_files import written
    from scalechannels.network import require_finite

    named_by, files = [written(one.path) for one in batch], [(one.path, one.size) for one in batch]
    device = next(saved.network.parameters()).device
    # One large image needs no copy.
    images = batch[0].image[None] if len(batch) == 1 else torch.stack([one.image for one in batch])
    images = images.to(device)  # (B, C, H, W)
    batch.clear()
    try:
        with torch.inference_mode():
            said = saved.network.explain(images)
    except ValueError as error:
        raise ValueError(f"'{named_by[0]}' cannot be used: {error}") from error
    require_finite(said.logits, named_by)
    shares = said.contributions  # (B, S), or None without channels
    probabilities = (said.logits / saved.temperature).softmax(1)  # (B, K)
    names = saved.names or [str(label) for label in range(probabilities.shape[1])]
    predictions = []
    for index, (path, size) in enumerate(files):
        label = int(probabilities[index].argmax())
        scale = at_edge = contributions = row = column = size_there = pixels = None
        if shares is not None:
            strongest, last = int(shares[index].argmax()), len(saved.scales) - 1
            # A single channel has no range that could be widened.
            scale, at_edge = saved.scales[strongest], last > 0 and strongest in (0, last)
            contributions = shares[index].tolist()
            size_there, pixels = saved.sizes_at(scale / saved.reduce)
        if said.places is not None:
            # A reduced image has the centre of the whole one.
            row, column = (
                (whole - 1) / 2 + saved.reduce * (place - (seen - 1) / 2)
                for place, seen, whole in zip(
                    said.places[index].tolist(), images.shape[2:], size, strict=True
                )
            )
        one = Prediction(
            named_by[index],
            names[label],
            float(probabilities[index, label]),
            scale,
            at_edge,
            contributions,
            row,
            column,
            size_there,
            pixels,
            dict(zip(names, probabilities[index].tolist(), strict=True)),
        )
        predictions.append((path, one))
    return predictions


class Drawings:
    """Pictures of what decided, under the names of their files; a name that comes again gets a number.

    folder     None draws nothing
    """

    def __init__(self, folder: Path | None, saved: SavedNetwork) -> None:
        self.folder, self.saved, self.names = folder, saved, set[str]()

    def add(self, path: Path, said: Prediction, options: LookingOptions) -> None:
        """Draw one image, read again: it was not kept."""
        if self.folder is None or said.scale is None:
            return
        from scalechannels.data import pictures
        from scalechannels.data.decoding import MAX_PIXELS
        from scalechannels.detection.overlay import draw
        from scalechannels.files import atomic_path

        picture = pictures.read_image(
            path, grey=self.saved.grey, max_pixels=options.max_pixels or MAX_PIXELS
        )  # (C, H, W)
        middle = [(side - 1) / 2 for side in picture.shape[1:]]
        row, column = (said.row, said.column) if said.row is not None else middle
        half = said.scale * self.saved.network.foveate.window / 2
        window = {
            "box": (column - half, row - half, column + half, row + half),
            "class": said.label,
            "probability": said.probability,
            "at_edge": said.at_edge,
        }
        with atomic_path(self.folder / self._name(path)) as temporary:
            draw(picture, [window]).save(temporary, format="png")

    def _name(self, path: Path) -> str:
        name, number = f"{path.stem}.png", 2
        while name in self.names:
            name, number = f"{path.stem}-{number}.png", number + 1
        self.names.add(name)
        return name


def remarks(
    predictions: Sequence[Prediction], saved: SavedNetwork, dark: int, network: Path
) -> Iterator[str]:
    """What a user should know about these results, where so many images look dark on light."""
    if dark:
        yield (
            f"{dark} of {len(predictions)} images look dark on light, but this network "
            "expects light objects on dark; try --invert"
        )
    empty = sum(one.label == "background" for one in predictions)
    if empty and saved.background is not None:
        yield (
            f"this detector sees only background at the centre of {empty} of {len(predictions)} images; to "
            f"search a whole image, use scalechannels detect IMAGE --network {network}"
        )
    yield from edge_warnings(predictions, getattr(saved.network, "grid", ()), saved.deployed)


def edge_warnings(
    predictions: Sequence[Prediction], grid: Sequence[float], deployed: Sequence[float] | None = None
) -> list[str]:
    """What to do where the winning scale lies at an end of the grid: no channel lies beyond it.

    grid       of the network, as --network.low and --network.high say it
    deployed   the pixel sizes that set the grid, if any: these are to be widened instead
    """
    warnings = []
    # Where a pixel measures more, objects are smaller.
    for place, end, beyond, option, pixels in (
        (0, "smallest", "smaller", "low", max(deployed or (1,)) * 2),
        (-1, "largest", "larger", "high", min(deployed or (1,)) / 2),
    ):
        ended = [one for one in predictions if one.at_edge and one.ends_at(place)]
        if ended:
            advice = (
                f"--deploy-pixel-sizes that reach to {pixels:g}"
                if deployed
                else f"--network.{option} {octave_beyond(grid, -1 if option == 'low' else 1)}"
            )
            warnings.append(
                f"in {len(ended)} of {len(predictions)} images, such as '{ended[0].path}', the strongest "
                f"channel is the {end} (σ = {ended[0].scale or 1:.3g}), so the object may be {beyond} than "
                f"any channel expects. To widen the range, train again with the same options and {advice}"
            )
    return warnings


def as_csv(predictions: Sequence[Prediction], scales: Sequence[float]) -> str:
    """One line for each image; one column for each channel."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    channels = [f"channel_{scale:.3f}".rstrip("0").rstrip(".") for scale in scales]
    places = ("row", "column", "size", "pixels")
    where = [name for name in places if any(getattr(one, name) is not None for one in predictions)]
    classes = list(predictions[0].probabilities or ())
    of_classes = [f"probability_{name}" for name in classes]
    writer.writerow(["path", "class", "probability", "scale", "at_edge", *where, *of_classes, *channels])
    for one in predictions:
        scale = "" if one.scale is None else f"{one.scale:.4g}"
        edge = "" if one.at_edge is None else str(one.at_edge).lower()
        place = [f"{getattr(one, name):.{2 if name == 'size' else 1}f}" for name in where]
        likely = [f"{(one.probabilities or {})[name]:.4f}" for name in classes]
        shares = [f"{share:.4f}" for share in one.contributions or [float("nan")] * len(channels)]
        writer.writerow(
            [one.path, one.label, f"{one.probability:.4f}", scale, edge, *place, *likely, *shares]
        )
    return text.getvalue()


def as_json(predictions: Sequence[Prediction]) -> str:
    rows = [
        {
            "class" if key == "label" else key: value
            for key, value in one._asdict().items()
            if key not in ("row", "column", "size", "pixels") or value is not None
        }
        for one in predictions
    ]
    return json.dumps(rows, indent=1) + "\n"
