"""Made-up worlds: what all runs of all experiments would find if the paper were right, or wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from helpers.made_up import made_up, write

from scalechannels.paper.experiments import EXPERIMENTS
from scalechannels.paper.published import TABLE1
from scalechannels.paper.recipes import ROOT2
from scalechannels.paper.reproduce import tested as ranges_of
from scalechannels.paper.results import Results
from scalechannels.training.config import RunConfig


def as_published(run: RunConfig, size: float) -> float:
    """Accuracies whose means over ranges are those of table 1, and flat in between."""
    train = "tr" + "".join(f"{end:g}" for end in run.data.sizes)
    row = TABLE1.get((run.network.name, train))
    if row is None:
        return 50.0
    small, middle, large, wide, all_ = row.values()
    at_1, at_4 = 5 * small + 9 * middle - 13 * wide, 13 * wide + 5 * large - 17 * all_
    if size < 0.99:
        accuracy = (5 * small - at_1) / 4
    elif size > 4.01:
        accuracy = (5 * large - at_4) / 4
    else:
        accuracy = at_1 if size < 1.01 else at_4 if size > 3.99 else (9 * middle - at_1 - at_4) / 7
    return min(100.0, max(0.0, accuracy))


def bump(size: float, trained: tuple[float, ...], width: float) -> float:
    """The curve of a network that knows what it was trained on."""
    away = max(0.0, math.log2(trained[0] / size), math.log2(size / trained[-1]))
    return 10 + 89.5 * math.exp(-((away / width) ** 2))


def as_told(run: RunConfig, size: float) -> float:
    """What the text of the paper says about curves."""
    network, data = run.network, run.data
    name = network.name
    if data.name == "cifar10":
        if name == "cnn":
            return 90 - (50 if size < 1 else 60) * abs(math.log2(size))
        gain = 1 if name == "fovmax" and network.ratio < 1.3 else 0
        peak = {"fovconc": 88, "fovavg": 91, "fovmax": 89, "fovlse": 92}[name] + gain
        slope = {True: 15, False: 40}[size < 1] - 5 * gain if name != "fovconc" else 45
        return peak - slope * abs(math.log2(size))
    if data.samples is not None:
        return {"fovlse": 98, "fovavg": 97, "fovmax": 96, "fovconc": 94, "swmax": 92, "cnn": 93}[name]
    if name == "cnn":
        return bump(size, data.sizes, 0.8)
    assert network.low is not None
    assert network.high is not None
    if network.low == network.high or network.pretrained or network.batch_norm:
        return bump(size, data.sizes, 0.8 if network.low == network.high else 1.5)
    if name == "fovconc":
        channels = math.log(network.high / network.low) / math.log(network.ratio)
        return bump(size, data.sizes, 1 / (1 + channels / 10))
    outside = max(0.0, math.log2(network.low / size), math.log2(size / network.high))
    coarse = {2.0: 1.0, ROOT2: 0.1}.get(network.ratio, 0.0)
    weak = (2 if size > 2 else 1) * abs(math.log2(size / data.sizes[0])) if name == "swmax" else 0
    coarse *= (4 if size > 2 else 2) if name == "swmax" else 1
    return 99 - 10 * outside - coarse - weak


def follows(run: RunConfig, size: float, scale: float) -> float:
    """Selection along the diagonal; FovMax likes channel 1 unless the blur is equalised."""
    width = {"fovavg": 0.6, "fovmax": 0.3, "fovconc": 2.0, "swmax": 0.9}.get(run.network.name, 1.0)
    liked = run.network.name == "fovmax" and run.network.blur is None and abs(scale - 1) < 0.01
    return math.exp(-((math.log2(scale / size) / width) ** 2)) * (2.0 if liked else 1.0)


def against(run: RunConfig, size: float, scale: float) -> float:
    """Selection against the size, different for each training size; equalised blur makes a bias."""
    liked = (run.network.blur is not None or run.network.name == "fovavg") and abs(scale - 1) < 0.01
    width = 0.2 if run.network.name in ("fovconc", "swmax") else 0.4
    centre = size if run.network.name in ("fovconc", "swmax") else 1 / size * run.data.sizes[0]
    return math.exp(-((math.log2(scale / centre) / width) ** 2)) * (9.0 if liked else 1.0) + 1e-6


def upside_down(run: RunConfig, size: float) -> float:
    """Better where the paper is worse, and dependent on the training size where it should not be."""
    if run.data.name == "cifar10":
        return (
            100 - as_told(run, size) + (9 if run.network.name == "fovconc" and run.network.ratio < 1.3 else 0)
        )
    return 60 + 10 * math.log2(run.data.sizes[-1])


def flat(run: RunConfig, size: float) -> float:
    return 50.0


def results(
    folder: Path,
    accuracy: Callable[[RunConfig, float], float],
    selection: Callable[[RunConfig, float, float], float] = follows,
) -> Results:
    """All runs of all experiments in such a world but those of the evidence: no claim is about it."""
    for run in {run for one in EXPERIMENTS if one.renderer != "factorial" for run in one.runs()}:
        write(
            folder,
            made_up(
                run,
                lambda size, run=run: accuracy(run, size),
                ranges=ranges_of(run),
                selection=lambda size, scale, run=run: selection(run, size, scale),
            ),
        )
    return Results(folder)
