"""A trained network on the test sets of its run, with progress: how a training ends, and what a retest is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from scalechannels.training.datasets import DataSets, EvaluationSplit, Size
from scalechannels.training.evaluate import as_json, evaluate
from scalechannels.training.progress import Progress


def evaluation(
    name: str,
    network: Any,
    data: DataSets,
    device: torch.device,
    split: EvaluationSplit,
    sizes: Sequence[Size] | None,
) -> dict[str, Any]:
    """What a run's result says: the network, which lies on the device, at these sizes or the data's own."""
    asked: tuple[Size, ...] = data.test_sizes if sizes is None else tuple(sizes)
    with Progress(f"evaluating {name}", True) as progress:
        results = evaluate(
            network,
            lambda size: data.testing(size, split).to(device),
            asked,
            len(data.classes),
            partial(progress.tested, count=len(asked)),
        )
    return as_json(results, split)
