"""What `train` fills in is what the evidence has measured: rows of its tables, and nothing that was said."""

import pytest

from scalechannels.paper.comparisons import row_runs
from scalechannels.paper.experiments import experiment
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig
from scalechannels.training.config.recommended import decay, recommended

DIGITS = DataConfig("mnist", sizes=(1.0,))
ALL_DIGITS = DataConfig("mnist", sizes=(0.5, 8.0), redraw=True)
PHOTOGRAPHS = DataConfig("cifar10")
RESCALED = DataConfig("cifar10", sizes=(0.5, 2.0), redraw=True)


@pytest.mark.parametrize(
    ("data", "network", "table", "row"),
    [
        (DIGITS, NetworkConfig(), "mnist", "FovLSE, averaged, cropped"),
        (DIGITS, NetworkConfig("fovavg"), "mnist", "FovAvg, averaged, cropped"),
        (DIGITS, NetworkConfig("fovmax"), "mnist", "FovMax, averaged, cropped"),
        (DIGITS, NetworkConfig(antialias=True), "mnist", "FovLSE, whole"),
        (ALL_DIGITS, NetworkConfig("cnn"), "mnist", "CNN, all sizes, averaged"),
        (PHOTOGRAPHS, NetworkConfig(), "cifar", "FovLSE, whole"),
        (PHOTOGRAPHS, NetworkConfig("fovavg"), "cifar", "FovAvg, whole"),
        (PHOTOGRAPHS, NetworkConfig("fovmax"), "cifar", "FovMax, whole"),
        (PHOTOGRAPHS, NetworkConfig("cnn"), "cifar", "CNN, averaged, cropped, blurred"),
        (RESCALED, NetworkConfig(), "cifar", "FovLSE, whole, rescaled"),
        (RESCALED, NetworkConfig("cnn"), "cifar", "CNN, averaged, rescaled"),
        (RESCALED, NetworkConfig("cnn", width=2), "cifar", "CNN, averaged, rescaled, wide"),
        (PHOTOGRAPHS, NetworkConfig(backbone="paper"), "cifar-paper", "FovLSE, whole"),
    ],
)
def test_a_default_run_is_a_row_of_the_evidence(
    data: DataConfig, network: NetworkConfig, table: str, row: str
) -> None:
    run = row_runs(experiment(f"evidence-{table}"), row)[0]
    assert recommended(RunConfig(data, network)).resolve("cuda").name == run.resolve("cuda").name


@pytest.mark.parametrize(
    "run",
    [
        RunConfig(DIGITS, NetworkConfig("swmax")),
        RunConfig(DIGITS, NetworkConfig("fovconc")),
        RunConfig(DIGITS, NetworkConfig("riesz")),
        RunConfig(PHOTOGRAPHS, NetworkConfig("fovconc")),
        RunConfig(DataConfig("cifar10", places="anywhere")),
        RunConfig(DataConfig("fashion")),
        RunConfig(PHOTOGRAPHS, NetworkConfig("cnn", backbone="efficientnet-lite0")),
    ],
)
def test_what_was_not_measured_keeps_the_papers_recipe(run: RunConfig) -> None:
    assert recommended(run) == run


@pytest.mark.parametrize("network", [NetworkConfig(look="everywhere"), NetworkConfig()])
def test_digits_anywhere_are_not_cropped_about_the_centre(network: NetworkConfig) -> None:
    training = recommended(RunConfig(DataConfig("mnist", places="anywhere"), network)).training
    assert (training.smoothing, training.average, training.visible) == (0.1, 0.999, None)


def test_windows_of_emoji_and_of_pretrained_backbones_are_anti_aliased() -> None:
    for data, backbone in (("emoji", None), ("cifar10", "efficientnet-lite0")):
        run = RunConfig(DataConfig(data), NetworkConfig(backbone=backbone))  # type: ignore[arg-type]
        network = NetworkConfig(backbone=backbone, antialias=True)  # type: ignore[arg-type]
        assert recommended(run) == RunConfig(DataConfig(data), network)


def test_what_was_said_stays() -> None:
    training = TrainingConfig(
        epochs=7,
        period=5,
        floor=1e-5,
        smoothing=0.0,
        average=0.5,
        visible=1.0,
        detail=0.7,
        flips=False,
        crops=1,
    )
    network = NetworkConfig(ratio=2.0, backbone="residual", antialias=False)
    assert recommended(RunConfig(PHOTOGRAPHS, network, training)) == RunConfig(PHOTOGRAPHS, network, training)


def test_a_schedule_ends_with_the_epochs_that_were_asked_for() -> None:
    run = recommended(RunConfig(PHOTOGRAPHS, training=TrainingConfig(epochs=10)))
    assert (run.training.epochs, run.training.period, run.training.average) == (10, 10, decay(1960))


def test_without_it_a_run_has_the_papers_recipe_and_its_old_name() -> None:
    said = TrainingConfig(
        smoothing=0.0, average=0.0, visible=1.0, detail=1.0, floor=5e-5, flips=False, crops=0
    )
    explicit = RunConfig(DIGITS, NetworkConfig(antialias=False, ratio=2**0.25, backbone="paper"), said)
    left_out = RunConfig(DIGITS)
    assert explicit.name == left_out.name
    assert explicit.resolve() == left_out.resolve()


@pytest.mark.parametrize(
    ("steps", "wanted"), [(62_500, 0.999), (1_000, 0.99), (20, 0.5), (10, 0.0), (1, 0.0)]
)
def test_the_average_spans_a_tenth_of_the_steps(steps: int, wanted: float) -> None:
    assert decay(steps) == wanted
