"""The law of looking everywhere, on ideal signals: what a shift and a rescaling leave unchanged.

Each channel has a lattice of its own, stride·σ image pixels from place to place.
"""

import math

import pytest
import torch
from helpers.lively import lively
from helpers.signals import blob, pattern
from torch import Tensor

from scalechannels import (
    DenseNetwork,
    LogMeanExpOverScales,
    MaxOverScales,
    ScaleChannelNetwork,
    ScaleGrid,
    evidence_centres,
    expected_window,
    fovmax,
)
from scalechannels.backbones.paper import mnist_backbone

STRIDE = 4
OCTAVES = ScaleGrid(0.5, 4, ratio=2)


def network(grid: ScaleGrid = OCTAVES, pool: type = MaxOverScales, **options) -> ScaleChannelNetwork:
    torch.manual_seed(0)
    backbone = mnist_backbone(window=13, classes=3)
    made = ScaleChannelNetwork(backbone, grid, pool(), 13, look="everywhere", **options)
    return lively(made).double().eval()


def difference(one: Tensor, other: Tensor, channels: Tensor) -> float:
    """The largest difference, in parts of how far the channels (S, K) differ from each other."""
    return float((one - other).abs().max() / (channels - channels.mean(0)).abs().max())


@torch.no_grad()
@pytest.mark.parametrize("sigma", [0.5, 2**0.5, 3.0])
@pytest.mark.parametrize("places", ["max", "mean", "logmeanexp"])
def test_a_shift_by_whole_steps_of_a_channel_changes_nothing(sigma: float, places: str):
    """Two steps down and one to the left; the signal is sampled there, not interpolated."""
    net = network(ScaleGrid.of(sigma), places=places)
    side = 101 if sigma < 2 else 241
    f = pattern(1.5 * max(1, sigma))
    moved = f.moved(2 * STRIDE * sigma, -STRIDE * sigma)
    here, there = (net(one.image(side, side)) for one in (f, moved))
    empty = net(torch.zeros(1, 1, side, side, dtype=torch.float64))
    assert (here - empty).abs().max() > 1e-3 * (places == "max")
    exact = 1e-3 if (STRIDE * sigma) % 1 == 0 else 0.05  # else other pixels lie between the samples
    assert (here - there).abs().max() <= exact * (here - empty).abs().max()


@torch.no_grad()
def test_a_shift_by_less_changes_a_maximum_by_no_more_than_the_logits_vary_within_a_step_of_their_peak():
    """Some place of the lattice lies within half a step of the peak, wherever the object is."""
    net, f = network(ScaleGrid.of(1.0)), pattern(1.6)
    shifts = [(down, right) for down in range(STRIDE) for right in range(STRIDE)]
    maps = [net.backbone.logit_map(f.moved(-d, -r).image(101, 101)) for d, r in shifts]
    finest = torch.stack(maps).unflatten(0, (STRIDE, STRIDE))  # (4, 4, 1, K, h, w)
    finest = finest.permute(2, 3, 4, 0, 5, 1).flatten(4, 5).flatten(2, 3)[0]  # (K, 4 h, 4 w): at every pixel
    peaks = finest.flatten(1).argmax(1)
    for number, logits in enumerate(finest):
        row, column = divmod(int(peaks[number]), logits.shape[1])
        near = logits[row - 2 : row + 3, column - 2 : column + 3]
        found = torch.stack([one[0, number].amax() for one in maps])
        assert (found <= near.amax() + 1e-12).all()
        assert (found >= near.amin()).all()
        assert found.amin() < near.amax() - 1e-4  # the stride does break it


@torch.no_grad()
def test_a_rescaling_by_the_ratio_shifts_the_channels():
    """Centred lattices are scaled with the image; on octaves the samples lie on pixels."""
    net, f = network(centred=True), pattern(2.0).moved(6, -4)
    channels = net.channel_logits(f.image(201, 201))[0]
    enlarged = net.channel_logits(f.scaled(2).image(201, 201))[0]
    torch.testing.assert_close(enlarged[2:], channels[1:-1], rtol=0, atol=1e-6)
    assert difference(enlarged[1], channels[0], channels) < 0.1  # σ = 1/2 interpolates
    assert difference(enlarged[1:], channels[1:], channels) > 0.5
    beside = network().channel_logits
    here, there = (beside(one.image(201, 201))[0] for one in (f, f.scaled(2)))
    assert not torch.allclose(there[2:], here[1:-1], atol=1e-4)  # lattices that are not centred


@torch.no_grad()
def test_the_answer_survives_a_rescaling_between_octaves():
    """At ratio √2 up to interpolation, while the deciding channels stay inside the grid."""
    net, f = network(ScaleGrid(0.5, 4, ratio=2**0.5), centred=True), pattern(3.0)
    said, bigger = (net.explain(one.image(201, 201)) for one in (f, f.scaled(2**0.5)))
    channels, larger = said.channels[0], bigger.channels[0]
    assert difference(larger[1:], channels[:-1], channels) < 0.1
    assert difference(larger, channels, channels) > 0.3


@torch.no_grad()
@pytest.mark.parametrize("pool", [MaxOverScales, LogMeanExpOverScales])
def test_windows_count_by_their_area_and_the_law_of_scale_holds(pool: type):
    """Rescaled by the ratio, an object moves by one channel, and all logits rise by the same."""
    net, f = network(pool=pool, centred=True, area_power=1.5), pattern(2.0).moved(6, -4)
    even = network(pool=pool, centred=True)
    image, larger = f.image(201, 201), f.scaled(2).image(201, 201)
    weights = 3 * torch.tensor(OCTAVES.factors, dtype=torch.float64).log()
    counted, plain = net.channel_logits(image)[0], even.channel_logits(image)[0]
    torch.testing.assert_close(counted, plain + weights[:, None])
    enlarged = net.channel_logits(larger)[0]
    torch.testing.assert_close(enlarged[2:], counted[1:-1] + 3 * math.log(2), rtol=0, atol=1e-6)
    assert not torch.allclose(net(image).softmax(1), even(image).softmax(1), atol=1e-3)
    explained = net.explain(image)
    torch.testing.assert_close(explained.channels[0], counted)
    torch.testing.assert_close(explained.logits, net(image))
    dense = DenseNetwork(net, step=4).channel_maps(image[0])
    beside = DenseNetwork(even, step=4).channel_maps(image[0])
    for one, other, weight in zip(dense, beside, weights, strict=True):
        torch.testing.assert_close(one.logits, other.logits + weight)


@pytest.mark.parametrize("power", [-1.0, 9.0, math.nan])
def test_an_area_power_that_means_nothing(power: float):
    with pytest.raises(ValueError, match="area_power must be from 0 to 8; got"):
        network(area_power=power)
    with pytest.raises(ValueError, match="area_power"):
        ScaleChannelNetwork(mnist_backbone(), OCTAVES, MaxOverScales(), area_power=1.0)


@torch.no_grad()
@pytest.mark.parametrize("temperature", [0.005, 1.0])
def test_the_expected_window_follows_the_object(temperature: float):
    net, f = network(), pattern(1.6)
    step = STRIDE * 4.0  # of the coarsest channel, and whole steps of all others
    here, there = (
        expected_window(net, one.image(151, 151), temperature=temperature)
        for one in (f, f.moved(step, -2 * step))
    )
    if temperature < 1:  # the background does not draw it back
        moved = there.places - here.places
        torch.testing.assert_close(
            moved, torch.tensor([[step, -2 * step]], dtype=torch.float64), atol=0.05, rtol=0
        )
    torch.testing.assert_close(here.octaves, there.octaves, atol=1e-3, rtol=0)


@torch.no_grad()
def test_at_a_low_temperature_it_is_the_window_that_decided():
    net, image = network(pool=LogMeanExpOverScales), torch.randn(3, 1, 60, 70, dtype=torch.float64)
    said, soft = net.explain(image), expected_window(net, image, temperature=1e-6)
    torch.testing.assert_close(soft.places, said.places, rtol=0, atol=1e-6)
    torch.testing.assert_close(soft.octaves, said.scales.log2().double(), rtol=0, atol=1e-6)


def test_the_expected_window_does_not_depend_on_the_mode_and_leaves_no_trace():
    net, image = network(), torch.randn(3, 1, 60, 70, dtype=torch.float64)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    expected = expected_window(net.eval(), image)
    found = expected_window(net.train(), image)
    assert all(part.training for part in net.modules())
    for name, value in net.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert torch.equal(found.places, expected.places)
    assert torch.equal(found.octaves, expected.octaves)


def test_the_expected_window_has_the_gradient_of_moving_it():
    """Brighter below, the place moves down: its derivative is the difference quotient."""
    net = network(ScaleGrid.of(1.0, 2.0))
    image = blob(2.5).image(25, 27).requires_grad_()
    torch.autograd.gradcheck(
        lambda one: tuple(expected_window(net, one)), (image,), fast_mode=True, atol=1e-6
    )
    expected_window(net, image).places.sum().backward()
    assert image.grad.abs().max() > 0


def test_what_has_no_place_is_named():
    with pytest.raises(TypeError, match="only a network that looks everywhere has a place"):
        expected_window(fovmax(ScaleGrid.of(1)), torch.zeros(1, 1, 28, 28))
    with pytest.raises(ValueError, match="temperature must be above 0; got 0"):
        expected_window(network(), torch.zeros(1, 1, 28, 28).double(), temperature=0)


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_the_centre_of_the_evidence_follows_the_object_between_the_places(mode: str):
    """Exactly by whole steps of all channels, and nearly by less than a step, which no window does."""
    net, f = network(pool=LogMeanExpOverScales), blob(4.0)
    getattr(net, mode)()
    step = STRIDE * 4.0
    here, near, far = (
        evidence_centres(net, one.image(101, 111)) for one in (f, f.moved(1.0, -2.0), f.moved(step, step))
    )
    torch.testing.assert_close(near - here, torch.tensor([[1.0, -2.0]]).double(), atol=0.5, rtol=0)
    torch.testing.assert_close(far - here, torch.full((1, 2), step).double(), atol=0.1, rtol=0)
    assert net.training == (mode == "train")
    assert all(parameter.grad is None for parameter in net.parameters())
    with torch.inference_mode():  # which has no gradients by itself
        torch.testing.assert_close(evidence_centres(net, f.image(101, 111)), here)


def test_the_evidence_is_where_the_pixels_are_that_decide():
    class Corner(torch.nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            seen = images[:, 0, 3:6, 10:13].sum((1, 2))
            return torch.stack((seen, -seen), 1)

    image = torch.zeros(1, 1, 20, 30)
    image[..., 2:8, 9:20] = 1.0
    torch.testing.assert_close(evidence_centres(Corner(), image), torch.tensor([[4.0, 11.0]]).double())
