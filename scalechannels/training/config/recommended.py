"""What `train` uses where you say nothing: the ingredients that docs/evidence.md found to be worth something.

digits      smoothed targets and averaged weights, for every network but SWMax and other methods, which were
            not tried with them; foveated networks also see objects that reach beyond the picture
CIFAR-10    objects beyond the picture and images of less detail; windows are anti-aliased. A plain CNN on
            several sizes has none of it: that is how it was measured
emoji       windows are anti-aliased

Limit: these are all the data that the ingredients were measured on. Others keep the paper's recipe, and your
own images have one that is chosen from them (`own_images.py`).
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

from scalechannels.training.config.run import RunConfig

Section = TypeVar("Section")
ALL = 50_000
"""Training images of MNIST."""
LONGEST = 0.999
"""The decay of the average, for as many steps as the paper's recipe has."""
SHARE = 10
"""The average spans one step in so many, at most: else it would hold weights from the beginning."""


def recommended(config: RunConfig) -> RunConfig:
    """The run with the recommended recipe in place of what is open; nothing that was said is changed."""
    network, data, about = config.network, config.data, config.data.about
    photographs = about.backbone == "cifar10"
    foveated = network.name != "cnn" and network.look == "centre"
    training: dict[str, Any] = {}
    if network.name == "swmax" or network.is_module:  # nobody has tried it with them
        return config
    if about.smooth:
        training = {"smoothing": 0.1, "average": decay(_steps(config))}
        training |= {"visible": 0.5} if foveated and data.places == "centre" else {}
    elif data.name == "cifar10" and (foveated or len(data.sizes) == 1):
        training = {"detail": 0.5} | ({"visible": 0.5} if data.places == "centre" else {})
    return replace(
        config,
        network=_filled(network, antialias=True) if photographs and foveated else network,
        training=_filled(config.training, **training),
    )


def decay(steps: int) -> float:
    """Of the averaged weights, for a training of so many steps."""
    return max(0.0, min(LONGEST, round(1 - SHARE / steps, 3)))


def _steps(config: RunConfig) -> int:
    """Of the training, as far as it is known before the data are opened."""
    resolved = config.resolve()
    images = resolved.training.images or resolved.data.samples or ALL
    return resolved.training.epochs * -(-images // resolved.training.batch)


def _filled(section: Section, **values: Any) -> Section:
    """With these values where it has None."""
    open_ones = {field.name for field in fields(section) if getattr(section, field.name) is None}  # type: ignore
    return replace(section, **{name: value for name, value in values.items() if name in open_ones})  # type: ignore
