"""How the curves of experiments are put together into panels: by training set, by channels, by network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from scalechannels.paper.recipes import (
    NETWORKS,
    ROOT2,
    ROOT4,
    SAMPLES,
    SINGLE,
    TRAINED,
    Curve,
    Panel,
    Train,
    all_sizes,
    better,
    cifar,
    main,
    mnist,
)
from scalechannels.training.config import NetworkName, RunConfig

SCALE_CHANNELS: tuple[NetworkName, ...] = ("fovavg", "fovmax", "swmax", "fovconc")
CHANNEL_RANGES: dict[str, tuple[float, float]] = {
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


def network_panel(
    name: NetworkName, curves: Iterable[Curve], shown: tuple[float, float] = (0.0, 100.0)
) -> Panel:
    title = "Standard CNN" if name == "cnn" else f"The {NETWORKS[name]} network"
    return Panel(title, tuple(curves), shown)


def by_train(title: str, run: Callable[[Train], RunConfig], trains: Iterable[Train] = SINGLE) -> Panel:
    """One curve for each training set."""
    return Panel(title, tuple(curve(train, run(train)) for train in trains))


def by_size(name: NetworkName, label: str = "{}", **drawn: Any) -> tuple[Curve, ...]:
    """One curve for each single training size, in the colour of that size."""
    return tuple(
        curve(label.format(train), main(name, train), colour=place, **drawn)
        for place, train in enumerate(SINGLE)
    )


def by_samples(label: str, run: Callable[[int], RunConfig], **drawn: Any) -> Curve:
    return curve(label, *map(run, SAMPLES), **drawn)


def channel_ranges(name: NetworkName) -> Panel:
    return network_panel(
        name,
        (
            curve(label, mnist(name, "tr2", low=low, high=high, ratio=ROOT2))
            for label, (low, high) in CHANNEL_RANGES.items()
        ),
    )


def channel_densities(name: NetworkName, shown: tuple[float, float] = (0.0, 100.0)) -> Panel:
    curves = (  # a ratio has the same colour in each panel, the first ones without FovConc's own
        curve(f"ratio {label}", mnist(name, "tr2", ratio=ratio), colour=place % 4)
        for place, (label, ratio) in enumerate(RATIOS.items(), start=3)
        if ratio < 4 or name == "fovconc"
    )
    return network_panel(name, curves, shown)


def selections(*names: NetworkName, **options: Any) -> tuple[Panel, ...]:
    return tuple(
        Panel(
            f"{NETWORKS[name]} network trained for size {train[2:]}",
            (curve(train, mnist(name, train, **options)),),
        )
        for train in SINGLE
        for name in names
    )


def cifar_panel(name: NetworkName) -> Panel:
    if name == "cnn":
        return network_panel(name, [curve("CNN", cifar("cnn"))], CIFAR_SHOWN)
    curves = (
        curve(f"{channels} channels, ratio {label}", cifar(name, RATIOS[label]))
        for channels, label in ((3, "2"), (5, "2^(1/2)"), (9, "2^(1/4)"))
    )
    return network_panel(name, curves, CIFAR_SHOWN)


def pretrained_panel(name: NetworkName) -> Panel:
    scratch = curve("trained from scratch", main(name, "tr2"), reference=True)
    return network_panel(name, (scratch, curve("pretrained channel", mnist(name, "tr2", pretrained=2.0))))


def ours(train: Train) -> Panel:
    curves = (
        curve("FovAvg", main("fovavg", train), reference=True),
        curve("FovMax", main("fovmax", train), reference=True),
        curve("FovLSE+", better(train)),
        curve("FovLSE+, wide, shifts", better(train, width=2, shifts=1)),
        curve("CNN, all sizes", all_sizes()),
    )
    return Panel(f"Trained on size {TRAINED[train][0]:g}", curves, (95.0, 100.0))


def table_panels(trains: Sequence[Train]) -> tuple[Panel, ...]:
    """The networks of table 1, on some of its training sets."""
    return tuple(by_train(title, partial(main, name), trains) for name, title in NETWORKS.items())
