"""Looking everywhere: whole rescaled images, as an obvious loop does it with the reference's sampling."""

import math
from collections.abc import Callable
from typing import get_args

import pytest
import torch
from helpers import reference
from helpers.signals import pattern
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from scalechannels import (
    LogMeanExpOverScales,
    MaxOverScales,
    ScaleChannelNetwork,
    ScaleGrid,
    swmax,
)
from scalechannels.backbones.paper import ConvBackbone, mnist_backbone
from scalechannels.everywhere import OVER_PLACES
from scalechannels.network import Places
from scalechannels.sampling import resample


def sampled(image: Tensor, sigma: float, height: int, width: int) -> Tensor:
    """(C, height, width) samples at spacing σ about the centre, each a reference window of one pixel."""
    C, H, W = image.shape
    result = torch.zeros(C, height, width, dtype=torch.float64)
    for i in range(height):
        for j in range(width):
            centre = [
                (H - 1) / 2 + sigma * (i - (height - 1) / 2),
                (W - 1) / 2 + sigma * (j - (width - 1) / 2),
            ]
            window = reference.foveate(
                image[None], ScaleGrid.of(1.0), 1, centres=torch.tensor([centre], dtype=torch.float64)
            )
            result[:, i, j] = window[0, 0, :, 0, 0]
    return result


def small_network(grid: ScaleGrid, seed: int = 0) -> ScaleChannelNetwork:
    torch.manual_seed(seed)
    return swmax(grid, window=13, classes=3).double().eval()


def test_the_network_equals_an_obvious_loop_with_the_references_sampling():
    """eq-disc-sliding-window-pool: max over places, then over scales, of the backbone on every crop."""
    grid = ScaleGrid.of(0.8, 1.5, 3)
    net = small_network(grid)
    image = torch.randn(1, 21, 18, dtype=torch.float64)
    maxima = []
    for sigma in grid:
        height, width = (max(13, math.ceil(side / sigma)) for side in (21, 18))
        rescaled = sampled(image, sigma, height, width)
        logits = [
            net.backbone(rescaled[None, :, i : i + 13, j : j + 13])[0]
            for i in range(0, height - 12, 4)
            for j in range(0, width - 12, 4)
        ]
        maxima.append(torch.stack(logits).amax(0))
    channels = torch.stack(maxima)[None]  # (1, S, K)
    torch.testing.assert_close(net.channel_logits(image[None]), channels, rtol=0, atol=1e-10)
    torch.testing.assert_close(net(image[None]), channels.amax(1), rtol=0, atol=1e-10)


def test_in_one_window_it_is_the_backbone_itself():
    """At σ = 1 an image of 28x28 holds one window: the convolutional dense layers equal the dense ones."""
    torch.manual_seed(0)
    net = swmax(ScaleGrid.of(1)).eval()
    images = torch.randn(3, 1, 28, 28)
    assert net.backbone.logit_map(images).shape == (3, 10, 1, 1)
    torch.testing.assert_close(net(images), net.backbone(images), rtol=1e-5, atol=1e-5)


@given(side=st.integers(1, 200), sigma=st.floats(0.25, 10))
@settings(deadline=None, max_examples=60)
def test_a_channel_has_ceil_h_over_sigma_samples_and_at_least_a_window(side: int, sigma: float):
    net = SIZES
    height, width = net.sampled_size((side, 2 * side), sigma)
    assert height == max(28, math.ceil(side / sigma - 1e-9))
    assert width == max(28, math.ceil(2 * side / sigma - 1e-9))


SIZES = swmax(ScaleGrid.of(1)).everywhere


@pytest.mark.parametrize(
    ("sigma", "expected"), [(0.5, 224), (1, 112), (2**0.25, 95), (2, 56), (4, 28), (8, 28)]
)
def test_the_sizes_on_the_papers_images(sigma: float, expected: int):
    assert SIZES.sampled_size((112, 112), sigma) == (expected, expected)


def test_a_whole_number_of_samples_gains_none_by_rounding():
    """σ = H/k asks for k samples, also where H/σ comes out a little above k in floating point."""
    troubled = 0
    for side in range(29, 200):
        for count in range(28, 60):
            sigma = side / count
            troubled += math.ceil(side / sigma) != count
            assert SIZES.sampled_size((side, 28), sigma)[0] == count
    assert troubled > 0


def test_an_image_smaller_than_the_window_is_padded_by_its_border():
    """The rescaled image of channel 4 has 5 samples; the rest of the window repeats the border."""
    net, image = small_network(ScaleGrid.of(4.0)), torch.randn(1, 1, 20, 20, dtype=torch.float64)
    seen = resample(image, ScaleGrid.of(4.0), (13, 13))[0, 0, 0]
    assert seen[0].unique().numel() == seen[1].unique().numel()  # the upper rows are the first row
    torch.testing.assert_close(seen[0], seen[1], rtol=0, atol=0)
    torch.testing.assert_close(net(image), net.backbone(seen[None, None]), rtol=0, atol=1e-12)


def test_a_shifted_object_keeps_the_same_maximum():
    """A shift by whole strides in every channel moves the map, not its maximum; FovMax would look elsewhere.

    4 pixels of a rescaled image to a step of the map: 8 image pixels are two steps in channel 1, one in 2.
    """
    net = small_network(ScaleGrid.of(1, 2))
    f = pattern(1.6)
    here, there = f.image(101, 101), f.moved(8, -16).image(101, 101)
    torch.testing.assert_close(net.channel_logits(here), net.channel_logits(there), rtol=0, atol=1e-6)
    maps = [net.backbone.logit_map(image) for image in (here, there)]
    assert not torch.allclose(*maps)
    background = maps[0][..., 0, 0]
    assert (maps[0].amax((2, 3)) > background + 1e-3).any()  # it is the object that decides
    torch.testing.assert_close(maps[1][..., 4:, :-4], maps[0][..., 2:-2, 4:], rtol=0, atol=1e-6)


def test_a_backbone_that_cannot_slide_is_named():
    with pytest.raises(TypeError, match=r"needs a method logit_map.*; Linear has none"):
        ScaleChannelNetwork(nn.Linear(3, 3), ScaleGrid.of(1), MaxOverScales(), look="everywhere")


def test_batch_norm_is_an_option():
    assert any(isinstance(m, nn.BatchNorm2d) for m in swmax(ScaleGrid.of(1), batch_norm=True).modules())
    assert not any(isinstance(m, nn.BatchNorm2d) for m in swmax(ScaleGrid.of(1)).modules())
    ScaleChannelNetwork(mnist_backbone(), ScaleGrid.of(1), MaxOverScales(), look="everywhere")


def test_in_training_batch_norm_sees_all_channels_as_one_batch():
    """Its statistics are those of all maps, so that in eval mode every channel computes what it learnt."""
    grid = ScaleGrid.of(1, 2)
    torch.manual_seed(0)
    net = ScaleChannelNetwork(mnist_backbone(window=13), grid, MaxOverScales(), 13, look="everywhere")
    images = torch.randn(2, 1, 30, 40) * 3 + 1
    net.train()(images)
    convolution, norm, _ = net.backbone.convolutions[0]
    sizes = [(30, 40), (15, 20)]
    maps = [convolution(resample(images, grid[s : s + 1], sizes[s])[:, 0]) for s in range(2)]
    places = torch.cat([one.flatten(2) for one in maps], 2).transpose(0, 1).flatten(1)  # (F, all places)
    torch.testing.assert_close(norm.running_mean, 0.1 * places.mean(1))
    torch.testing.assert_close(norm.running_var, 0.9 + 0.1 * places.var(1))
    assert norm.num_batches_tracked == 1


def test_centred_every_channel_has_a_window_at_its_centre():
    network = swmax(ScaleGrid(0.5, 8, ratio=2**0.25), centred=True)
    plain = swmax(network.grid)
    for sigma in network.grid:
        rows, columns = network.everywhere.sampled_size((112, 112), sigma)
        places = network.backbone.logit_map(torch.zeros(1, 1, rows, rows)).shape[-1]
        assert rows == columns
        assert places % 2 == 1
        assert 4 * (places - 1) + 28 == rows  # the last window ends where the rescaled image does
        assert 0 <= rows - plain.everywhere.sampled_size((112, 112), sigma)[0] < 8


@pytest.mark.parametrize("places", ["max", "mean", "logmeanexp"])
@pytest.mark.parametrize("pool", [MaxOverScales(), LogMeanExpOverScales()], ids=["max", "logmeanexp"])
def test_places_and_scales_are_pooled_as_asked(places: str, pool: nn.Module):
    """An object anywhere: the maximum over places, then log-mean-exp over scales, is one of them."""
    torch.manual_seed(0)
    backbone = mnist_backbone(window=13, classes=3)
    net = ScaleChannelNetwork(backbone, ScaleGrid.of(1, 2), pool, 13, look="everywhere", places=places)
    net, images = net.double().eval(), torch.randn(2, 1, 33, 40, dtype=torch.float64)
    over = {
        "max": lambda maps: maps.amax(2),
        "mean": lambda maps: maps.mean(2),
        "logmeanexp": lambda maps: maps.exp().mean(2).log(),
    }[places]
    maps = [
        backbone.logit_map(resample(images, ScaleGrid.of(sigma), size)[:, 0]).flatten(2)
        for sigma, size in ((1.0, (33, 40)), (2.0, (17, 20)))
    ]
    expected = pool(torch.stack([over(one) for one in maps], 1))
    torch.testing.assert_close(net(images), expected, rtol=0, atol=1e-10)


def test_the_place_that_decided_is_where_the_window_says_the_same():
    """Foveated about that place at the deciding scale, the backbone gives the winning logit."""
    torch.manual_seed(0)
    net = swmax(ScaleGrid.of(0.7, 1.5, 2.5), window=13, classes=3, margin=5).double()
    noise = [torch.randn(3, 1, side, side, dtype=torch.float64) for side in (3, 9, 27)]  # of several sizes
    images = torch.cat([nn.functional.interpolate(one, (37, 52), mode="bilinear") for one in noise])
    said = net.explain(images)
    winning = said.logits.argmax(1)
    assert len(said.scales.unique()) > 1
    assert len(said.places.unique(dim=0)) > 1
    for index in range(len(images)):
        scale = net.grid[said.contributions[index].argmax()]
        centred = ScaleChannelNetwork(net.backbone, ScaleGrid.of(scale), MaxOverScales(), 13).double().eval()
        there = centred(images[index : index + 1], said.places[index : index + 1])
        torch.testing.assert_close(there[0, winning[index]], said.logits[index, winning[index]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"look": "around"}, "look must be one of"),
        ({"look": "everywhere", "places": "most"}, "places must be one of"),
        ({"look": "everywhere", "shifts": 1}, "no head and no shifts"),
        ({"margin": 2}, 'are for look="everywhere"'),
        ({"look": "everywhere", "margin": -1}, "margin must be .* up to the window's 28; got -1"),
        ({"look": "everywhere", "margin": 2**20}, "margin must be .* up to the window's 28; got 1048576"),
        ({"shifts": 2**20}, "shifts must be a whole number .* up to 28; got 1048576"),
        ({"look": "everywhere", "norm": "some"}, "norm must be None, .joint. or .each.; got"),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_named(options, message: str):
    with pytest.raises(ValueError, match=message):
        ScaleChannelNetwork(mnist_backbone(), ScaleGrid.of(1), MaxOverScales(), **options)


def test_centres_are_for_windows_about_a_centre():
    with pytest.raises(ValueError, match="looks everywhere takes no centres"):
        swmax(ScaleGrid.of(1))(torch.zeros(1, 1, 28, 28), torch.zeros(1, 2))


def test_every_rule_over_places_can_be_asked_for() -> None:
    assert set(get_args(Places)) == set(OVER_PLACES)


class Doubled(nn.Linear):
    def forward(self, features: Tensor) -> Tensor:
        return 2 * super().forward(features)


@pytest.mark.parametrize(
    "change",
    [
        lambda backbone: backbone.register_forward_hook(lambda *called: 2 * called[2]),
        lambda backbone: backbone.dense.register_forward_pre_hook(lambda _, inputs: (2 * inputs[0],)),
        lambda backbone: setattr(backbone.classifier, "forward", lambda features: features[:, :3]),
        lambda backbone: setattr(backbone, "classifier", Doubled(100, 3)),
    ],
)
@pytest.mark.parametrize("side", [30, 800], ids=["whole", "in tiles"])
def test_what_would_be_ignored_is_refused(change: Callable[[nn.Module], object], side: int) -> None:
    net = swmax(ScaleGrid.of(1.0, 2.0), window=13, classes=3, batch_norm=True).eval()
    change(net.backbone)
    for mode in (torch.enable_grad, torch.no_grad) if side < 100 else (torch.no_grad,):
        with mode(), pytest.raises(TypeError, match=r"hooks or another forward, which .* everywhere; rem"):
            net(torch.zeros(1, 1, side, side))


@pytest.mark.parametrize("side", [30, 800], ids=["whole", "in tiles"])
@torch.no_grad()
def test_a_backbone_that_slides_otherwise_needs_a_new_network(side: int) -> None:
    """Its windows would be looked for where the old one had them, even outside the image."""
    for options in ({"features": (3, 3)}, {"window": 20}):
        net = swmax(ScaleGrid.of(1.0, 2.0)).eval()
        net.backbone = ConvBackbone(**{"features": (3, 3, 3, 3), **options}).eval()  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"stride 4 and windows of 28 pixels; .* make a new network"):
            net(torch.zeros(1, 1, side, side))


class Counted(nn.LeakyReLU):
    calls = 0

    def forward(self, maps: Tensor) -> Tensor:
        self.calls += 1
        return super().forward(maps)


@pytest.mark.parametrize("norm", ["joint", "each"])
def test_a_changed_layer_is_called_while_learning_as_in_use(norm: str) -> None:
    options = {"batch_norm": True} if norm == "joint" else {"norm": "each"}
    net = swmax(ScaleGrid.of(1.0, 2.0), window=13, classes=3, **options)  # type: ignore[arg-type]
    for block in net.backbone.convolutions:
        block[-1] = Counted()
    for learning in (True, False):
        net.train(learning)(torch.randn(2, 1, 30, 40))
    assert [block[-1].calls for block in net.backbone.convolutions] == [4] * 4  # once for each channel


def test_another_norm_sees_each_channel_by_itself_in_learning_too() -> None:
    net = swmax(ScaleGrid.of(1.0, 2.0), window=13, classes=3, batch_norm=True)
    for block in net.backbone.convolutions:
        block[1] = nn.GroupNorm(2, block[0].out_channels)
    net.backbone.drop.p = 0.0
    images = torch.randn(2, 1, 30, 40)
    torch.testing.assert_close(net.train()(images), net.eval()(images))
