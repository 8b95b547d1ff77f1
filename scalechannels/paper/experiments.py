"""Every table and figure of the paper as data: which runs it needs, and how they are shown.

An experiment has panels, a panel has curves, and a curve is one configuration (or several, along an axis)
that is trained with several seeds. A run that several experiments need is the same configuration, so it has
the same name and exists once. Numbers of tables and figures are the paper's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scalechannels.paper.recipes import (
    EQUAL_BLUR,
    NETWORKS,
    OURS,
    ROOT2,
    ROOT4,
    SAMPLES,
    SINGLE,
    TRAINED,
    Curve,
    Experiment,
    Panel,
    all_sizes,
    better,
    better_cifar,
    cifar,
    few,
    main,
    mnist,
    normed,
    residual_cifar,
)
from scalechannels.training.config import NetworkName, RunConfig

SCALE_CHANNELS: tuple[NetworkName, ...] = ("fovavg", "fovmax", "swmax", "fovconc")


def _curve(label: str, *configs: RunConfig, **drawn: Any) -> Curve:
    return Curve(label, configs, **drawn)


def _by_size(name: NetworkName, label: str = "{}", **drawn: Any) -> tuple[Curve, ...]:
    return tuple(
        _curve(label.format(train), main(name, train), colour=place, **drawn)
        for place, train in enumerate(SINGLE)
    )


MAIN = tuple(
    Panel(title, tuple(_curve(train, main(name, train)) for train in TRAINED))
    for name, title in NETWORKS.items()
)
SINGLE_SCALE = tuple(
    Panel(title, tuple(_curve(train, main(name, train)) for train in SINGLE))
    for name, title in NETWORKS.items()
)
MULTI_SCALE = tuple(_curve(title, main(name, "tr14")) for name, title in NETWORKS.items())
CHANNEL_RANGES: dict[str, tuple[float, float]] = {
    "[√2, 2√2]": (ROOT2, 2 * ROOT2),
    "[1, 4]": (1.0, 4.0),
    "[1/√2, 4√2]": (1 / ROOT2, 4 * ROOT2),
    "[1/2, 8]": (0.5, 8.0),
}
RATIOS: dict[str, float] = {"2²": 4.0, "2": 2.0, "2^(1/2)": ROOT2, "2^(1/4)": ROOT4}


def _range_panel(name: NetworkName) -> Panel:
    curves = (
        _curve(label, mnist(name, "tr2", low=low, high=high, ratio=ROOT2))
        for label, (low, high) in CHANNEL_RANGES.items()
    )
    return Panel(f"The {NETWORKS[name]} network", tuple(curves))


def _density_panel(name: NetworkName, shown: tuple[float, float] = (0.0, 100.0)) -> Panel:
    curves = (  # a ratio has the same colour in each panel, the first ones without FovConc's own
        _curve(f"ratio {label}", mnist(name, "tr2", ratio=ratio), colour=place % 4)
        for place, (label, ratio) in enumerate(RATIOS.items(), start=3)
        if ratio < 4 or name == "fovconc"
    )
    return Panel(f"The {NETWORKS[name]} network", tuple(curves), shown)


def _selection_panels(*names: NetworkName, **options: Any) -> tuple[Panel, ...]:
    return tuple(
        Panel(
            f"{NETWORKS[name]} network trained for size {train[2:]}",
            (_curve(train, mnist(name, train, **options)),),
        )
        for train in SINGLE
        for name in names
    )


def _cifar_panel(name: NetworkName) -> Panel:
    if name == "cnn":
        return Panel("Standard CNN", (_curve("CNN", cifar("cnn")),), (20.0, 100.0))
    curves = (
        _curve(f"{channels} channels, ratio {label}", cifar(name, ratio))
        for channels, label, ratio in ((3, "2", 2.0), (5, "2^(1/2)", ROOT2), (9, "2^(1/4)", ROOT4))
    )
    return Panel(f"The {NETWORKS[name]} network", tuple(curves), (20.0, 100.0))


def _ranking(number: int, what: str, over: str, single: bool) -> Experiment:
    panels = SINGLE_SCALE if single else tuple(Panel(curve.label, (curve,)) for curve in MULTI_SCALE)
    title = f"Ranking: {what}, sizes in {over}"
    return Experiment(f"table{number}", title, f"Table {number}", "ranking", panels, seeds=3, over=over)


def _pretrained(name: NetworkName) -> Panel:
    return Panel(
        f"The {NETWORKS[name]} network",
        (
            _curve("trained from scratch", main(name, "tr2"), reference=True),
            _curve("pretrained channel", mnist(name, "tr2", pretrained=2.0)),
        ),
    )


EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment("table1", "Accuracy over ranges of test sizes", "Table 1", "table", MAIN, seeds=3),
    _ranking(2, "trained on one size", "[1,4]", single=True),
    _ranking(3, "trained on sizes in [1,4]", "[1,4]", single=False),
    _ranking(4, "trained on one size", "[1/2,4]", single=True),
    _ranking(5, "trained on sizes in [1,4]", "[1/2,4]", single=False),
    Experiment("figure2", "Foveated windows of one digit", "Figure 2", "windows"),
    Experiment(
        "figure3",
        "The output code shifts along the scale axis",
        "Figure 3",
        "code",
        (Panel("FovMax", (_curve("tr2", main("fovmax", "tr2")),)),),
    ),
    Experiment("figure4", "Samples of MNIST Large Scale", "Figure 4", "pictures"),
    Experiment(
        "figure5",
        "Generalisation from one training size",
        "Figure 5",
        "curves",
        (
            Panel("Standard CNN", _by_size("cnn")),
            Panel("The FovConc network", _by_size("fovconc")),
            Panel(
                "The FovMax and FovAvg networks",
                (*_by_size("fovavg", "FovAvg {}"), *_by_size("fovmax", "FovMax {}", dashed=True)),
            ),
            Panel("The SWMax network", _by_size("swmax")),
        ),
        seeds=3,
    ),
    Experiment(
        "figure6",
        "Dependency on the range of the scale channels",
        "Figure 6",
        "curves",
        tuple(map(_range_panel, SCALE_CHANNELS)),
    ),
    Experiment(
        "figure7",
        "Dependency on the density of the scale channels",
        "Figure 7",
        "curves",
        tuple(map(_density_panel, SCALE_CHANNELS)),
    ),
    Experiment(
        "figure8",
        "Density of the scale channels, close-up",
        "Figure 8",
        "curves",
        (_density_panel("fovavg", (94.0, 100.0)), _density_panel("fovmax", (94.0, 100.0))),
    ),
    Experiment(
        "figure9",
        "The CNN trained on a range of sizes",
        "Figure 9",
        "curves",
        (
            Panel(
                "Standard CNN",
                (
                    *_by_size("cnn", reference=True),
                    _curve("trained on [1, 2]", mnist("cnn", (1.0, 2.0)), colour=0),
                    _curve("trained on [2, 4]", mnist("cnn", (2.0, 4.0)), colour=1),
                ),
            ),
        ),
    ),
    Experiment(
        "figure10",
        "Multi-scale training",
        "Figure 10",
        "curves",
        (
            Panel("Trained on sizes in [1, 4]", MULTI_SCALE),
            Panel("The same, zoomed in", MULTI_SCALE, (94, 100)),
        ),
        seeds=3,
    ),
    Experiment(
        "figure11",
        "Fewer training samples",
        "Figure 11",
        "samples",
        (
            Panel(
                "Trained and tested on sizes in [1, 4]",
                tuple(
                    _curve(title, *(few(name, samples) for samples in SAMPLES))
                    for name, title in NETWORKS.items()
                ),
                (50.0, 100.0),
            ),
        ),
        tested=((1.0, 4.0),),
    ),
    Experiment(
        "figure12",
        "Selected scales of FovAvg and FovMax",
        "Figure 12",
        "selection",
        _selection_panels("fovavg", "fovmax"),
    ),
    Experiment(
        "figure13",
        "Selected scales of FovConc and SWMax",
        "Figure 13",
        "selection",
        _selection_panels("fovconc", "swmax"),
    ),
    Experiment("figure14", "Samples of rescaled CIFAR-10", "Figure 14", "pictures"),
    Experiment(
        "figure15",
        "Rescaled CIFAR-10",
        "Figure 15",
        "curves",
        tuple(_cifar_panel(name) for name in ("cnn", "fovconc", "fovavg", "fovmax")),
    ),
    Experiment(
        "batch-norm",
        "SWMax with batch norm",
        "Section 6.2, footnote",
        "curves",
        (
            Panel(
                "SWMax, 5 channels on [1, 4], trained on size 2",
                (
                    _curve(
                        "without batch norm",
                        mnist("swmax", "tr2", low=1.0, high=4.0, ratio=ROOT2),
                        reference=True,
                    ),
                    _curve("joint over the channels", normed("joint")),
                    _curve("one for each channel", normed("each")),
                ),
            ),
        ),
    ),
    Experiment(
        "single-channel",
        "A single scale channel",
        "Section 6.2",
        "curves",
        (
            Panel(
                "Trained on size 2",
                (
                    _curve("FovMax, 17 channels", main("fovmax", "tr2"), reference=True),
                    _curve("one channel, σ = 2", mnist("fovmax", "tr2", low=2.0, high=2.0)),
                ),
            ),
        ),
    ),
    Experiment(
        "pretrained",
        "Pretrained channels, not trained from scratch",
        "Sections 5.2 and 6.2, footnote",
        "curves",
        tuple(_pretrained(name) for name in ("fovavg", "fovmax", "swmax")),
    ),
    Experiment(
        "beyond",
        "Ours, and what one would do instead of scale channels",
        OURS,
        "table",
        (
            Panel("FovLSE", tuple(_curve(train, main("fovlse", train)) for train in TRAINED)),
            Panel("FovLSE+", tuple(_curve(train, better(train)) for train in SINGLE)),
            Panel("FovLSE+, shifts", tuple(_curve(train, better(train, shifts=1)) for train in SINGLE)),
            Panel(
                "FovLSE+, wide, shifts",
                tuple(_curve(train, better(train, width=2, shifts=1)) for train in SINGLE),
            ),
            Panel("CNN, all sizes", (_curve("tr[1/2,8]", all_sizes()),)),
            Panel(
                "CNN, averaged",
                tuple(_curve(train, mnist("cnn", train, average_scales=True)) for train in SINGLE),
            ),
        ),
        seeds=3,
    ),
    Experiment(
        "beyond-sizes",
        "Generalisation from one training size: ours",
        OURS,
        "curves",
        tuple(
            Panel(
                f"Trained on size {TRAINED[train][0]:g}",
                (
                    _curve("FovAvg", main("fovavg", train), reference=True),
                    _curve("FovMax", main("fovmax", train), reference=True),
                    _curve("FovLSE+", better(train)),
                    _curve("FovLSE+, wide, shifts", better(train, width=2, shifts=1)),
                    _curve("CNN, all sizes", all_sizes()),
                ),
                (95.0, 100.0),
            )
            for train in SINGLE
        ),
        seeds=3,
    ),
    Experiment(
        "beyond-few",
        "Fewer training samples: ours",
        OURS,
        "samples",
        (
            Panel(
                "Trained and tested on sizes in [1, 4]",
                (
                    _curve("FovAvg", *(few("fovavg", samples) for samples in SAMPLES), reference=True),
                    _curve("FovLSE+", *(better("tr14", samples) for samples in SAMPLES)),
                ),
                (80.0, 100.0),
            ),
        ),
        seeds=3,
        tested=((1.0, 4.0),),
    ),
    Experiment(
        "beyond-cifar",
        "Rescaled CIFAR-10: ours",
        OURS,
        "curves",
        (
            Panel(
                "Trained on the original images, 5 channels",
                (
                    _curve("FovAvg", cifar("fovavg", ROOT2), reference=True),
                    _curve("FovLSE+", better_cifar()),
                ),
                (20.0, 100.0),
            ),
            Panel(
                "Residual backbone, mirrored and shifted",
                (
                    _curve("FovAvg", residual_cifar("fovavg"), reference=True),
                    _curve("FovLSE+", residual_cifar("fovlse")),
                    _curve("CNN", residual_cifar("cnn")),
                ),
                (20.0, 100.0),
            ),
        ),
        seeds=3,
    ),
    Experiment(
        "equal-blur",
        "Selected scales of FovMax with equalised blur",
        "Section 6.9, footnote",
        "selection",
        _selection_panels("fovmax", blur=EQUAL_BLUR),
    ),
)


def experiment(id: str) -> Experiment:
    """The experiment of this id."""
    for known in EXPERIMENTS:
        if known.id == id:
            return known
    raise ValueError(f"no experiment {id!r}; there are {', '.join(known.id for known in EXPERIMENTS)}")


def chosen(ids: Iterable[str]) -> list[Experiment]:
    """The experiments of these ids; "all" is all of them."""
    wanted = list(ids)
    return list(EXPERIMENTS) if "all" in wanted else [experiment(id) for id in wanted]
