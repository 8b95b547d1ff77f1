"""ScaleChannelNetwork: foveate, backbone and pool put together, for the paper's networks and a user's own."""

import pytest
import torch
from helpers import reference
from torch import Tensor, nn

from scalechannels import (
    ConcatScales,
    Foveate,
    LogMeanExpOverScales,
    MaxOverScales,
    MeanOverScales,
    PlainNetwork,
    ScaleChannelNetwork,
    ScaleGrid,
    cnn,
    fovavg,
    fovconc,
    fovlse,
    fovmax,
    swmax,
)
from scalechannels.backbones.paper import CifarBackbone

GRID = ScaleGrid(0.5, 8, ratio=2**0.25)
THREE = ScaleGrid.of(1, 2, 4)
FOVEATED = [fovmax, fovavg, fovlse, fovconc]


class TinyBackbone(nn.Module):
    """A user's own: any module that maps (N, C, n, n) to (N, K)."""

    def __init__(self, channels: int = 2, n: int = 6, outputs: int = 3) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(4 * (n - 2) ** 2, outputs)
        )

    def forward(self, windows: Tensor) -> Tensor:
        return self.layers(windows)


def parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


# The paper's networks


@pytest.mark.parametrize(
    ("network", "count"),
    [
        (lambda: fovavg(GRID), 68_870),
        (lambda: fovmax(GRID), 68_870),
        (lambda: fovlse(GRID), 68_870),
        (lambda: fovconc(THREE), 69_180),
        (lambda: fovconc(GRID), 70_580),
        (lambda: swmax(GRID), 68_678),
        (lambda: cnn(), 92_198),
        (lambda: cnn(width=2), 365_122),
        (lambda: fovavg(GRID, data="cifar10"), 298_506),
        (lambda: cnn(data="cifar10"), 298_506),
    ],
)
def test_the_papers_parameter_counts(network, count: int):
    assert parameters(network()) == count


@pytest.mark.parametrize("build", FOVEATED)
@pytest.mark.parametrize(
    ("data", "shape"), [("mnist", (3, 1, 112, 112)), ("mnist", (3, 1, 20, 35)), ("cifar10", (3, 3, 33, 64))]
)
def test_the_shapes_of_the_designs_example(build, data: str, shape: tuple[int, ...]):
    net = build(GRID, data=data).eval()
    images = torch.randn(*shape)
    assert net(images).shape == (3, 10)
    assert net.channel_logits(images).shape == (3, 17, 10)


def test_the_conventions_of_the_two_data_sets():
    mnist, cifar = fovavg(THREE), fovavg(THREE, data="cifar10")
    assert (mnist.foveate.window, mnist.foveate.outside) == (28, "border")
    assert (cifar.foveate.window, cifar.foveate.outside) == (32, "reflect")
    assert isinstance(cifar.backbone, CifarBackbone)


def test_options_reach_the_network():
    net = fovconc(THREE, channels=3, classes=4, window=32, antialias=True, blur=0.5).eval()
    assert net(torch.randn(2, 3, 40, 40)).shape == (2, 4)
    assert (net.foveate.antialias, net.foveate.blur, net.foveate.window) == (True, 0.5, 32)


# The way of an image


@pytest.mark.parametrize("pool", [MaxOverScales(), MeanOverScales(), LogMeanExpOverScales()], ids=repr)
def test_the_network_equals_its_definition_by_the_reference(pool: nn.Module):
    """One window at a time through the backbone, in plain loops, then pooled."""
    torch.manual_seed(0)
    backbone = TinyBackbone().double()
    net = ScaleChannelNetwork(backbone, THREE, pool, window=6).eval()
    images = torch.randn(2, 2, 9, 11, dtype=torch.float64)
    stack = reference.foveate(images, THREE, 6)
    channels = torch.stack(
        [torch.stack([backbone(stack[b, s][None])[0] for s in range(3)]) for b in range(2)]
    )  # (B, S, K)
    torch.testing.assert_close(net.channel_logits(images), channels, rtol=0, atol=1e-12)
    torch.testing.assert_close(net(images), pool(channels), rtol=0, atol=1e-12)
    torch.testing.assert_close(net.from_stack(net.foveate(images)), net(images), rtol=0, atol=1e-12)
    torch.testing.assert_close(net.pool_channels(channels), net(images), rtol=0, atol=1e-12)


def test_centres_reach_the_windows():
    torch.manual_seed(0)
    net = ScaleChannelNetwork(TinyBackbone(), THREE, MaxOverScales(), window=6).eval()
    images, centres = torch.randn(2, 2, 30, 30), torch.tensor([[4.0, 20.0], [15.5, 9.0]])
    expected = net.from_stack(Foveate(THREE, 6)(images, centres))
    torch.testing.assert_close(net(images, centres), expected)
    assert not torch.allclose(net(images), expected)


def test_pooling_features_before_the_head_differs_from_pooling_logits():
    torch.manual_seed(0)
    backbone, head = TinyBackbone(outputs=5), nn.Linear(5, 3)
    net = ScaleChannelNetwork(backbone, THREE, MaxOverScales(), window=6, head=head).eval()
    images = torch.randn(2, 2, 12, 12)
    features = backbone(net.foveate(images).flatten(0, 1)).view(2, 3, 5)
    torch.testing.assert_close(net(images), head(features.amax(1)))
    torch.testing.assert_close(net.channel_logits(images), head(features))
    assert not torch.allclose(net(images), net.channel_logits(images).amax(1))


def test_batch_norm_sees_all_channels_as_one_batch():
    net = fovavg(THREE).train()
    images = torch.randn(4, 1, 40, 40)
    net(images)
    first = net.backbone.convolutions[0]
    maps = first[0](net.foveate(images).flatten(0, 1))  # (B·S, 16, 26, 26)
    momentum = first[1].momentum
    torch.testing.assert_close(first[1].running_mean, momentum * maps.mean((0, 2, 3)), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("build", FOVEATED)
def test_every_weight_learns(build):
    torch.manual_seed(0)
    net = build(THREE).train()
    net(torch.randn(4, 1, 40, 40)).square().sum().backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
    assert net.backbone.dense.weight.grad.abs().max() > 0


@pytest.mark.parametrize(
    "pool", [MaxOverScales(), MeanOverScales(), LogMeanExpOverScales(), ConcatScales(3, 3).double()], ids=repr
)
def test_gradients_of_the_whole_network(pool: nn.Module):
    torch.manual_seed(0)
    net = ScaleChannelNetwork(TinyBackbone().double(), ScaleGrid.of(0.7, 1, 2.2), pool, window=6).eval()
    images = torch.randn(1, 2, 7, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(net, (images,), fast_mode=True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_the_network_works_in_other_types(dtype: torch.dtype):
    torch.manual_seed(0)
    net = fovavg(THREE).eval()
    images = torch.randn(2, 1, 60, 60)
    expected = net(images)
    logits = net.to(dtype)(images.to(dtype))
    assert logits.dtype == dtype
    torch.testing.assert_close(logits.float(), expected, rtol=0, atol=0.02)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inductor itself uses what torch deprecates
def test_compiling_the_whole_network_changes_nothing():
    torch.manual_seed(0)
    net = fovavg(THREE).eval()
    images = torch.randn(3, 1, 50, 41)
    compiled = torch.compile(net, fullgraph=True)
    with torch.no_grad():
        torch.testing.assert_close(compiled(images), net(images), rtol=1e-4, atol=1e-5)


def test_tracing_the_whole_network_as_one_graph_changes_nothing():
    """fullgraph=True fails on any break in the graph; the eager backend needs no compiler."""
    torch.manual_seed(0)
    net = fovavg(THREE).eval()
    images = torch.randn(3, 1, 50, 41)
    compiled = torch.compile(net, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(images), net(images), rtol=1e-5, atol=1e-6)


def test_export_keeps_batch_height_and_width_dynamic():
    torch.manual_seed(0)
    net = fovlse(THREE).eval()
    sizes = dict.fromkeys((0, 2, 3), torch.export.Dim.DYNAMIC)
    program = torch.export.export(net, (torch.randn(2, 1, 40, 48),), dynamic_shapes=(sizes,))
    for shape in ((2, 1, 40, 48), (5, 1, 33, 18)):
        images = torch.randn(*shape)
        torch.testing.assert_close(program.module()(images), net(images), rtol=1e-4, atol=1e-5)


# Bad input


@pytest.mark.parametrize("build", [fovavg, swmax, lambda grid: cnn()], ids=["fov", "sw", "cnn"])
@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        (torch.randn(1, 40, 40), ValueError, r"must have the shape \(B, C, H, W\); got \(1, 40, 40\)"),
        (torch.randn(2, 3, 40, 40), ValueError, "this network takes grey images; got RGB images"),
        (torch.randn(0, 1, 40, 40), ValueError, r"must not be empty; got \(0, 1, 40, 40\)"),
        (torch.zeros(2, 1, 40, 40, dtype=torch.uint8), TypeError, "floating; got torch.uint8. Convert"),
    ],
)
def test_bad_images_say_what_was_given_and_what_is_accepted(build, images, error, message):
    with pytest.raises(error, match=message):
        build(THREE).eval()(images)


def test_the_plain_cnn_names_the_size_it_takes():
    with pytest.raises(ValueError, match="112x112 pixels; got 40x64"):
        cnn()(torch.randn(1, 1, 40, 64))


def test_the_plain_cnn_fits_other_image_sizes():
    assert cnn(image_size=96).eval()(torch.randn(2, 1, 96, 96)).shape == (2, 10)
    with pytest.raises(ValueError, match="window of 40 pixels does not fit"):
        cnn(image_size=40)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda: fovavg(THREE, data="imagenet"),
            ValueError,
            r"one of \('mnist', 'cifar10'\); got 'imagenet'",
        ),
        (lambda: cnn(data="imagenet"), ValueError, r"one of \('mnist', 'cifar10'\); got 'imagenet'"),
        (lambda: fovavg(THREE, window=8), ValueError, "window of 8 pixels does not fit this backbone"),
        (lambda: fovavg(THREE, window=0), ValueError, "window must be a whole number of at least 1; got 0"),
        (
            lambda: fovavg(THREE, channels=0),
            ValueError,
            "channels must be a whole number of at least 1; got 0",
        ),
        (lambda: cnn(channels=0), ValueError, "channels must be a whole number of at least 1; got 0"),
        (lambda: fovavg([1, 2, 4]), TypeError, "grid must be a ScaleGrid, .*; got list"),
        (lambda: fovavg(THREE, pooling="max"), TypeError, "pooling"),
        (
            lambda: ScaleChannelNetwork(TinyBackbone(), THREE, "max", window=6),
            TypeError,
            r"pool must be a torch module, such as MaxOverScales\(\); got 'max'",
        ),
        (
            lambda: ScaleChannelNetwork(TinyBackbone(), THREE, ConcatScales(17, 3), window=6),
            ValueError,
            "made for 17 scales, the grid has 3",
        ),
        (
            lambda: ScaleChannelNetwork(fovavg(THREE).backbone, THREE, MaxOverScales(), window=32),
            ValueError,
            "takes windows of 28 pixels, the network gives 32",
        ),
    ],
)
def test_bad_arguments_say_what_was_given_and_what_is_accepted(build, error, message):
    with pytest.raises(error, match=message):
        build()


def test_a_window_that_does_not_fit_an_own_backbone_is_named():
    net = ScaleChannelNetwork(TinyBackbone(n=6), THREE, MaxOverScales(), window=9)
    with pytest.raises(ValueError, match=r"TinyBackbone failed on windows of the shape \(N, 2, 9, 9\)"):
        net(torch.randn(1, 2, 20, 20))


def test_running_out_of_memory_is_not_blamed_on_the_window():
    class Hungry(nn.Module):
        def forward(self, windows: Tensor) -> Tensor:
            raise torch.OutOfMemoryError("too much")

    net = ScaleChannelNetwork(Hungry(), THREE, MaxOverScales(), window=9)
    with pytest.raises(torch.OutOfMemoryError, match="too much"):
        net(torch.randn(2, 1, 20, 20))


def test_an_own_backbone_that_gives_maps_is_named():
    net = ScaleChannelNetwork(nn.Conv2d(1, 3, 3), THREE, MaxOverScales(), window=9)
    with pytest.raises(ValueError, match=r"must give \(N, K\); got \(6, 3, 7, 7\) for 6 windows"):
        net(torch.randn(2, 1, 20, 20))


class Given(nn.Module):
    """An own backbone that gives what a function makes of its logits."""

    def __init__(self, change) -> None:
        super().__init__()
        self.change, self.layers = change, TinyBackbone()

    def forward(self, windows: Tensor):
        return self.change(self.layers(windows))


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize(
    "build", [lambda own: ScaleChannelNetwork(own, THREE, MaxOverScales(), 6), PlainNetwork]
)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda logits: (logits, logits), r"one tensor \(N, K\); got tuple. Wrap it"),
        (lambda logits: logits[:, 0], r"\(N, K\); got \(\d,\) for \d windows"),
        (lambda logits: logits.mean(0, keepdim=True), r"\(N, K\); got \(1, 3\) for \d windows"),
        (lambda logits: logits.view(-1, 1), r"\(N, K\); got \(\d+, 1\) for \d windows"),
    ],
)
def test_an_own_backbone_that_gives_something_else_is_named(change, message, build, grad, monkeypatch):
    monkeypatch.setattr("scalechannels.backbones.inference.CPU_PIXELS", 2 * 2 * 6 * 6)  # two windows
    with pytest.raises(ValueError, match=message), torch.set_grad_enabled(grad):
        build(Given(change)).eval()(torch.randn(3, 2, 6, 6))


@pytest.mark.parametrize("own", [TinyBackbone, lambda: fovavg(THREE, window=13, channels=2).backbone])
def test_images_of_another_precision_are_not_blamed_on_the_window(own):
    backbone = own()
    net = ScaleChannelNetwork(backbone, THREE, MaxOverScales(), getattr(backbone, "window", 6))
    with pytest.raises(TypeError, match=r"images are torch.float64, .* weights torch.float32: convert with"):
        net(torch.randn(2, 2, 20, 20, dtype=torch.float64))


def test_the_attributes_of_an_own_backbone_are_its_own():
    """A hidden width, a window of attention, a flag: none of them is read as what ours mean by them."""
    backbone = TinyBackbone()
    backbone.channels, backbone.window, backbone.folded = 16, 7, True
    images = torch.randn(2, 2, 6, 6)
    for net in (ScaleChannelNetwork(backbone, ScaleGrid.of(1), MaxOverScales(), 6), PlainNetwork(backbone)):
        expected = net.eval()(images)
        with torch.no_grad():
            torch.testing.assert_close(net(images), expected)


@pytest.mark.parametrize("build", [fovavg, fovmax, fovlse, fovconc, swmax], ids=lambda build: build.__name__)
def test_explaining_takes_one_pass_and_does_not_depend_on_the_mode(build):
    """What is said is what the network says in eval mode, whatever mode it is in."""
    torch.manual_seed(0)
    net, images = build(ScaleGrid.of(1, 2, 3)), torch.randn(4, 1, 40, 40)
    net(images)  # batch norm has statistics of its own now
    before = {name: value.clone() for name, value in net.state_dict().items()}
    seen: list[int] = []
    # Looking everywhere, the backbone slides over the image of each channel.
    called = net.backbone.convolutions if build is swmax else net.backbone
    called.register_forward_hook(lambda *_: seen.append(1))
    while_training = net.explain(images)
    assert len(seen) == (3 if build is swmax else 1)
    assert net.training
    for name, value in net.state_dict().items():
        assert torch.equal(value, before[name]), name
    net.eval()
    said = net.explain(images)
    for ours, theirs in zip(while_training, said, strict=True):
        assert (ours is None and theirs is None) or torch.equal(ours, theirs)
    torch.testing.assert_close(said.logits, net(images))
    torch.testing.assert_close(said.channels, net.channel_logits(images))
    torch.testing.assert_close(said.contributions.sum(1), torch.ones(4))
    assert said.scales.tolist() == [net.grid[i] for i in said.contributions.argmax(1)]
    assert (said.places is None) == (build is not swmax)
