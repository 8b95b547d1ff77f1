"""Accuracy against size: what scale-channel networks are about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch

from scalechannels.data.image_set import ImageSet
from scalechannels.network import Explanation
from scalechannels.training.datasets import DataSets, EvaluationSplit, Size, require_labels
from scalechannels.training.errors import pack_errors
from scalechannels.training.progress import Progress


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


@torch.inference_mode()
def evaluate_set(network: Any, data: ImageSet, size: Size, classes: int) -> SizeResult:
    """One network, of this library or any other, on one test set that lies on the network's device."""
    network.eval()
    explain = getattr(network, "explain", None)
    said: Explanation = explain(data.images) if explain else Explanation(network(data.images))
    if said.logits.shape[1] != classes:
        raise ValueError(f"the network has {said.logits.shape[1]} classes, but the data has {classes}")
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
    )


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
    return {"split": split, "sizes": [asdict(result) for result in results]}


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
    with Progress(f"evaluating {name}", True) as progress:
        results = evaluate(
            network,
            lambda size: data.testing(size, split).to(device),
            asked,
            len(data.classes),
            partial(progress.tested, count=len(asked)),
        )
    return as_json(results, split)
