"""What lies in memory, and what a step does to it."""

import pytest

from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig
from scalechannels.training.inputs import makes_canvases, require_no_augmentation


def run(data: str, **training) -> RunConfig:
    return RunConfig(DataConfig(data), NetworkConfig("fovlse"), TrainingConfig(**training))  # type: ignore


@pytest.mark.parametrize("option", [{"flips": True}, {"crops": 1}, {"visible": 0.5}])
def test_images_of_cifar_are_changed_before_windows_are_made(option) -> None:
    assert makes_canvases(run("cifar10", **option))
    with pytest.raises(MemoryError, match="flips and crops are for images or windows"):
        require_no_augmentation(run("cifar10", **option))


def test_others_keep_windows_in_memory() -> None:
    assert not makes_canvases(run("cifar10"))
    assert not makes_canvases(run("mnist", visible=0.5))
    for data in ("strokes", "mnist", "cifar10"):
        assert not makes_canvases(run(data, detail=0.5))
    require_no_augmentation(run("cifar10"))
