"""The residual backbone: its size, its shortcuts, and the same function after folding and loading."""

import pytest
import torch
from helpers.worn import worn
from torch import nn

import scalechannels
from scalechannels import ScaleGrid, fovconc, fovlse
from scalechannels.backbones.residual import ResidualBackbone
from scalechannels.plain import PlainNetwork

GRID = ScaleGrid.of(0.5, 1, 2)


def small(**options) -> ResidualBackbone:
    torch.manual_seed(0)
    return ResidualBackbone(4, **options)


def test_the_number_of_parameters() -> None:
    assert sum(parameter.numel() for parameter in ResidualBackbone().parameters()) == 1_646_112
    wide = ResidualBackbone(64)
    assert sum(parameter.numel() for parameter in wide.parameters()) == 6_573_120


@pytest.mark.parametrize("size", [(8, 8), (32, 32), (9, 30)], ids=str)
def test_windows_of_eight_pixels_and_more_fit(size) -> None:
    assert small(channels=2, classes=7).eval()(torch.randn(3, 2, *size)).shape == (3, 7)


@pytest.mark.parametrize("size", [(7, 7), (32, 7), (1, 1)], ids=str)
def test_a_smaller_one_is_an_error_that_says_so(size) -> None:
    with pytest.raises(ValueError, match=rf"at least 8 pixels.*got {size[0]}x{size[1]}"):
        small()(torch.randn(2, 3, *size))
    network = fovlse(GRID, data="cifar10", window=7, backbone=small())
    with pytest.raises(ValueError, match="got 7x7"):
        network(torch.randn(2, 3, 32, 32))


@pytest.mark.parametrize("name", ["features", "channels", "classes"])
def test_counts_are_whole_and_positive(name) -> None:
    with pytest.raises(ValueError, match=rf"{name} must be a whole number of at least 1; got 0"):
        ResidualBackbone(**{name: 0})


@pytest.mark.parametrize("within", ["within_first", "within_third"])
def test_shortcuts_lead_past_the_blocks_within_a_stage(within) -> None:
    """Blocks that give nothing leave the maps as they were; without a shortcut all windows would be alike."""
    backbone, windows = worn(small()), torch.randn(2, 3, 16, 16)
    before = backbone(windows)
    nn.init.zeros_(getattr(backbone, within)[1][1].weight)
    nn.init.zeros_(getattr(backbone, within)[1][1].bias)
    without = backbone(windows)
    assert not torch.allclose(before, without)
    assert not torch.allclose(*without)
    setattr(backbone, within, nn.Sequential())  # the identity: the maps are doubled instead
    assert not torch.allclose(backbone(windows), without)


def test_the_first_losses_are_near_those_of_a_guess() -> None:
    backbone = ResidualBackbone()
    with torch.no_grad():
        loss = nn.functional.cross_entropy(backbone(torch.rand(32, 3, 32, 32)), torch.arange(32) % 10)
    assert float(loss) < 2.6  # log 10 = 2.3


def test_folded_batch_norm_computes_the_same() -> None:
    backbone, windows = worn(small()), torch.randn(3, 3, 20, 20)
    with torch.no_grad():
        torch.testing.assert_close(backbone.folded()(windows), backbone(windows), atol=1e-4, rtol=1e-4)
        network = fovlse(GRID, data="cifar10", backbone=backbone).eval()
        images = torch.rand(2, 3, 32, 32)
        folded = network(images)
    torch.testing.assert_close(folded, network(images), atol=1e-4, rtol=1e-4)  # with gradients: not folded


@pytest.mark.parametrize(
    "build",
    [
        lambda backbone: fovlse(GRID, data="cifar10", antialias=True, backbone=backbone),
        lambda backbone: fovconc(GRID, data="cifar10", classes=4, backbone=backbone),
        PlainNetwork,
    ],
)
def test_networks_around_it_are_saved_and_loaded(build, tmp_path) -> None:
    network = build(worn(small(classes=4, dropout=0.25))).eval()
    network.save_pretrained(tmp_path)
    again = scalechannels.load(tmp_path)
    assert type(again.backbone) is ResidualBackbone
    assert again.backbone.arguments() == {"features": 4, "channels": 3, "classes": 4, "dropout": 0.25}
    images = torch.rand(2, 3, 32, 32)
    torch.testing.assert_close(again(images), network(images))


def test_a_backbone_that_is_given_has_its_own_channels_and_width() -> None:
    for option in ({"channels": 3}, {"width": 2}):
        with pytest.raises(ValueError, match="leave them out with your own backbone"):
            fovlse(GRID, data="cifar10", backbone=small(), **option)
    network = fovlse(GRID, data="cifar10", backbone=small())
    assert (network.foveate.window, network.foveate.outside) == (32, "reflect")
