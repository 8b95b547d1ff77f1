"""SWMax tested by search: the same logits and deciding channels."""

import torch
import torch.nn.functional as F

from scalechannels import ScaleGrid, swmax
from scalechannels.training.stacking import searched
from scalechannels.training.stacking.searching import SearchedSliding


def test_logits_and_channels_are_those_of_the_network() -> None:
    torch.manual_seed(0)
    network = swmax(ScaleGrid(0.5, 2, ratio=2), margin=4, centred=True).eval()
    noise = [torch.randn(12, 1, side, side) for side in (3, 6, 12, 24)]  # detail of several sizes
    images = torch.cat([F.interpolate(coarse, (40, 48), mode="bilinear") for coarse in noise])
    with torch.inference_mode():
        own = network.explain(images)
        found = SearchedSliding(network, 40, 48).eval().explain(images)
    assert len(own.contributions.argmax(1).unique()) > 1
    torch.testing.assert_close(found.logits, own.logits)
    assert torch.equal(found.contributions, own.contributions)
    assert torch.equal(found.scales, own.scales)


def test_without_a_gpu_the_network_stays_as_it_is() -> None:
    network = swmax(ScaleGrid.of(1))
    assert searched(network, 40, 40) is network
