"""`scalechannels predict`: class, probability and scale of image files, as CSV or JSON."""

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

    def ends_at(self, place: int) -> bool:
        """Whether the strongest channel is the first (0) or the last (−1)."""
        shares = self.contributions or [0.0]
        return shares.index(max(shares)) == place % len(shares)


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
    options: LookingOptions = LOOKING,
) -> None:
    """Predict the class of each image, its probability and the object's scale.

    The object should be at the centre of its image, which may have any size (plain CNNs for digits need
    112x112 pixels). There is one row for each image, with these columns:

    - class and probability: the most likely class, and how likely it is
    - scale: σ of the strongest scale channel, which sees a window of σ·28 pixels (σ·32 for CIFAR-10, σ·window
      for your own images)
    - at_edge: true if the strongest channel is the smallest or the largest one. The object may then be
      smaller or larger than any channel expects: train a network with a wider range of scales.
    - channel_σ: how much each channel contributes to the class

    Networks for digits expect white digits on black; give --invert for ink on paper. For these networks each
    image is made grey and stretched to full contrast, from −0.76 to 0.76. Other networks take values from 0
    to 1.

    Unreadable files are reported and skipped. The exit code is then 1. Bytes of a file's name that are not
    UTF-8 are written as \\xff.

    For example:

    - scalechannels predict runs/NAME digit.png
    - scalechannels predict runs/NAME scans/ --invert --out classes.csv
    """
    from scalechannels.data.image_files import written
    from scalechannels.saving.saved_network import SavedNetwork, require_free

    if out is not None:
        from scalechannels.files import require_writable

        require_free(out)
        require_writable(out)
    saved = SavedNetwork.open(network)
    saved.network.to(require_device(options.device))
    paths = image_paths(images)
    dark: list[Path] = []
    predictions = list(predict_images(saved, read_images(paths, saved, options, dark)))
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
) -> Iterator[tuple[Path, Tensor]]:
    """Every readable path with its image (C, H, W) as the network takes it.

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
        image = pictures.as_taken(image, values, options.invert)
        if saved.reduce > 1:
            from scalechannels.data.frames import reduced

            image = reduced(image, saved.reduce)
        yield path, image
        del image  # before the next one is read


def predict_images(saved: SavedNetwork, images: Iterable[tuple[Path, Tensor]]) -> Iterator[Prediction]:
    """One prediction for each image, in order; neighbours of one size go through together.

    Of large images one at a time is in memory.
    """
    paths: list[Path] = []
    batch: list[Tensor] = []
    for path, image in images:
        if batch and image.shape != batch[0].shape:
            yield from predict_batch(saved, paths, batch)
        paths.append(path)
        batch.append(image)
        if len(batch) == BATCH or (len(batch) + 1) * image[0].numel() > BATCH_PIXELS:
            del image
            yield from predict_batch(saved, paths, batch)
    if batch:
        yield from predict_batch(saved, paths, batch)


def predict_batch(saved: SavedNetwork, paths: list[Path], batch: list[Tensor]) -> list[Prediction]:
    """What the network says about some images (C, H, W) of one size; both lists are then empty."""
    import torch

    from scalechannels.data.image_files import written

    named_by = [written(path) for path in paths]
    device = next(saved.network.parameters()).device
    # One large image needs no copy.
    images = (batch[0][None] if len(batch) == 1 else torch.stack(batch)).to(device)  # (B, C, H, W)
    paths.clear()
    batch.clear()
    try:
        with torch.inference_mode():
            said = saved.network.explain(images)
    except ValueError as error:
        raise ValueError(f"'{named_by[0]}' cannot be used: {error}") from error
    wrong = (~said.logits.isfinite()).any(1)  # (B,)
    if wrong.any():
        raise ValueError(f"'{named_by[int(wrong.int().argmax())]}': the network's answer is not finite")
    shares = said.contributions  # (B, S), or None without channels
    probabilities, labels = said.logits.softmax(1).max(1)
    predictions = []
    for index, path in enumerate(named_by):
        label = int(labels[index])
        named = saved.names[label] if saved.names is not None else str(label)
        scale = at_edge = contributions = None
        if shares is not None:
            strongest, last = int(shares[index].argmax()), len(saved.scales) - 1
            # A single channel has no range that could be widened.
            scale, at_edge = saved.scales[strongest], last > 0 and strongest in (0, last)
            contributions = shares[index].tolist()
        predictions.append(
            Prediction(path, named, float(probabilities[index]), scale, at_edge, contributions)
        )
    return predictions


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
    writer.writerow(["path", "class", "probability", "scale", "at_edge", *channels])
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
