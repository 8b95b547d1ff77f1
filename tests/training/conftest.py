from collections.abc import Iterator

import pytest
import safetensors.torch  # noqa: F401 - before `double`: it makes a table of dtypes when it is imported
import torch

from scalechannels.data import rescaled_cifar10
from scalechannels.training import build


@pytest.fixture(autouse=True)
def _one_thread(one_thread: None) -> None:
    """Here for every test."""


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All of training in float64, where rounding does not hide whether two ways compute the same."""
    single = torch.float32
    monkeypatch.setattr(torch, "float32", torch.float64)
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(single)


@pytest.fixture
def cifar(monkeypatch) -> None:
    """Twenty images of noise in place of CIFAR-10, and a residual backbone of two features."""
    pictures = torch.randint(
        256, (20, 3, 32, 32), generator=torch.Generator().manual_seed(0), dtype=torch.uint8
    )
    labels = torch.arange(20) % 10
    made = rescaled_cifar10.TrainAndTest(pictures, labels, pictures, labels)
    monkeypatch.setattr(rescaled_cifar10, "load_cifar10", lambda root: made)
    monkeypatch.setattr(build, "RESIDUAL_FEATURES", 2)
