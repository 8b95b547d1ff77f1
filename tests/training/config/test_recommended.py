"""What `train` fills in: the ingredients that the evidence supports, and nothing that was said."""

import pytest

from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig
from scalechannels.training.config.recommended import decay, recommended


def filled_in(data: DataConfig, network: NetworkConfig, **training: float) -> dict[str, object]:
    """The recipe of a run with these options."""
    run = recommended(RunConfig(data, network, TrainingConfig(**training))).resolve()
    ingredients = {
        name: getattr(run.training, name) for name in ("smoothing", "average", "visible", "detail")
    }
    return {**ingredients, "antialias": run.network.antialias}


PAPER = {"smoothing": 0.0, "average": 0.0, "visible": 1.0, "detail": 1.0, "antialias": False}
DIGITS = PAPER | {"smoothing": 0.1, "average": 0.999}
PHOTOGRAPHS = PAPER | {"visible": 0.5, "detail": 0.5}
ANYWHERE = DataConfig("mnist", places="anywhere")
LARGER = DataConfig("cifar10", sizes=(0.5, 2.0), redraw=True)


@pytest.mark.parametrize(
    ("data", "network", "wanted"),
    [
        (DataConfig("mnist"), NetworkConfig(), DIGITS | {"visible": 0.5}),
        (DataConfig("strokes"), NetworkConfig("fovavg"), DIGITS | {"visible": 0.5}),
        (DataConfig("mnist"), NetworkConfig("cnn"), DIGITS),
        (DataConfig("mnist"), NetworkConfig("swmax"), PAPER),
        (ANYWHERE, NetworkConfig(look="everywhere"), DIGITS),
        (ANYWHERE, NetworkConfig(), DIGITS),
        (DataConfig("cifar10"), NetworkConfig(), PHOTOGRAPHS | {"antialias": True}),
        (LARGER, NetworkConfig(), PHOTOGRAPHS | {"antialias": True}),
        (DataConfig("cifar10"), NetworkConfig("cnn"), PHOTOGRAPHS),
        (LARGER, NetworkConfig("cnn"), PAPER),
    ],
)
def test_the_recipe_is_that_of_the_evidence(data: DataConfig, network: NetworkConfig, wanted: dict) -> None:
    assert filled_in(data, network) == wanted


def test_what_was_said_stays() -> None:
    said = {"smoothing": 0.0, "average": 0.5, "visible": 1.0, "detail": 0.7}
    assert filled_in(DataConfig("mnist"), NetworkConfig(antialias=True), **said) == said | {"antialias": True}
    assert filled_in(DataConfig("cifar10"), NetworkConfig(antialias=False), **said)["antialias"] is False


def test_without_it_a_run_has_the_papers_recipe_and_its_old_name() -> None:
    said = TrainingConfig(smoothing=0.0, average=0.0, visible=1.0, detail=1.0)
    explicit = RunConfig(DataConfig("mnist"), NetworkConfig(antialias=False), said)
    left_out = RunConfig(DataConfig("mnist"))
    assert explicit.name == left_out.name
    assert explicit.resolve() == left_out.resolve()


@pytest.mark.parametrize(
    ("steps", "wanted"), [(62_500, 0.999), (1_000, 0.99), (20, 0.5), (10, 0.0), (1, 0.0)]
)
def test_the_average_spans_a_tenth_of_the_steps(steps: int, wanted: float) -> None:
    assert decay(steps) == wanted
