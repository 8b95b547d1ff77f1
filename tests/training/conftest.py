from collections.abc import Iterator

import pytest
import safetensors.torch  # noqa: F401 - before `double`: it makes a table of dtypes when it is imported
import torch


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
