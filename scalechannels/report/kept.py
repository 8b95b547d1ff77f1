"""The network that is kept: the winner, trained again, now on the validation images as well.

    candidates ── validation images ──► the winner ── trained again on both parts ──► kept
                                             └────── test images ──────┬──────────────┘
                                                                  the report

To choose, images have to be held back that the candidates do not learn from; a third as many again are worth
a point of accuracy. Once the choice is made, nothing else needs them. The temperature stays the winner's:
there are no other images left to fit it on.

Law: the test images are in neither part. Limit: whether the second training went as well as the first is seen
in the report, not before; nothing is chosen by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from scalechannels.data.folder import ImageFolder
from scalechannels.training.config import ResolvedRun
from scalechannels.training.config.own_images import in_parts
from scalechannels.training.runs import Run

KEPT = "kept"
"""What it is called beside the candidates."""


def can_learn_more(images: ImageFolder, config: ResolvedRun) -> bool:
    """Whether there are validation images to learn from: not those that a folder keeps apart by its name."""
    return "validation" not in images.given and config.data.test is not None


def trained_on_both(run: Run, images: ImageFolder) -> ResolvedRun:
    """The run of a finished candidate, in about as many steps, on the validation images as well."""
    config = run.config
    learnt, checked, _ = in_parts(images, config.data)
    epochs = run.result().get("kept_epoch") or config.training.epochs
    epochs = max(1, round(epochs * len(learnt) / (len(learnt) + len(checked))))
    period = epochs if config.training.schedule == "cosine" else config.training.period
    return replace(
        config,
        data=replace(config.data, validation_too=True),
        training=replace(config.training, epochs=epochs, period=period, patience=None),
    )


def tests(result: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """What each candidate did in the test; last the network that is kept, if it is no candidate."""
    found = {name: trial["test"] for name, trial in result["candidates"].items()}
    again = result.get("again")
    return {**found, KEPT: again["test"]} if again else found


def test_of_kept(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What the network that is kept did in the test."""
    found = tests(result)
    return found.get(KEPT) or found[result["verdict"]["winner"]]
