"""The networks inside a scale channel: exact sizes, sliding equal to cropping, and clear limits."""

import pytest
import torch
from helpers.worn import worn
from torch import nn

from scalechannels import MaxOverScales, PlainNetwork, ScaleChannelNetwork, ScaleGrid, averaged_over_scales
from scalechannels.backbones.inference import colours
from scalechannels.backbones.paper import CifarBackbone, ConvBackbone, mnist_backbone
from scalechannels.backbones.sliding import convolutional
from scalechannels.dense import DenseNetwork


def parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_the_papers_parameter_counts():
    assert parameters(mnist_backbone()) == 68_870
    assert parameters(mnist_backbone(batch_norm=False)) == 68_678
    assert parameters(ConvBackbone((16, 16, 16, 16, 32, 32, 32, 32), window=112)) == 92_198
    assert parameters(CifarBackbone()) == 298_506


def test_the_feature_maps_of_the_mnist_backbone_shrink_as_in_the_paper():
    """28 → 26 → 12 → 10 → 4 and 16-16-32-32 features."""
    backbone, shapes = mnist_backbone(), []
    maps = torch.randn(1, 1, 28, 28)
    for block in backbone.convolutions:
        maps = block(maps)
        shapes.append(tuple(maps.shape[1:]))
    assert shapes == [(16, 26, 26), (16, 12, 12), (32, 10, 10), (32, 4, 4)]


def test_the_feature_maps_of_the_cifar_backbone_shrink_as_in_the_paper():
    backbone, shapes = CifarBackbone(), []
    maps = torch.randn(1, 3, 32, 32)
    for block in backbone.convolutions:
        maps = block(maps)
        shapes.append(tuple(maps.shape[1:]))
    assert [shape[0] for shape in shapes] == [32, 32, 32, 64, 64, 128, 128]
    assert [shape[1] for shape in shapes] == [32, 32, 16, 16, 8, 8, 4]


@pytest.mark.parametrize("batch_norm", [True, False])
def test_the_order_of_a_block_is_convolution_batch_norm_relu(batch_norm: bool):
    block = mnist_backbone(batch_norm=batch_norm).convolutions[0]
    expected = [nn.Conv2d, nn.BatchNorm2d, nn.ReLU] if batch_norm else [nn.Conv2d, nn.ReLU]
    assert [type(layer) for layer in block] == expected


def test_dropout_is_15_percent_before_the_last_layer_only():
    backbone = mnist_backbone()
    drops = [module for module in backbone.modules() if isinstance(module, nn.Dropout)]
    assert [drop.p for drop in drops] == [0.15]
    backbone.drop = nn.Dropout(1.0)
    torch.testing.assert_close(
        backbone.train()(torch.randn(4, 1, 28, 28)), backbone.classifier.bias.expand(4, 10)
    )


def test_sliding_equals_the_backbone_on_every_crop():
    """Four pixels of the image to one of the logit map: the strides multiply to 4."""
    torch.manual_seed(0)
    backbone = mnist_backbone(channels=2, classes=5).double().eval()
    images = torch.randn(2, 2, 40, 44, dtype=torch.float64)
    dense = backbone.logit_map(images)
    assert dense.shape == (2, 5, 4, 5)
    for i in range(4):
        for j in range(5):
            crop = images[:, :, 4 * i : 4 * i + 28, 4 * j : 4 * j + 28]
            torch.testing.assert_close(dense[:, :, i, j], backbone(crop), rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [(32, 32), (7, 50), (1, 1)], ids=str)
def test_the_cifar_backbone_takes_any_size(size):
    assert CifarBackbone(classes=7).eval()(torch.randn(2, 3, *size)).shape == (2, 7)


def test_a_backbone_can_be_built_again_from_its_arguments():
    for backbone in (mnist_backbone(window=32, channels=3, classes=4, batch_norm=False), CifarBackbone()):
        again = type(backbone)(**backbone.arguments())
        assert repr(again) == repr(backbone)


@pytest.mark.parametrize("window", [1, 8, 12])
def test_a_window_that_does_not_fit_is_named(window: int):
    with pytest.raises(ValueError, match=rf"window of {window} pixels does not fit.*give a larger window"):
        mnist_backbone(window=window)


def test_the_smallest_window_that_fits():
    assert mnist_backbone(window=13).eval()(torch.randn(1, 1, 13, 13)).shape == (1, 10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"channels": 0}, "channels must be a whole number of at least 1; got 0"),
        ({"classes": -3}, "classes must be a whole number of at least 1; got -3"),
        ({"window": 28.0}, "window must be a whole number of at least 1; got 28.0"),
    ],
)
def test_bad_counts_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        mnist_backbone(**options)
    if "window" not in options:
        with pytest.raises(ValueError, match=message):
            CifarBackbone(**options)


def test_every_layer_has_features():
    with pytest.raises(
        ValueError, match="features must hold a number for each layer, at least one; got none"
    ):
        ConvBackbone(())
    with pytest.raises(ValueError, match="features of layer 2 must be a whole number of at least 1; got 0"):
        ConvBackbone((3, 0))


@pytest.mark.parametrize("backbone", [ConvBackbone(), ConvBackbone(batch_norm=False), CifarBackbone()])
def test_folded_batch_norm_computes_the_same(backbone) -> None:
    """To rounding."""
    torch.manual_seed(0)
    worn(backbone)
    windows = torch.randn(3, backbone.channels, 28, 28)
    with torch.no_grad():
        expected = backbone(windows)
        torch.testing.assert_close(backbone.folded()(windows), expected, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_a_changed_backbone_slides_as_it_is_or_is_refused() -> None:
    """A leaky ReLU treats every place alike; a group norm looks at the whole window."""
    torch.manual_seed(0)
    windows = torch.randn(3, 1, 28, 28)
    leaky, grouped, rescaled = (mnist_backbone().eval() for _ in range(3))
    for block in leaky.convolutions:
        block[2] = nn.LeakyReLU(0.5)
    torch.testing.assert_close(
        convolutional(leaky, 28).logit_map(windows)[..., 0, 0], leaky(windows), atol=1e-4, rtol=1e-4
    )
    grouped.convolutions[0][1] = nn.GroupNorm(2, 16)
    with pytest.raises(TypeError, match="ConvBackbone does not slide: on a map it differs"):
        convolutional(grouped, 28)
    rescaled.dense.register_forward_hook(lambda *called: 2 * called[2])
    with pytest.raises(TypeError, match="Linear has hooks or another forward, which a dense map"):
        convolutional(rescaled, 28)


def test_dense_maps_export_and_averaging_read_no_hidden_width_of_an_own_backbone() -> None:
    own = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 2)
    )
    own.channels, own.window = 16, 7
    network = ScaleChannelNetwork(own, ScaleGrid.of(1, 2), MaxOverScales(), window=8)
    assert colours(network.backbone, otherwise=1) == 3
    assert DenseNetwork(network)(torch.rand(1, 3, 20, 20)).logits.shape == (1, 2, 5, 5)
    with pytest.raises(ValueError, match="give window="):
        averaged_over_scales(PlainNetwork(own), ScaleGrid.of(1), 1)
