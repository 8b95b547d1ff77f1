"""Every table and figure of the paper as data: which runs it needs, and how they are shown.

An experiment has panels, a panel has curves, and a curve is one configuration (or several, along an axis)
that is trained with several seeds. A run that several experiments need is the same configuration, so it has
the same name and exists once. Numbers of tables and figures are the paper's.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Literal

from scalechannels.paper import panels
from scalechannels.paper.panels import CIFAR_SHOWN, CLOSE_UP, SCALE_CHANNELS, curve, panel
from scalechannels.paper.recipes import (
    EQUAL_BLUR,
    NETWORKS,
    OURS,
    ROOT2,
    SINGLE,
    TRAINED,
    Experiment,
    Train,
    all_sizes,
    better,
    better_cifar,
    cifar,
    few,
    main,
    mnist,
    normed,
    residual_cifar,
    unnormed,
)


def _ranking(number: int, over: str, trains: tuple[Train, ...]) -> Experiment:
    trained = "trained on one size" if trains == SINGLE else "trained on sizes in [1,4]"
    title = f"Ranking: {trained}, sizes in {over}"
    return Experiment(f"table{number}", title, "ranking", panels.table(*trains), seeds=3, over=over)


MULTI_SCALE = tuple(curve(title, main(name, "tr14")) for name, title in NETWORKS.items())
EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment("table1", "Accuracy over ranges of test sizes", "table", panels.table(*TRAINED), seeds=3),
    _ranking(2, "[1,4]", SINGLE),
    _ranking(3, "[1,4]", ("tr14",)),
    _ranking(4, "[1/2,4]", SINGLE),
    _ranking(5, "[1/2,4]", ("tr14",)),
    Experiment(
        "figure2",
        "Foveated windows of one digit",
        "windows",
        caption="Every channel sees the image through a window of the same number of pixels: small windows "
        "at full resolution, large ones at reduced resolution.",
    ),
    Experiment(
        "figure3",
        "The output code shifts along the scale axis",
        "code",
        (panel("FovMax", curve("tr2", main("fovmax", "tr2"))),),
        "As the digit grows, the code moves up the scale axis and keeps its shape, so that its maximum "
        "(dashed) stays. The dotted line is the size of the digit.",
    ),
    Experiment(
        "figure4",
        "Samples of MNIST Large Scale",
        "pictures",
        caption="One test digit at the 17 sizes. From size 4 on, the image may show only a part of it.",
    ),
    Experiment(
        "figure5",
        "Generalisation from one training size",
        "curves",
        (
            panels.network_panel("cnn", *panels.by_size("cnn")),
            panels.network_panel("fovconc", *panels.by_size("fovconc")),
            panel(
                "The FovMax and FovAvg networks",
                *panels.by_size("fovavg", "FovAvg {}"),
                *panels.by_size("fovmax", "FovMax {}", dashed=True),
            ),
            panels.network_panel("swmax", *panels.by_size("swmax")),
        ),
        "Trained on one size, tested on all. Bands are standard deviations over seeds.",
        seeds=3,
    ),
    Experiment(
        "figure6",
        "Dependency on the range of the scale channels",
        "curves",
        tuple(map(panels.by_range, SCALE_CHANNELS)),
        "Channels of ratio √2 over four ranges, trained on size 2.",
    ),
    Experiment(
        "figure7",
        "Dependency on the density of the scale channels",
        "curves",
        tuple(map(panels.by_ratio, SCALE_CHANNELS)),
        "Channels on [1/2, 8] with different ratios between neighbours, trained on size 2.",
    ),
    Experiment(
        "figure8",
        "Density of the scale channels, close-up",
        "curves",
        (panels.by_ratio("fovavg", CLOSE_UP), panels.by_ratio("fovmax", CLOSE_UP)),
        "The same as Figure 7 for FovAvg and FovMax, close up.",
    ),
    Experiment(
        "figure9",
        "The CNN trained on a range of sizes",
        "curves",
        (
            panels.network_panel(
                "cnn",
                *panels.by_size("cnn", reference=True),
                curve("trained on [1, 2]", mnist("cnn", (1.0, 2.0)), colour=0),
                curve("trained on [2, 4]", mnist("cnn", (2.0, 4.0)), colour=1),
            ),
        ),
        "Training on a range of sizes helps inside the range alone.",
    ),
    Experiment(
        "figure10",
        "Multi-scale training",
        "curves",
        (
            panel("Trained on sizes in [1, 4]", *MULTI_SCALE),
            panel("The same, zoomed in", *MULTI_SCALE, shown=CLOSE_UP),
        ),
        "Trained on sizes in [1, 4], 17 channels on [1/2, 8].",
        seeds=3,
    ),
    Experiment(
        "figure11",
        "Fewer training samples",
        "samples",
        (
            panel(
                "Trained and tested on sizes in [1, 4]",
                *(panels.by_samples(title, partial(few, name)) for name, title in NETWORKS.items()),
                shown=(50.0, 100.0),
            ),
        ),
        "Trained and tested on sizes in [1, 4]; 12,500 steps of 16 images for every size of training set.",
        tested=((1.0, 4.0),),
    ),
    Experiment(
        "figure12",
        "Selected scales of FovAvg and FovMax",
        "selection",
        panels.selected_scales("fovavg", "fovmax"),
        "The share of each channel in the winning class, darker for more. Mean over seeds.",
    ),
    Experiment(
        "figure13",
        "Selected scales of FovConc and SWMax",
        "selection",
        panels.selected_scales("fovconc", "swmax"),
        "The same for the networks that are not scale invariant, with 17 channels.",
    ),
    Experiment(
        "figure14",
        "Samples of rescaled CIFAR-10",
        "pictures",
        caption="Two test images at the nine factors, continued by mirroring below 1.",
    ),
    Experiment(
        "figure15",
        "Rescaled CIFAR-10",
        "curves",
        tuple(panels.cifar(name) for name in ("cnn", "fovconc", "fovavg", "fovmax")),
        "Trained on the original images, tested on rescaled ones.",
    ),
    Experiment(
        "batch-norm",
        "SWMax with batch norm",
        "curves",
        (
            panel(
                "SWMax, 5 channels on [1, 4], trained on size 2",
                curve("without batch norm", unnormed(), reference=True),
                curve("joint over the channels", normed("joint")),
                curve("one for each channel", normed("each")),
            ),
        ),
        "The paper reports that both ways of batch norm impair SWMax.",
        where="Section 6.2, footnote",
    ),
    Experiment(
        "single-channel",
        "A single scale channel",
        "curves",
        (
            panel(
                "Trained on size 2",
                curve("FovMax, 17 channels", main("fovmax", "tr2"), reference=True),
                curve("one channel, σ = 2", mnist("fovmax", "tr2", low=2.0, high=2.0)),
            ),
        ),
        "One channel knows the size that it was trained on, and hardly any other.",
        where="Section 6.2",
    ),
    Experiment(
        "pretrained",
        "Pretrained channels, not trained from scratch",
        "curves",
        tuple(panels.pretrained(name) for name in ("fovavg", "fovmax", "swmax")),
        "The weights of one channel, trained alone, in all channels.",
        where="Sections 5.2 and 6.2, footnote",
    ),
    Experiment(
        "beyond",
        "Ours, and what one would do instead of scale channels",
        "table",
        (
            panels.by_train("FovLSE", partial(main, "fovlse"), TRAINED),
            panels.by_train("FovLSE+", better),
            panels.by_train("FovLSE+, shifts", partial(better, shifts=1)),
            panels.by_train("FovLSE+, wide, shifts", partial(better, width=2, shifts=1)),
            panel("CNN, all sizes", curve("tr[1/2,8]", all_sizes())),
            panels.by_train("CNN, averaged", partial(mnist, "cnn", average_scales=True)),
        ),
        seeds=3,
        where=OURS,
    ),
    Experiment(
        "beyond-sizes",
        "Generalisation from one training size: ours",
        "curves",
        tuple(map(panels.ours, SINGLE)),
        "Close-up of Figure 5 with our networks, and the plain CNN that was trained on all sizes.",
        seeds=3,
        where=OURS,
    ),
    Experiment(
        "beyond-few",
        "Fewer training samples: ours",
        "samples",
        (
            panel(
                "Trained and tested on sizes in [1, 4]",
                panels.by_samples("FovAvg", partial(few, "fovavg"), reference=True),
                panels.by_samples("FovLSE+", partial(better, "tr14")),
                shown=(80.0, 100.0),
            ),
        ),
        "What our network gains from few training images; not in the paper.",
        seeds=3,
        tested=((1.0, 4.0),),
        where=OURS,
    ),
    Experiment(
        "beyond-cifar",
        "Rescaled CIFAR-10: ours",
        "curves",
        (
            panel(
                "Trained on the original images, 5 channels",
                curve("FovAvg", cifar("fovavg", ROOT2), reference=True),
                curve("FovLSE+", better_cifar()),
                shown=CIFAR_SHOWN,
            ),
            panel(
                "Residual backbone, mirrored and shifted",
                curve("FovAvg", residual_cifar("fovavg"), reference=True),
                curve("FovLSE+", residual_cifar("fovlse")),
                curve("CNN", residual_cifar("cnn")),
                shown=CIFAR_SHOWN,
            ),
        ),
        "Figure 15 with our network; not in the paper.",
        seeds=3,
        where=OURS,
    ),
    Experiment(
        "equal-blur",
        "Selected scales of FovMax with equalised blur",
        "selection",
        panels.selected_scales("fovmax", blur=EQUAL_BLUR),
        "FovMax with the same blur in all channels, which the paper proposes in a footnote.",
        where="Section 6.9, footnote",
    ),
)


def experiment(id: str, kind: Literal["experiment", "table", "figure"] = "experiment") -> Experiment:
    """The experiment of this id, of any kind; the error for an unknown id offers those of `kind` alone."""
    for known in EXPERIMENTS:
        if known.id == id:
            return known
    offered = [one.id for one in EXPERIMENTS if kind == "experiment" or one.is_table == (kind == "table")]
    raise ValueError(f"no {kind} {id!r}; there are {', '.join(offered)}")


def chosen(ids: Iterable[str]) -> list[Experiment]:
    """The experiments of these ids; "all" is all of them."""
    wanted = list(ids)
    return list(EXPERIMENTS) if "all" in wanted else [experiment(id) for id in wanted]
