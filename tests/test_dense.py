"""Dense maps: each channel equals the foveated network on its lattice, pooling is local scale invariance."""

import math
from collections.abc import Callable
from typing import get_args

import pytest
import torch
import torch.nn.functional as F
from helpers.signals import blob, ellipse, pattern
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from scalechannels import (
    ConcatScales,
    Foveate,
    LogMeanExpOverScales,
    MaxOverScales,
    MeanOverScales,
    ScaleChannelNetwork,
    ScaleGrid,
    cnn,
    fovavg,
    fovconc,
    fovlse,
    fovmax,
    swmax,
)
from scalechannels import dense as dense_module
from scalechannels.backbones.paper import CifarBackbone, ConvBackbone
from scalechannels.backbones.sliding import convolutional
from scalechannels.dense import DenseNetwork
from scalechannels.sampling import Outside, sample

GRID = ScaleGrid(0.5, 4, ratio=2**0.5)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def small_network(seed: int = 0, **options) -> ScaleChannelNetwork:
    """The paper's layers with fewer features; batch norm that does something; exact arithmetic."""
    torch.manual_seed(seed)
    backbone = ConvBackbone((4, 4, 6, 6), classes=3, hidden=8)
    for layer in backbone.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.running_mean, 0.1, 0.1)
            nn.init.uniform_(layer.running_var, 0.5, 1.5)
    pool = options.pop("pool", LogMeanExpOverScales())
    return ScaleChannelNetwork(backbone, options.pop("grid", GRID), pool, **options).double().eval()


def foveated(network: ScaleChannelNetwork, image: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Channel logits (h, w, S, K) of the foveated network at every point of two axes."""
    points = torch.cartesian_prod(rows, columns).view(-1, 2)
    with torch.no_grad():
        said = network.channel_logits(image.expand(len(points), -1, -1, -1), points)
    return said.view(len(rows), len(columns), *said.shape[1:])


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("outside", [{"outside": outside, "fill": 0.7} for outside in get_args(Outside)])
def test_each_channel_equals_the_foveated_network_at_its_lattice_points(
    outside: dict, antialias: bool
) -> None:
    """Everywhere: the lattice reaches the outermost pixels, so windows look beyond all four borders."""
    network = small_network(antialias=antialias, **outside)
    image = noise(1, 37, 50)
    dense = DenseNetwork(network)
    maps = dense.channel_maps(image)
    assert len(maps) == len(GRID)
    for index, (sigma, one) in enumerate(zip(GRID, maps, strict=True)):
        rows, columns = one.rows.positions(), one.columns.positions()
        assert one.logits.shape == (len(rows), len(columns), 3)
        assert torch.allclose(rows.diff(), torch.tensor(4 * sigma).double())
        for axis, side in ((rows, 37), (columns, 50)):
            assert (side - 1) / 2 in axis  # the image's centre is a point of every lattice
            assert axis[0] <= 0
            assert axis[-1] >= side - 1
            assert axis[0] > -4 * sigma
        expected = foveated(network, image, rows, columns)[:, :, index]
        assert (one.logits - expected).abs().max() < 1e-12
        if len(rows) > 1:  # another phase, such as that of the window's first pixel, is not the same
            assert (one.logits[1:] - expected[:-1]).abs().max() > 1e-4


def test_it_holds_in_single_precision_for_the_papers_network() -> None:
    torch.manual_seed(0)
    network, image = fovavg(GRID).eval(), noise(1, 90, 70).float()
    for index, one in enumerate(DenseNetwork(network).channel_maps(image)):
        rows, columns = one.rows.positions()[::3], one.columns.positions()[::3]
        expected = foveated(network, image, rows, columns)[:, :, index]
        assert (one.logits[::3, ::3] - expected).abs().max() < 2e-5


def test_the_law_at_the_centre_and_interpolation_beside_it() -> None:
    """Every channel has a lattice point at the image's centre: the dense map is the foveated network's."""
    network, image = small_network(), noise(2, 1, 41, 57)  # centre (20, 28) lies on a common lattice of 4
    dense = DenseNetwork(network, step=4)
    logits, scales, rows, columns = dense(image)
    assert logits.shape == (2, 3, 11, 15)
    assert scales.shape == (2, 11, 15)
    assert rows.tolist() == list(range(0, 41, 4))
    assert columns.tolist() == list(range(0, 57, 4))
    with torch.no_grad():
        assert torch.allclose(logits[:, :, 5, 7], network(image), atol=1e-12)
    maps = dense.channel_maps(image[1])
    channels = torch.stack([one.at(rows, columns) for one in maps], 2)  # (h, w, S, K)
    one, at = maps[1], channels[3, 4, 1]  # by hand, between four lattice points of channel 1
    r = (float(rows[3]) - one.rows.centre) / one.rows.step - one.rows.first
    c = (float(columns[4]) - one.columns.centre) / one.columns.step - one.columns.first
    i, j, u, v = math.floor(r), math.floor(c), r % 1, c % 1
    by_hand = (1 - u) * ((1 - v) * one.logits[i, j] + v * one.logits[i, j + 1]) + u * (
        (1 - v) * one.logits[i + 1, j] + v * one.logits[i + 1, j + 1]
    )
    assert torch.allclose(at, by_hand, atol=1e-12)
    pooled = torch.logsumexp(channels, 2) - math.log(len(GRID))
    assert torch.allclose(logits[1].permute(1, 2, 0), pooled, atol=1e-12)
    winner = pooled.argmax(2)
    strongest = channels.gather(3, winner[:, :, None, None].expand(-1, -1, len(GRID), 1))[..., 0].argmax(2)
    assert torch.allclose(scales[1].double(), GRID.scales.double()[strongest])


@pytest.mark.parametrize("make", [fovmax, fovavg, fovlse, fovconc])
def test_every_pooling_of_the_library_works(make: Callable) -> None:
    torch.manual_seed(0)
    network = make(ScaleGrid.of(1, 2)).eval()
    image = noise(1, 1, 29, 33).float()
    found = DenseNetwork(network, step=2)(image)
    with torch.no_grad():
        assert torch.allclose(found.logits[0, :, 7, 8], network(image)[0], atol=1e-5)
    assert set(found.scales.flatten().tolist()) <= {1.0, 2.0}


@settings(max_examples=12, deadline=None)
@given(
    height=st.integers(1, 60),
    width=st.integers(1, 60),
    step=st.integers(1, 7),
    tile=st.integers(1, 40),
    antialias=st.booleans(),
)
def test_tiles_do_not_change_the_result(
    height: int, width: int, step: int, tile: int, antialias: bool
) -> None:
    network = small_network(grid=ScaleGrid.of(1, 2), antialias=antialias)
    image = noise(1, 1, height, width)
    whole = DenseNetwork(network, step, tile=1000)(image)
    tiled = DenseNetwork(network, step, tile=max(tile, 8))(image)
    assert torch.allclose(tiled.logits, whole.logits, atol=1e-12)
    assert torch.equal(tiled.scales, whole.scales)


def test_pieces_of_a_channel_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    from scalechannels import dense

    network, image = small_network(), noise(1, 60, 80)
    whole = DenseNetwork(network).channel_maps(image)
    monkeypatch.setattr(dense, "PLACES", 5)
    for one, other in zip(whole, DenseNetwork(network).channel_maps(image), strict=True):
        assert torch.allclose(one.logits, other.logits, atol=1e-12)


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (3, 2)])
def test_the_smallest_images_work(shape: tuple[int, int]) -> None:
    network, image = small_network(), noise(1, 1, *shape)
    found = DenseNetwork(network, step=1)(image)
    assert found.logits.shape == (1, 3, *shape)
    if shape == (1, 1):
        with torch.no_grad():
            assert torch.allclose(found.logits[:, :, 0, 0], network(image), atol=1e-12)


class Blobs(nn.Module):
    """Windows (N, 1, 16, 16) to the response of a blob of standard deviation 2 there, and half of it."""

    n, threshold, size, stride = 16, 0.04, 2.0, 1

    def __init__(self) -> None:
        super().__init__()
        x = torch.arange(self.n, dtype=torch.float64) - (self.n - 1) / 2
        radius = (x[:, None] ** 2 + x**2) / self.size**2
        template = (2 - radius) * torch.exp(-radius / 2)
        template = template - template.mean()
        self.register_buffer("template", (template / template.abs().sum())[None, None])

    def forward(self, windows: Tensor) -> Tensor:
        return self.logit_map(windows)[:, :, 0, 0]

    def logit_map(self, images: Tensor) -> Tensor:
        response = torch.nn.functional.conv2d(images, self.template)
        return torch.relu(torch.cat((response, response / 2), 1) - self.threshold)


@pytest.mark.parametrize("pool", [MaxOverScales(), MeanOverScales(), LogMeanExpOverScales()], ids=repr)
@pytest.mark.parametrize("t", [2**0.5, 2.0])
def test_local_invariance_about_an_arbitrary_point(pool: nn.Module, t: float) -> None:
    """Λ_local of the image scaled by t about x₀ equals that of the image, at x₀; not elsewhere."""
    grid = ScaleGrid(1, 64, ratio=2**0.5)  # responses fade out at both ends
    network = ScaleChannelNetwork(Blobs(), grid, pool, window=Blobs.n)
    x0 = (30.0, -24.0)  # from the image's middle (90, 90), so the pixel (120, 66)
    signal = ellipse(9.0, 6.5, 0.6, row=3.0, column=-2.0)  # off x₀, so that position counts
    dense = DenseNetwork(network, step=2)
    before, after = (dense(s.moved(*x0).image(181, 181)) for s in (signal, signal.scaled(t)))
    row, column = 120 // 2, 66 // 2
    here, there = before.logits[0, :, row, column], after.logits[0, :, row, column]
    assert here.max() > 0.02 if not isinstance(pool, MeanOverScales) else here.max() > 1e-3
    assert (here - there).abs().max() < 0.04 * here.max()  # x₀ lies between lattice points
    elsewhere = (before.logits - after.logits).abs().max()
    assert elsewhere > 0.2 * before.logits.max()
    if isinstance(pool, MaxOverScales):
        assert after.scales[0, row, column] == pytest.approx(t * float(before.scales[0, row, column]))


def test_the_selected_scale_is_the_objects_size_at_each_objects_place() -> None:
    small, large = blob(4.0, row=-40.0, column=-30.0), blob(11.313708, row=20.0, column=24.0)
    image = small.image(161, 161) + large.image(161, 161)
    network = ScaleChannelNetwork(Blobs(), ScaleGrid(1, 16, ratio=2**0.5), MaxOverScales(), window=16)
    found = DenseNetwork(network, step=2)(image)
    assert found.scales[0, 20, 25] == pytest.approx(2.0, rel=1e-3)  # pixel (40, 50): 4 / Blobs.size
    assert found.scales[0, 50, 52] == pytest.approx(5.656854, rel=1e-3)


# Backbones: which can slide


@pytest.mark.parametrize(
    ("window", "layers"),
    [
        (12, lambda: (nn.Conv2d(2, 4, 5, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3))),
        (
            13,
            lambda: (
                *(nn.Conv2d(2, 4, 3, dilation=2), nn.BatchNorm2d(4), nn.GELU(), nn.AvgPool2d(3, 2)),
                *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout()),
                *(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)),
            ),
        ),
        (
            16,
            lambda: (
                nn.Sequential(nn.Conv2d(2, 4, 3), nn.ELU()),
                nn.Sequential(nn.Flatten(), nn.Linear(784, 3)),
            ),
        ),
    ],
    ids=["dense head", "average head", "nested"],
)
def test_sequential_backbones_are_converted(window: int, layers: Callable) -> None:
    torch.manual_seed(1)
    backbone = nn.Sequential(*layers())
    network = ScaleChannelNetwork(backbone, GRID, MeanOverScales(), window).double().eval()
    image = noise(2, 21, 30)
    for index, one in enumerate(DenseNetwork(network).channel_maps(image)):
        expected = foveated(network, image, one.rows.positions(), one.columns.positions())[:, :, index]
        assert (one.logits - expected).abs().max() < 1e-12


class Pretender(nn.Module):
    """Claims to slide, but pads."""

    stride = 1

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(1, 2, 3, padding=1)

    def forward(self, windows: Tensor) -> Tensor:
        return self.layer(windows).relu().mean((2, 3))

    def logit_map(self, images: Tensor) -> Tensor:
        return torch.nn.functional.avg_pool2d(self.layer(images).relu(), 8, 1)


@pytest.mark.parametrize(
    ("backbone", "message"),
    [
        (lambda: CifarBackbone(), "CifarBackbone cannot slide: it pads its convolutions"),
        (
            lambda: nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.Flatten(), nn.Linear(128, 2)),
            "sees padding",
        ),
        (lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.LSTM(6, 6)), "no sliding form is known for LSTM"),
        (lambda: nn.Sequential(nn.Conv2d(1, 2, (3, 5))), "unequal axes"),
        (lambda: nn.Sequential(nn.MaxPool2d(3, ceil_mode=True)), "rounds up"),
        (Pretender, "Pretender does not slide: on a map it differs from its windows by"),
        (lambda: nn.Linear(3, 3), "Linear cannot slide: it has no logit_map. Dense maps need a backbone"),
    ],
)
def test_backbones_that_cannot_slide_are_refused(backbone: Callable, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        convolutional(backbone().eval(), 8)


def test_a_logit_map_without_a_stride_is_refused() -> None:
    backbone = Pretender()
    backbone.stride = None
    with pytest.raises(TypeError, match="has a logit_map but no stride"):
        convolutional(backbone, 8)


def test_networks_that_have_no_dense_map_are_refused() -> None:
    with pytest.raises(
        TypeError, match="must be a scale-channel one, such as digit-detector; got a plain CNN"
    ):
        DenseNetwork(cnn())
    with pytest.raises(ValueError, match="each channel has its own batch norm"):
        DenseNetwork(swmax(GRID, norm="each"))
    with pytest.raises(ValueError, match="a network with blur has no dense map"):
        DenseNetwork(fovavg(GRID, blur=0.8))
    headed = ScaleChannelNetwork(ConvBackbone(classes=5), GRID, MaxOverScales(), head=nn.Linear(5, 3))
    with pytest.raises(ValueError, match="this network pools features"):
        DenseNetwork(headed)
    for wrong in (0, 1.5):
        with pytest.raises(ValueError, match="step must be a whole number of at least 1; got"):
            DenseNetwork(fovavg(GRID), step=wrong)
    dense = DenseNetwork(small_network())
    with pytest.raises(ValueError, match=r"one image \(C, H, W\)"):
        dense.channel_maps(noise(1, 1, 9, 9))
    with pytest.raises(ValueError, match="this network takes grey images; got RGB images"):
        dense(noise(1, 3, 9, 9))


def test_concatenation_keeps_its_place_in_the_grid() -> None:
    """Not symmetric in the channels: a map that confused their order would be seen here."""
    torch.manual_seed(2)
    network = small_network(pool=ConcatScales(len(GRID), 3))
    image = noise(1, 1, 33, 33)
    found = DenseNetwork(network, step=16)(image)
    with torch.no_grad():
        assert torch.allclose(found.logits[:, :, 1, 1], network(image), atol=1e-12)


# Sampling


@settings(max_examples=30, deadline=None)
@given(
    height=st.integers(1, 9),
    width=st.integers(1, 30),
    sigma=st.floats(0.3, 9.0),
    row=st.floats(-30, 40),
    column=st.floats(-30, 40),
    outside=st.sampled_from(get_args(Outside)),
    antialias=st.booleans(),
)
def test_samples_are_those_of_foveation_wherever_they_lie(
    height: int, width: int, sigma: float, row: float, column: float, outside: str, antialias: bool
) -> None:
    image = noise(2, height, width)
    seen = Foveate(ScaleGrid.of(sigma), 7, outside=outside, fill=0.3, antialias=antialias)(
        image[None], torch.tensor([[row, column]], dtype=torch.float64)
    )[0, 0]
    steps = sigma * (torch.arange(7, dtype=torch.float64) - 3)
    half_width = max(1.0, sigma) if antialias else 1.0
    axes = row + steps, column + steps
    found = sample(image, *axes, half_width, outside=outside, fill=0.3)
    assert torch.allclose(found, seen, atol=1e-9)
    ends = [(float(axis[0]), float(axis[-1])) for axis in axes]
    assert torch.equal(found, sample(image, *axes, half_width, outside=outside, fill=0.3, ends=ends))


def test_pieces_are_as_large_as_the_device_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache decides on a CPU, kernel launches on a GPU. What is found does not depend on it."""
    network = small_network()
    dense, image = DenseNetwork(network), noise(1, 150, 190)
    assert dense.places(torch.device("cpu")) == dense_module.PLACES
    on_gpu = dense.places(torch.device("cuda"))
    assert on_gpu > 4 * dense_module.PLACES
    # The widest maps of a piece, 16 features of four bytes at every sample, have about half a gigabyte.
    assert 0.3e9 < (dense.stride * on_gpu) ** 2 * 16 * 4 < 0.6e9
    whole = dense.channel_maps(image)
    monkeypatch.setattr(dense_module, "PLACES", 5)
    for one, other in zip(whole, dense.channel_maps(image), strict=True):
        assert torch.allclose(one.logits, other.logits, atol=1e-10)


def test_nothing_is_asked_of_the_device_between_pieces() -> None:
    """A tensor without numbers can answer nothing: each question would make a GPU wait."""
    network = small_network().to("meta")
    maps = DenseNetwork(network).channel_maps(torch.empty(1, 150, 190, device="meta"))
    assert len(maps) == len(network.grid)


def test_pattern_is_seen_upright() -> None:
    """A swap of rows and columns anywhere would show on a signal without symmetry."""
    image = pattern(6.0).image(101, 121)
    network = small_network()
    found = DenseNetwork(network, step=10)(image)
    swapped = DenseNetwork(network, step=10)(image.mT.contiguous())
    with torch.no_grad():
        assert torch.allclose(found.logits[0, :, 5, 6], network(image)[0], atol=1e-12)
    assert (found.logits[0] - swapped.logits[0].mT).abs().max() > 1e-4


@pytest.mark.slow
def test_the_graph_can_be_exported_with_a_free_image_size() -> None:
    """As ONNX export needs it: one graph for all sizes, without tiles and pieces."""
    from torch.export import Dim, export

    dense = DenseNetwork(small_network(grid=ScaleGrid.of(1, 2)))
    sizes = {2: Dim("height", min=17, max=4096), 3: Dim("width", min=17, max=4096)}
    graph = export(dense, (noise(1, 1, 40, 52),), dynamic_shapes=(sizes,)).module()
    image = noise(1, 1, 61, 33)
    found, expected = graph(image), dense(image)
    assert torch.allclose(found[0], expected.logits, atol=1e-12)
    assert torch.equal(found[1], expected.scales)


@pytest.mark.parametrize(
    "change",
    [
        lambda backbone: backbone.register_forward_hook(lambda *called: 2 * called[2]),
        lambda backbone: backbone.dense.register_forward_hook(lambda *called: 2 * called[2]),
        lambda backbone: backbone.classifier.register_forward_pre_hook(lambda _, inputs: (2 * inputs[0],)),
        lambda backbone: setattr(backbone.classifier, "forward", lambda features: features[:, :3]),
    ],
)
def test_what_a_map_would_ignore_is_refused_also_where_it_came_later(change: Callable[..., None]) -> None:
    network = small_network()
    dense = DenseNetwork(network)
    change(network.backbone)
    with pytest.raises(TypeError, match="has hooks or another forward, which a dense map would ignore"):
        dense(noise(1, 1, 30, 30))


@pytest.mark.parametrize(
    "change",
    [
        lambda block: block[0].register_forward_hook(lambda *called: 2 * called[2]),
        lambda block: setattr(
            block[0],
            "_conv_forward",
            lambda maps, weight, _: F.conv2d(maps, 2 * weight, None, block[0].stride),
        ),
        lambda block: block.__setitem__(2, nn.LeakyReLU(0.5)),
        lambda block: block[0].weight.data.mul_(2),
        lambda block: block[1].running_mean.add_(1),
    ],
)
@torch.no_grad()
def test_a_layer_that_was_changed_later_is_honoured(change: Callable[..., None]) -> None:
    network, image = small_network(grid=ScaleGrid.of(1)), noise(1, 1, 29, 29)
    dense = DenseNetwork(network, step=14)
    before = dense(image).logits[0, :, 1, 1]
    change(network.backbone.convolutions[1])
    found = dense(image).logits[0, :, 1, 1]
    torch.testing.assert_close(found, network(image)[0])
    assert not torch.allclose(found, before)


@torch.no_grad()
def test_a_backbone_of_another_stride_needs_a_new_dense_network() -> None:
    network = small_network()
    dense = DenseNetwork(network)
    network.backbone = nn.Sequential(nn.Conv2d(1, 3, 28), nn.Flatten()).double().eval()
    with pytest.raises(ValueError, match="make a new dense network"):
        dense(noise(1, 1, 30, 30))


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
@torch.no_grad()
def test_half_precision_is_that_of_the_network(kind: torch.dtype) -> None:
    image = noise(1, 1, 40, 40)
    exact = DenseNetwork(small_network())(image)
    half = DenseNetwork(small_network().to(kind))(image.to(kind))
    assert half.logits.dtype == kind
    torch.testing.assert_close(half.logits.double(), exact.logits, atol=0.05, rtol=0.05)


@pytest.mark.parametrize("method", ["forward", "_conv_forward", "_call_impl"])
@torch.no_grad()
def test_a_class_that_was_changed_is_not_folded(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that wraps all convolutions of a program sees every one, in windows and in maps."""
    network, image, original = small_network(), noise(1, 1, 30, 30), getattr(nn.Conv2d, method)
    dense, seen = DenseNetwork(network), []
    monkeypatch.setattr(nn.Conv2d, method, lambda *said: (seen.append(1), original(*said))[1])
    network(image)
    windows = len(seen)
    dense(image)
    assert windows > 0
    assert len(seen) > windows


def test_a_map_does_not_depend_on_the_mode_and_leaves_no_trace() -> None:
    network, image = small_network(), noise(1, 1, 40, 40)
    dense = DenseNetwork(network)
    expected = dense(image)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    network.train()
    for one in (dense, DenseNetwork(network)):
        torch.testing.assert_close(one(image), expected, rtol=0, atol=0)
    assert all(part.training for part in network.modules())
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
