"""What a network costs: products against a count by hand, memory against tensors that are known."""

import pytest
import torch
from torch import nn

from scalechannels.backbones.sized import multiplications as by_hand
from scalechannels.backbones.sized import sized_backbone
from scalechannels.compare.cost import Costs, key_of, megabytes, milliseconds, multiplications
from scalechannels.plain import PlainNetwork
from scalechannels.rivals.riesz import RieszNetwork
from scalechannels.training.config import NetworkConfig, RunConfig, TrainingConfig


def test_products_are_those_of_a_count_by_hand() -> None:
    backbone = sized_backbone(28, 1, 10)
    found = multiplications(PlainNetwork(backbone), torch.randn(1, 1, 28, 28))
    assert found == by_hand(backbone)


def test_fourier_transforms_count() -> None:
    network = RieszNetwork(features=(2, 3))
    products = 16 * 16 * (5 * 1 * 2 + 5 * 2 * 3 + 3 * 10)
    assert multiplications(network, torch.randn(1, 1, 16, 16)) == products + 6 * (1 + 2) * 256 * 8


def test_memory_is_what_the_backward_pass_needs() -> None:
    class Squares(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, images):
            scaled = images * self.weight  # keeps the images, which do not count
            return (scaled**2).exp().flatten(1)  # keeps `scaled` and the result

    found = megabytes(Squares(), torch.randn(4, 1, 50, 50))
    assert found == pytest.approx(2 * 2500 * 4 / 1e6, rel=1e-3)
    assert milliseconds(Squares(), torch.randn(4, 1, 50, 50), repeats=1) > 0


def test_costs_of_several_devices_stand_beside_each_other(tmp_path) -> None:
    run = RunConfig(network=NetworkConfig("cnn"))
    other = RunConfig(network=NetworkConfig("cnn"), training=TrainingConfig(seed=2))
    assert key_of(run) == key_of(other)
    costs = Costs(tmp_path)
    found = {"parameters": 1, "multiplications": 2, "megabytes": 3.0}
    costs.add(run, {**found, "milliseconds": {"cpu": {"value": 4.0}}})
    Costs(tmp_path).add(other, {**found, "milliseconds": {"cuda": {"value": 5.0}}})
    assert set(Costs(tmp_path).of(run)["milliseconds"]) == {"cpu", "cuda"}
    (tmp_path / "costs.json").write_text("{")
    with pytest.raises(ValueError, match=r"costs.json' is damaged"):
        Costs(tmp_path)
