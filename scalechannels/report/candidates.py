"""What could be right for a folder of images, and how long each candidate is trained.

    resized CNN                 every crop resized to one window, then a plain CNN: it sees no size at all
    augmented CNN               a plain CNN with a window of four objects
    scale channels              windows of all scales about the centre
    scale channels everywhere   the same at every place of the image, for objects off the centre

All are trained on the same images, rescaled at random over the range of sizes, with the same recipe, where
they can take it. Scale channels would do without rescaled images, but gain by them at both ends of the range,
where their finest and coarsest windows show what no image of the training size does. A budget of time becomes
epochs before the training begins, by timing some steps of each: a run is what its configuration says, however
fast the machine is later.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from scalechannels.training.config import ResolvedRun, TrainingConfig
from scalechannels.training.config.network import ResolvedNetwork
from scalechannels.training.config.own_images import factors
from scalechannels.training.config.recommended import decay
from scalechannels.training.distributed import joined
from scalechannels.training.group import Group, How
from scalechannels.training.runs import Run

RESIZED, AUGMENTED = "resized CNN", "augmented CNN"
CENTRE, EVERYWHERE = "scale channels", "scale channels everywhere"
PLAIN = "plain CNN"
NAMES = (RESIZED, AUGMENTED, CENTRE, EVERYWHERE, PLAIN)
USUAL_BUDGET = "7m"
ENOUGH, MOST_EPOCHS = 5000, 200
"""Steps and epochs that no candidate exceeds."""
LEAST = 300
"""Steps below which a candidate is left out: its accuracy would say more of the budget than of itself. After
half as many, one that looked everywhere guessed where others knew half, and had used half of the time."""
SMOOTHING, VISIBLE = 0.1, 0.5
OFF_CENTRE = {"crops": 1 / 14, "frames": 1 / 5}
"""By what share of the object images are shifted in training."""
COARSER = 2**0.5
"""The ratio of scales of channels that look everywhere: their finest ones are by far the most expensive."""
UNITS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class Planned:
    """A candidate whose epochs are fixed."""

    name: str
    config: ResolvedRun
    seconds: float | None
    """How long its training is expected to take; None where nobody has timed it."""


def budget_seconds(budget: str) -> float:
    """The seconds of 90s, 10m or 1h; a clear error for all else."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh])", budget.strip())
    if found is None or not float(found[1]):
        raise ValueError(f"--budget must be a time such as 90s, 10m or 1h; got '{budget}'")
    return float(found[1]) * UNITS[found[2]]


def candidates(
    base: ResolvedRun, said: TrainingConfig | None = None
) -> tuple[dict[str, ResolvedRun], dict[str, str]]:
    """The candidates by name, and why others are left out.

    base       what the user asked for, resolved
    said       what they said of the training; None: they want no recipe but this
    """
    reach = factors(base.data)
    found, left_out = {}, {}
    plain = replace(base.network, name="cnn", blur=None, shifts=0)
    rescaled = replace(base.data, sizes=tuple(dict.fromkeys(reach)), redraw=len(set(reach)) > 1)
    if base.data.images == "crops":
        data = replace(rescaled, resize=base.network.window)
        found[RESIZED] = replace(base, data=data, network=plain)
    else:
        left_out[RESIZED] = "images are frames, and a small object in a resized frame stays small"
    found[AUGMENTED] = replace(base, data=rescaled, network=plain)
    found[CENTRE] = replace(base, data=rescaled)
    found[EVERYWHERE] = replace(base, data=rescaled, network=everywhere(base))
    return {name: with_recipe(config, said) for name, config in found.items()}, left_out


def named(config: ResolvedRun) -> str:
    """What a candidate with this configuration is called."""
    if config.network.name != "cnn":
        return EVERYWHERE if config.network.look == "everywhere" else CENTRE
    if config.data.resize is not None:
        return RESIZED
    return AUGMENTED if config.data.redraw else PLAIN


def everywhere(base: ResolvedRun) -> ResolvedNetwork:
    """The network that looks everywhere: coarser steps, and no channels beyond the range."""
    own, (low, high) = base.training_scale, factors(base.data)
    first, last = (math.log(end, COARSER) for end in (low, high))
    ends = [own * COARSER**step for step in (math.floor(first + 1e-6), math.ceil(last - 1e-6))]
    return replace(
        base.network, look="everywhere", blur=None, shifts=0, ratio=COARSER, low=ends[0], high=ends[1]
    )


def with_recipe(config: ResolvedRun, said: TrainingConfig | None) -> ResolvedRun:
    """The training that our measurements support, where the user has not said otherwise.

    Images are shifted, since no object lies exactly at the centre: frames by up to a fifth of the object.
    Crops by less: a shifted crop has lost a part of its object, and who learns such parts recognises whole
    objects worse, by more than is gained at shifted ones. Targets are smoothed; objects may be larger than
    the picture; and the weights of the last tenth of the steps are averaged. Larger than the picture they
    are only about its centre: of objects anywhere, nothing might be left.
    """
    training = config.training
    side = config.data.resize or config.data.own.object_pixels
    augmented = training
    if said is not None:
        shifted = said.crops is not None or training.jitter
        usual = max(1, round(OFF_CENTRE[config.data.images or "crops"] * side))
        augmented = replace(
            training,
            smoothing=SMOOTHING if said.smoothing is None else said.smoothing,
            crops=training.crops if shifted else usual,
        )
        centred = config.data.places == "centre"
        if config.network.name != "cnn" and said.visible is None and centred:
            augmented = replace(augmented, visible=VISIBLE)
    if config.network.name == "cnn" or config.network.look == "everywhere":
        crops = augmented.crops or training.jitter  # the windows of these are not shifted by themselves
        augmented = replace(augmented, jitter=0, crops=crops)
    return replace(config, training=augmented)


def with_epochs(config: ResolvedRun, epochs: int, images: int, said: TrainingConfig | None) -> ResolvedRun:
    """The run of so many epochs; what follows from their number is set with it."""
    training = config.training
    steps = epochs * max(1, images // training.batch)
    open_average = said is not None and said.average is None
    average = decay(steps) if open_average else training.average
    period = epochs if training.schedule == "cosine" else training.period
    training = replace(
        training,
        epochs=epochs,
        period=period,
        average=average,
        average_corrected=average > 0,
    )
    return replace(config, training=training)


def planned(
    configs: dict[str, ResolvedRun],
    images: int,
    budget: float,
    device: str,
    said: TrainingConfig | None = None,
    root: Path | None = None,
    report: Callable[[str], None] = lambda name: None,
    again: bool = False,
) -> tuple[list[Planned], dict[str, str]]:
    """The epochs of each within the budget, and which are left out since too few steps would be left.

    Every candidate gets the same share of the time; what a fast one does not need goes to the slower ones.
    Where the budget does not suffice for some steps of all, the slowest candidate is left out; the fastest
    one never, as a busy machine would then end with nothing. `report` is told the name of each before it is
    timed.

    again      one of them, maybe the slowest, is trained a second time: a share of the budget is left for it.
               No candidate is left out for that; where the budget is short, it takes longer
    """
    timed, limits = {}, {}
    for name, config in configs.items():
        steps = max(1, images // config.training.batch)
        most = min(MOST_EPOCHS, max(20, math.ceil(ENOUGH / steps)))
        least = min(most, math.ceil(LEAST / steps))
        # Beyond budget / least, the budget does not suffice for this one alone.
        report(name)
        timed[name] = seconds_an_epoch(config, torch.device(device), root, budget / least)
        limits[name] = (timed[name], least, most)
    waiting, left_out = sorted(configs, key=timed.__getitem__), {}
    while len(waiting) > 1 and (needed := sum(limits[one][0] * limits[one][1] for one in waiting)) > budget:
        left_out[waiting.pop()] = f"it is slow, and needs --budget {math.ceil(needed / 60)}m or more"
    epochs = shared(budget, [limits[name] for name in waiting], again)
    plans = [
        Planned(name, with_epochs(configs[name], found, images, said), found * timed[name])
        for name, found in zip(waiting, epochs, strict=True)
    ]
    return sorted(plans, key=lambda plan: NAMES.index(plan.name)), left_out


def shared(budget: float, limits: Sequence[tuple[float, int, int]], again: bool = False) -> list[int]:
    """The epochs of each of `limits`, (seconds an epoch, epochs at least, at most), the fastest first.

    again      a share is left for one of them to be trained again
    """
    found = []
    for place, (seconds, least, most) in enumerate(limits):
        kept = sum(later[0] * later[1] for later in limits[place + 1 :])
        share = min(budget / (len(limits) - place + again), budget - kept)
        found.append(max(least, min(most, int(share / seconds))))
        budget -= found[-1] * seconds
    return found


def seconds_an_epoch(
    config: ResolvedRun, device: torch.device, root: Path | None = None, enough: float = math.inf
) -> float:
    """How long an epoch takes here, from a few steps; nothing is kept or written.

    enough     of what takes longer, a rough number is enough
    """
    with joined(device) as processes:
        group = Group([Run(config, Path())], device, processes, How(root, compiled=False))
        return group.seconds_an_epoch(enough)
