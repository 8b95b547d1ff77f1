"""averaged_over_scales: the CNN on the image zoomed one factor at a time, its probabilities averaged."""

import math
from pathlib import Path

import pytest
import torch
from helpers import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import scalechannels
from scalechannels import (
    PlainNetwork,
    ScaleChannelNetwork,
    ScaleGrid,
    averaged_over_scales,
    cnn,
    fovlse,
    plain,
)
from scalechannels.backbones.paper import ConvBackbone, mnist_backbone
from scalechannels.backbones.residual import ResidualBackbone
from scalechannels.data.image_set import ImageSet
from scalechannels.sampling import resample
from scalechannels.saving.saved_network import SavedNetwork
from scalechannels.training.evaluate import evaluate_set

pytestmark = pytest.mark.usefixtures("one_thread")

GRID = ScaleGrid.of(0.5, 0.8, 1, 2.3)


def lively_cnn(*, window: int = 20, channels: int = 1, classes: int = 4) -> PlainNetwork:
    """A small CNN that is sure of other classes for other images, with batch norm away from 0 and 1."""
    torch.manual_seed(0)
    network = PlainNetwork(
        ConvBackbone((4, 4, 6, 6), window=window, channels=channels, classes=classes, hidden=12)
    )
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-0.5, 0.5)
            module.running_var.uniform_(0.2, 2)
        elif isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.kaiming_normal_(module.weight)
    return network.double().eval()


def images_of(count: int, channels: int = 1, side: int = 20) -> Tensor:
    return torch.randn(
        count, channels, side, side, dtype=torch.float64, generator=torch.Generator().manual_seed(5)
    )


def one_factor_at_a_time(network: PlainNetwork, images: Tensor, grid: ScaleGrid, **options) -> Tensor:
    """The mean probability (B, K) as a loop over factors has it, each image of the CNN's own size."""
    side = network.backbone.window
    total = torch.zeros(len(images), network.backbone.classes, dtype=images.dtype)
    for sigma in grid:
        zoomed = resample(images, ScaleGrid.of(sigma), (side, side), **options)[:, 0]  # (B, C, n, n)
        total += network(zoomed).softmax(1)
    return total / len(grid)


@pytest.mark.parametrize("learning", [False, True], ids=["folded", "with gradients"])
@pytest.mark.parametrize("antialias", [False, True], ids=["bilinear", "antialias"])
def test_it_is_the_mean_of_the_cnns_probabilities_one_factor_at_a_time(antialias: bool, learning: bool):
    network, images = lively_cnn(channels=2), images_of(3, channels=2, side=26)
    averaged = averaged_over_scales(network, GRID, 1, antialias=antialias)
    with torch.set_grad_enabled(learning):
        expected = one_factor_at_a_time(network, images, GRID, antialias=antialias)
        torch.testing.assert_close(averaged.eval()(images), expected.log(), rtol=0, atol=1e-10)
    other = one_factor_at_a_time(network, images, GRID, antialias=not antialias)
    assert (other - expected).abs().max() > 1e-3  # the option has an effect


def test_the_image_is_sampled_as_the_reference_does():
    """Factor σ at spacing σ about the centre, the border repeated: the convention of the scale channels."""
    network, images = lively_cnn(), images_of(2)
    averaged = averaged_over_scales(network, GRID, 1).eval()
    windows = reference.foveate(images, GRID, 20)  # (B, S, C, n, n)
    expected = torch.stack([network(windows[:, place]) for place in range(len(GRID))], 1)
    torch.testing.assert_close(averaged.channel_logits(images), expected, rtol=0, atol=1e-10)
    other = averaged_over_scales(network, GRID, 1, outside="reflect").eval().channel_logits(images)
    assert (other - expected)[:, -1].abs().max() > 1e-3
    torch.testing.assert_close(other[:, :2], expected[:, :2], rtol=0, atol=1e-10)  # they see no border


def test_the_mean_is_over_probabilities_and_not_over_logits():
    network, images = lively_cnn(), images_of(6)
    averaged = averaged_over_scales(network, GRID, 1).eval()
    channels = averaged.channel_logits(images)
    assert channels.shape == (6, len(GRID), 4)
    of_probabilities = averaged(images).softmax(1)
    torch.testing.assert_close(of_probabilities, channels.softmax(2).mean(1), rtol=0, atol=1e-12)
    assert (of_probabilities - channels.mean(1).softmax(1)).abs().max() > 1e-2
    assert (of_probabilities - channels.logsumexp(1).softmax(1)).abs().max() > 1e-2  # nor that of fovlse


def test_its_output_is_the_log_of_probabilities():
    averaged = averaged_over_scales(lively_cnn(), GRID, 1).eval()
    torch.testing.assert_close(averaged(images_of(5)).exp().sum(1), torch.ones(5, dtype=torch.float64))


@pytest.mark.parametrize("training_size", [1, 2.0])
def test_one_factor_1_is_the_cnn_itself(training_size: float):
    network, images = lively_cnn(), images_of(4)
    averaged = averaged_over_scales(network, ScaleGrid.of(training_size), training_size).eval()
    torch.testing.assert_close(averaged(images), network(images).log_softmax(1), rtol=0, atol=1e-10)


def test_the_papers_cnn_and_its_factors():
    """Learnt at size 2, tested from 1/2 to 8: zoomed by 1/4 to 4, the middle one the image as it is."""
    averaged = averaged_over_scales(cnn(), ScaleGrid(0.5, 8, ratio=2**0.25), 2)
    assert len(averaged.grid) == 17
    assert (averaged.grid.minimum, averaged.grid[8], averaged.grid.maximum) == (0.25, 1, 4)
    assert averaged.foveate.window == 112
    assert sum(parameter.numel() for parameter in averaged.parameters()) == 92_198


@given(size=st.floats(0.5, 4))
@settings(deadline=None, max_examples=20)
def test_the_factor_of_a_size_brings_an_object_back_to_the_size_of_training(size: float):
    """A ramp that was stretched by size / 2, zoomed by the factor of `size`, is one of size 2 again."""
    averaged = averaged_over_scales(RAMPS, ScaleGrid.of(size), 2)
    columns = torch.arange(120, dtype=torch.float64) - 119 / 2
    stretched = (columns / (size / 2)).expand(1, 1, 120, 120)
    slope = averaged.foveate(stretched)[0, 0, 0, 10].diff()
    torch.testing.assert_close(slope, torch.ones(19, dtype=torch.float64))


RAMPS = lively_cnn()


@pytest.mark.parametrize("scale", [1e3, 1e5])
def test_very_sure_factors_stay_finite(scale: float):
    """exp of such logits overflows, and the probability of the losing class is 0 in any precision."""
    averaged = averaged_over_scales(PlainNetwork(Loud(scale)), ScaleGrid.of(1, 2), 1, window=4).eval()
    sure = averaged(torch.ones(1, 1, 4, 4))
    torch.testing.assert_close(sure, torch.tensor([[0.0, -scale]]))


class Loud(nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, images: Tensor) -> Tensor:
        mean = images.mean((1, 2, 3)) * self.scale  # (N,)
        return torch.stack([mean, torch.zeros_like(mean)], 1)


def test_the_pieces_do_not_show(monkeypatch: pytest.MonkeyPatch):
    """Memory stays bounded: no piece holds more than its budget, and the result is the same."""
    network, images = lively_cnn(), images_of(9)
    averaged = averaged_over_scales(network, GRID, 1).eval()
    whole = averaged(images)  # with gradients, so in one piece
    monkeypatch.setattr("scalechannels.backbones.inference.CPU_PIXELS", 1000)  # 2 windows of 400 pixels
    sampled: list[int] = []
    averaged.foveate.register_forward_hook(lambda *called: sampled.append(len(called[2].flatten(0, 1))))
    seen: list[int] = []
    folded = averaged.backbone.folded()
    monkeypatch.setattr(
        averaged.backbone, "folded", lambda: lambda windows: seen.append(len(windows)) or folded(windows)
    )
    with torch.no_grad():
        torch.testing.assert_close(averaged(images), whole, rtol=0, atol=1e-10)
    assert max(seen) == 2
    assert max(sampled) <= 8 * 2.5
    assert sum(seen) == sum(sampled) == 9 * len(GRID)


def test_gradients_reach_the_cnn_whose_weights_it_shares():
    network = lively_cnn()
    averaged = averaged_over_scales(network, GRID, 1)
    averaged(images_of(4)).amax().backward()
    gradient = network.backbone.convolutions[0][0].weight.grad
    assert gradient is not None
    assert gradient.abs().max() > 0


@pytest.mark.parametrize("options", [{}, {"antialias": True, "outside": "reflect"}], ids=["plain", "options"])
def test_it_comes_back_bit_equal(options: dict, tmp_path: Path):
    averaged = averaged_over_scales(lively_cnn(), GRID, 1, **options).eval()
    averaged.save_pretrained(tmp_path)
    images = images_of(3)
    for again in (ScaleChannelNetwork.from_pretrained(tmp_path), scalechannels.load(tmp_path)):
        assert not again.training
        assert again.grid == GRID
        assert repr(again) == repr(averaged)
        with torch.no_grad():
            assert torch.equal(again(images), averaged(images))


def test_around_an_own_cnn_it_asks_for_it(tmp_path: Path):
    averaged = averaged_over_scales(PlainNetwork(Loud(3.0)), GRID, 1, window=6).eval()
    averaged.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"saved with your own backbone, .*Loud"):
        scalechannels.load(tmp_path)
    again, images = scalechannels.load(tmp_path, backbone=Loud(3.0)), torch.randn(2, 1, 6, 6)
    assert torch.equal(again(images), averaged(images))


def test_each_factors_share_of_the_winning_probability_is_told():
    averaged, images = averaged_over_scales(lively_cnn(), GRID, 1), images_of(8)
    with torch.no_grad():
        answers = averaged.eval()(images).argmax(1)
        shares = averaged.channel_logits(images).softmax(2)[torch.arange(8), :, answers]  # (B, S)
    result = evaluate_set(averaged, ImageSet(images, answers, torch.ones(8)), 1.0, 4)
    assert result.accuracy == 100
    expected = (shares / shares.sum(1, keepdim=True)).mean(0)
    torch.testing.assert_close(torch.tensor(result.selection, dtype=torch.float64), expected)


def test_a_cnn_for_any_size_needs_to_be_told_its_own():
    network = cnn(data="cifar10").eval()
    with pytest.raises(ValueError, match="CifarBackbone takes images of any size: give window="):
        averaged_over_scales(network, GRID, 1)
    averaged = averaged_over_scales(network, GRID, 1, window=32, outside="reflect").eval()
    images = torch.randn(1, 3, 32, 32)
    torch.testing.assert_close(averaged.channel_logits(images)[:, 2], network(images), rtol=0, atol=1e-4)


def test_what_cannot_be_averaged_is_named():
    network = lively_cnn()
    with pytest.raises(TypeError, match=r"must be a PlainNetwork, .*; got ScaleChannelNetwork"):
        averaged_over_scales(fovlse(GRID), GRID, 1)
    with pytest.raises(TypeError, match=r"sizes must be a ScaleGrid, .*; got list"):
        averaged_over_scales(network, [1, 2], 1)
    for size in (0, -2, math.inf, math.nan):
        with pytest.raises(ValueError, match=f"training_size must be a positive, finite number; got {size}"):
            averaged_over_scales(network, GRID, size)
    with pytest.raises(ValueError, match="takes windows of 20 pixels, the network gives 28"):
        averaged_over_scales(network, GRID, 1, window=28)
    with pytest.raises(ValueError, match=r"outside must be one of .*; got 'borders'"):
        averaged_over_scales(network, GRID, 1, outside="borders")


@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        (torch.zeros(20, 20), ValueError, r"must have the shape \(B, C, H, W\); got \(20, 20\)"),
        (torch.zeros(1, 3, 20, 20), ValueError, "this network takes grey images; got RGB images"),
        (torch.zeros(1, 1, 20, 20, dtype=torch.uint8), TypeError, "images must be floating; got torch.uint8"),
        (torch.zeros(0, 1, 20, 20), ValueError, r"must not be empty; got \(0, 1"),
        ([[0.0]], TypeError, "a torch.Tensor.*got list"),
    ],
)
def test_what_is_no_image_is_named(images: Tensor, error: type[Exception], message: str):
    averaged = averaged_over_scales(lively_cnn(), GRID, 1).eval()
    with pytest.raises(error, match=message):
        averaged(images)
    with pytest.raises(error, match=message):
        averaged.channel_logits(images)


def test_only_the_cnn_of_digits_can_be_wider() -> None:
    with pytest.raises(ValueError, match="width must be 1 for the CIFAR-10 backbone; got 2"):
        cnn(data="cifar10", width=2)


def test_resized_images_have_one_answer_at_every_size_and_keep_their_aspect(tmp_path) -> None:
    from scalechannels.backbones.sized import sized_backbone
    from scalechannels.plain import PlainNetwork, resized

    network = PlainNetwork(sized_backbone(28, 1, 3), resize=True).eval()
    ramp = torch.linspace(0, 1, 112).expand(1, 1, 112, 112)
    smaller = resized(ramp, 28)
    assert torch.equal(resized(smaller, 28), smaller)  # already of that size
    assert torch.allclose(network(ramp), network(smaller), atol=1e-6)
    wide = torch.rand(1, 1, 56, 112)
    seen = resized(wide, 28)
    assert torch.allclose(seen[..., 0, :], seen[..., 5, :])  # above the image its first row is repeated
    assert not torch.allclose(seen[..., 10, :], seen[..., 14, :])
    network.save_pretrained(tmp_path / "net")
    again = scalechannels.load(tmp_path / "net")
    assert torch.equal(again(wide), network(wide))
    with pytest.raises(ValueError, match="resize needs window, as this backbone does not say"):
        PlainNetwork(torch.nn.Flatten(), resize=True)


def test_explaining_does_not_depend_on_the_mode_and_leaves_no_trace() -> None:
    torch.manual_seed(0)
    network, images = PlainNetwork(ConvBackbone((3, 3), classes=3)), torch.randn(4, 1, 28, 28)
    network(images)  # batch norm has statistics of its own now
    before = {name: value.clone() for name, value in network.state_dict().items()}
    said = network.explain(images).logits
    assert all(part.training for part in network.modules())
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert torch.equal(network.eval()(images), said)


def test_a_backbone_of_any_window_is_given_one(tmp_path) -> None:
    from scalechannels.saving.onnx import _size

    with pytest.raises(ValueError, match=r"the backbone's window has 28 pixels; got window=16"):
        PlainNetwork(mnist_backbone(), window=16)
    network = PlainNetwork(ResidualBackbone(2, classes=3), resize=True, window=16).eval()
    network.save_pretrained(tmp_path)
    again = scalechannels.load(tmp_path)
    images = torch.rand(2, 3, 40, 30)
    assert (again.window, _size(again, None)) == (16, (16, 16))
    assert torch.equal(again(images), network(images))
    assert torch.allclose(again(images), network(plain.resized(images, 16)), atol=1e-5)


def test_a_network_averaged_over_scales_is_used_as_the_plain_one(tmp_path: Path):
    """Saved without it, a network of own grey images was taken for one of digits."""
    network = cnn(classes=2)
    used = {"classes": ["cat", "dog"], "background": None, "values": "unit", "reduce": 2, "detector": None}
    network.usage = {**used, "temperature": 0.5, "object_size": 20.0, "own_scale": 1.0}
    averaged_over_scales(network, ScaleGrid.of(1, 2), 1).save_pretrained(tmp_path)
    saved = SavedNetwork.open(tmp_path)
    assert (saved.names, saved.values, saved.reduce) == (["cat", "dog"], "unit", 2)
    # What was measured of other logits and channels says nothing of these.
    assert (saved.temperature, saved.object_size, saved.own_scale) == (1.0, None, None)
