"""Backbones for windows of any size: their cost is what their layers multiply."""

import pytest
import torch

from scalechannels.backbones.sized import equal_cost_backbone, multiplications, sized_backbone


def test_multiplications_are_those_of_the_layers() -> None:
    backbone = sized_backbone(40, 3, 7)
    counted = []
    for module in backbone.modules():
        if isinstance(module, (torch.nn.Conv2d, torch.nn.Linear)):
            module.register_forward_hook(lambda m, _, out: counted.append(out.numel() * m.weight[0].numel()))
    backbone(torch.zeros(2, 3, 40, 40))
    assert sum(counted) == 2 * multiplications(backbone)


def test_narrow_and_wide_costs_are_met() -> None:
    for wanted in (5_000_000, 20_000_000, 60_000_000):
        found = multiplications(equal_cost_backbone(112, 1, 10, wanted))
        assert found == pytest.approx(wanted, rel=0.15)
    with pytest.raises(ValueError, match="at least 11 pixels; got 10"):
        sized_backbone(10, 1, 10)
