"""How the curves of experiments are put together into panels: by training set, by channels, by network."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from scalechannels.paper import recipes
from scalechannels.paper.recipes import NETWORKS, ROOT2, ROOT4, SINGLE, Curve, Panel, Train, main, mnist
from scalechannels.training.config import NetworkName, RunConfig

SCALE_CHANNELS: tuple[NetworkName, ...] = ("fovavg", "fovmax", "swmax", "fovconc")
RANGES: dict[str, tuple[float, float]] = {
    "[√2, 2√2]": (ROOT2, 2 * ROOT2),
    "[1, 4]": (1.0, 4.0),
    "[1/√2, 4√2]": (1 / ROOT2, 4 * ROOT2),
    "[1/2, 8]": (0.5, 8.0),
}
RATIOS: dict[str, float] = {"2²": 4.0, "2": 2.0, "2^(1/2)": ROOT2, "2^(1/4)": ROOT4}
CLOSE_UP, CIFAR_SHOWN = (94.0, 100.0), (20.0, 100.0)
"""Accuracies that an axis spans."""


def curve(label: str, *configs: RunConfig, **drawn: Any) -> Curve:
    return Curve(label, configs, **drawn)


def panel(title: str, *curves: Curve, shown: tuple[float, float] = (0.0, 100.0)) -> Panel:
    return Panel(title, curves, shown)


def network_panel(name: NetworkName, *curves: Curve, shown: tuple[float, float] = (0.0, 100.0)) -> Panel:
    return Panel("Standard CNN" if name == "cnn" else f"The {NETWORKS[name]} network", curves, shown)


def by_train(title: str, run: Callable[[Train], RunConfig], trains: Iterable[Train] = SINGLE) -> Panel:
    """One curve for each training set."""
    return panel(title, *(curve(train, run(train)) for train in trains))


def table(*trains: Train) -> tuple[Panel, ...]:
    """The networks of table 1, on some of its training sets."""
    return tuple(by_train(title, partial(main, name), trains) for name, title in NETWORKS.items())


def by_size(name: NetworkName, label: str = "{}", **drawn: Any) -> list[Curve]:
    """One curve for each single training size, in the colour of that size."""
    return [
        curve(label.format(train), main(name, train), colour=place, **drawn)
        for place, train in enumerate(SINGLE)
    ]


def by_samples(label: str, run: Callable[[int], RunConfig], **drawn: Any) -> Curve:
    return curve(label, *map(run, recipes.SAMPLES), **drawn)


def by_range(name: NetworkName) -> Panel:
    """One curve for each range of the channels."""
    runs = {k: mnist(name, "tr2", low=low, high=high, ratio=ROOT2) for k, (low, high) in RANGES.items()}
    return network_panel(name, *(curve(label, run) for label, run in runs.items()))


def by_ratio(name: NetworkName, shown: tuple[float, float] = (0.0, 100.0)) -> Panel:
    """One curve for each density of the channels."""
    curves = (  # a ratio has the same colour in each panel, the first ones without FovConc's own
        curve(f"ratio {label}", mnist(name, "tr2", ratio=ratio), colour=place % 4)
        for place, (label, ratio) in enumerate(RATIOS.items(), start=3)
        if ratio < 4 or name == "fovconc"
    )
    return network_panel(name, *curves, shown=shown)


def selected_scales(*names: NetworkName, **options: Any) -> tuple[Panel, ...]:
    return tuple(
        panel(
            f"{NETWORKS[name]} network trained for size {train[2:]}",
            curve(train, mnist(name, train, **options)),
        )
        for train in SINGLE
        for name in names
    )


def cifar(name: NetworkName) -> Panel:
    channels = {"2": 3, "2^(1/2)": 5, "2^(1/4)": 9} if name != "cnn" else {}
    curves = [
        curve(f"{count} channels, ratio {label}", recipes.cifar(name, RATIOS[label]))
        for label, count in channels.items()
    ]
    return network_panel(name, *(curves or [curve("CNN", recipes.cifar("cnn"))]), shown=CIFAR_SHOWN)


def pretrained(name: NetworkName) -> Panel:
    return network_panel(
        name,
        curve("trained from scratch", main(name, "tr2"), reference=True),
        curve("pretrained channel", mnist(name, "tr2", pretrained=2.0)),
    )


def ours(train: Train) -> Panel:
    return panel(
        f"Trained on size {train[2:]}",
        curve("FovAvg", main("fovavg", train), reference=True),
        curve("FovMax", main("fovmax", train), reference=True),
        curve("FovLSE+", recipes.better(train)),
        curve("FovLSE+, wide, shifts", recipes.better(train, width=2, shifts=1)),
        curve("CNN, all sizes", recipes.all_sizes()),
        shown=(95.0, 100.0),
    )
