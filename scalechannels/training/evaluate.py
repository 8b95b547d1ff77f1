"""Accuracy against size: what scale-channel networks are about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch

from scalechannels.backbones.inference import evaluating
from scalechannels.data.image_set import ImageSet
from scalechannels.network import Explanation, NotFiniteError, require_finite
from scalechannels.training.datasets import DataSets, EvaluationSplit, Size, require_labels
from scalechannels.training.errors import pack_errors
from scalechannels.training.progress import Progress

PIECE = 250
"""Images whose gradients are kept at once."""
LOOKED_INTO = 2_000
"""Images by whose gradients the evidence is found, which takes as long as all else: enough for a median."""


@dataclass(frozen=True)
class SizeResult:
    """How a network did on one test set."""

    size: Size
    images: int
    accuracy: float
    """Per cent of the images that were classified correctly."""
    per_class: list[float]
    """The same for each class."""
    confusion: list[list[int]]
    """Rows are the true classes, columns the predicted ones."""
    selection: list[float] | None
    """The mean contribution of each scale channel to the winning class; None where there are no channels."""
    errors: str
    """Which images were classified wrongly, in the order of the test set: see `training.errors`."""
    place_error: float | None = None
    """Objects anywhere: how far the deciding window is off the object, the median in pixels."""
    evidence_error: float | None = None
    """Objects anywhere: how far the centre of the evidence is off the object, see `evidence_centres`."""
    scale_offset: float | None = None
    """Objects anywhere: by how much the deciding scale exceeds the object's size, the median in octaves. The
    network learns at which scale it decides, so that it is the same at all sizes and not 0."""
    scale_error: float | None = None
    """How far the scales are off that median, the median in octaves."""


def balanced_accuracy(confusion: Sequence[Sequence[int]]) -> float:
    """The mean of the classes' accuracies in per cent: a rare class counts as much as any."""
    shares = [row[place] / sum(row) for place, row in enumerate(confusion) if sum(row)]
    return 100 * sum(shares) / len(shares)


def is_unbalanced(confusion: Sequence[Sequence[int]]) -> bool:
    """Whether some class has so many more images than another that an accuracy of all says little."""
    from scalechannels.data.survey import UNBALANCED

    counts = [sum(row) for row in confusion if sum(row)]
    return max(counts) >= UNBALANCED * min(counts)


@torch.inference_mode()
def evaluate_set(network: Any, data: ImageSet, size: Size, classes: int) -> SizeResult:
    """One network, of this library or any other, on one test set that lies on the network's device.

    In eval mode, whatever mode the network is in.
    """
    explain = getattr(network, "explain", None)
    with evaluating(network):
        said: Explanation = explain(data.images) if explain else Explanation(network(data.images))
    if said.logits.shape[1] != classes:
        raise ValueError(f"the network has {said.logits.shape[1]} classes, but the data has {classes}")
    require_finite(said.logits)
    require_labels(data.labels, classes)
    predicted = said.logits.argmax(1)
    confusion = torch.bincount(data.labels * classes + predicted, minlength=classes**2).view(classes, classes)
    per_class = 100 * confusion.diagonal().double() / confusion.sum(1).clamp_min(1)
    return SizeResult(
        size,
        len(data),
        100 * float((predicted == data.labels).double().mean()),
        per_class.tolist(),
        confusion.tolist(),
        None if said.contributions is None else said.contributions.double().mean(0).tolist(),
        pack_errors(predicted != data.labels),
        **_where(network, said, data),
    )


def _where(network: Any, said: Explanation, data: ImageSet) -> dict[str, float]:
    """How well objects that are anywhere were found: place and scale, where the network says them."""
    told: dict[str, float] = {}
    if data.places is None:
        return told
    there = data.places.isfinite().all(1)  # of several objects, the wanted one may be missing
    if said.places is not None:
        told["place_error"] = float((said.places.double() - data.places)[there].norm(dim=1).median())
        from scalechannels.selection import evidence_centres

        some = data.images[:LOOKED_INTO]
        centres = torch.cat([evidence_centres(network, part) for part in some.split(PIECE)])
        off = (centres - data.places[:LOOKED_INTO])[there[:LOOKED_INTO]].norm(dim=1)
        told["evidence_error"] = float(off.median())
    if said.scales is not None:
        octaves = (said.scales.double() / data.scales)[there].log2()
        told["scale_offset"] = float(octaves.median())
        told["scale_error"] = float((octaves - octaves.median()).abs().median())
    return told


def evaluate(
    network: Any,
    testing: Callable[[Size], ImageSet],
    sizes: Iterable[Size],
    classes: int,
    report: Callable[[SizeResult], None] | None = None,
) -> list[SizeResult]:
    """One SizeResult for each size; `testing(size)` makes the test set."""
    results = []
    for size in sizes:
        results.append(evaluate_set(network, testing(size), size, classes))
        if report is not None:
            report(results[-1])
    return results


def as_json(results: Sequence[SizeResult], split: str) -> dict[str, Any]:
    """As a run's result has it; what only some data have is left out for others."""
    optional = ("place_error", "evidence_error", "scale_offset", "scale_error")
    entries = [
        {key: value for key, value in asdict(result).items() if value is not None or key not in optional}
        for result in results
    ]
    return {"split": split, "sizes": entries}


def evaluation(
    name: str,
    network: Any,
    data: DataSets,
    device: torch.device,
    split: EvaluationSplit,
    sizes: Sequence[Size] | None,
) -> dict[str, Any]:
    """What a run's result says of the network, which lies on the device, at these sizes or the data's own."""
    asked: Sequence[Size] = data.config.about.test_sizes if sizes is None else sizes
    with Progress(f"evaluating {name}", bool(asked)) as progress:
        try:
            results = evaluate(
                network,
                lambda size: data.testing(size, split).to(device),
                asked,
                len(data.classes),
                partial(progress.tested, count=len(asked)),
            )
        except NotFiniteError as error:
            raise NotFiniteError(f"{name} cannot be tested: {error}") from error
    return as_json(results, split)
