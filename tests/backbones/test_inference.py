"""Large batches in pieces: the result does not depend on them, and gradients never see them."""

from collections.abc import Callable

import pytest
import torch
from helpers.worn import worn
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook

from scalechannels import PlainNetwork, ScaleGrid, cnn, fovavg, fovmax, swmax
from scalechannels.backbones import inference as pieces
from scalechannels.backbones.inference import for_inference, in_pieces
from scalechannels.backbones.paper import CifarBackbone, ConvBackbone
from scalechannels.backbones.residual import ResidualBackbone

GRID = ScaleGrid.of(0.5, 1, 2)


def batch_sizes(images: Tensor, pixels: int, **options: bool) -> list[int]:
    seen = []

    def function(part: Tensor, centres: Tensor | None) -> Tensor:
        seen.append(len(part))
        return part

    assert in_pieces(function, images, None, pixels, **options) is not None
    return seen


def test_pieces_are_as_large_as_the_budget_allows(monkeypatch):
    monkeypatch.setattr(pieces, "CPU_PIXELS", 100)
    images = torch.arange(7.0)
    with torch.no_grad():
        assert batch_sizes(images, 30) == [3, 3, 1]
        assert batch_sizes(images, 10) == [7]
        assert batch_sizes(images, 1000) == [1] * 7  # one image at least


def test_pieces_keep_images_and_centres_together_and_in_order(monkeypatch):
    monkeypatch.setattr(pieces, "CPU_PIXELS", 2)
    images, centres = torch.arange(5.0), torch.arange(10.0).view(5, 2)
    with torch.no_grad():
        result = in_pieces(lambda part, where: part + where.sum(1), images, centres, 1)
    torch.testing.assert_close(result, images + centres.sum(1))


def test_gradients_and_training_see_one_batch(monkeypatch):
    """Gradients need all activations anyway, and in training batch norm binds the images together."""
    monkeypatch.setattr(pieces, "CPU_PIXELS", 1)
    assert batch_sizes(torch.arange(5.0), 1) == [5]
    with torch.no_grad():
        assert batch_sizes(torch.arange(5.0), 1, training=True) == [5]
        assert batch_sizes(torch.arange(5.0), 1) == [1] * 5


@pytest.mark.parametrize(
    ("build", "side"),
    [(lambda: fovavg(GRID), 30), (lambda: fovmax(GRID), 47), (lambda: swmax(GRID), 33), (lambda: cnn(), 112)],
    ids=["fovavg", "fovmax", "swmax", "cnn"],
)
def test_the_result_does_not_depend_on_the_pieces(build, side: int, monkeypatch):
    """Up to rounding, 1e-12 in float64: a convolution may sum in another order for another batch size."""
    torch.manual_seed(0)
    net = build().double().eval()
    images = torch.randn(5, 1, side, side, dtype=torch.float64)
    with torch.no_grad():
        whole = net(images)
        for budget in (1, 2 * 3 * 28 * 28, 3 * 112 * 112):
            monkeypatch.setattr(pieces, "CPU_PIXELS", budget)
            torch.testing.assert_close(net(images), whole, rtol=0, atol=1e-12)


def test_centres_are_cut_as_the_images_are(monkeypatch):
    torch.manual_seed(0)
    net = fovavg(GRID, blur=0.5).double().eval()
    images = torch.randn(5, 1, 40, 40, dtype=torch.float64)
    centres = 40 * torch.rand(5, 2, dtype=torch.float64)
    with torch.no_grad():
        whole = net(images, centres)
        monkeypatch.setattr(pieces, "CPU_PIXELS", 1)
        torch.testing.assert_close(net(images, centres), whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("build", [lambda: fovavg(GRID), lambda: swmax(GRID, batch_norm=True)])
def test_batch_norm_in_training_mode_sees_the_whole_batch_even_without_gradients(build, monkeypatch):
    torch.manual_seed(0)
    net = build().double().train()
    for module in net.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    images = torch.randn(4, 1, 30, 30, dtype=torch.float64)
    with torch.no_grad():
        whole = net(images)
        monkeypatch.setattr(pieces, "CPU_PIXELS", 1)
        torch.testing.assert_close(net(images), whole, rtol=0, atol=1e-12)


# The same function with gradients and without, whatever was changed in the backbone


def lively(network: nn.Module) -> nn.Module:
    torch.manual_seed(1)
    return worn(network).double()


def replaced(kind: type[nn.Module], make: Callable) -> Callable[[nn.Module], nn.Module]:
    """A change of a backbone: every layer of this kind becomes another."""

    def change(backbone: nn.Module) -> nn.Module:
        for block in backbone.modules():
            if isinstance(block, nn.Sequential):
                for index, layer in enumerate(block):
                    if type(layer) is kind:
                        block[index] = make(layer).double().eval()
        return backbone

    return change


def norms_learning(backbone: nn.Module) -> nn.Module:
    for module in backbone.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.train()
            module.momentum = 0.0  # so that two calls see the same network
    return backbone


def every_block(change: Callable[[nn.Sequential], object]) -> Callable[[nn.Module], nn.Module]:
    def changed(backbone: nn.Module) -> nn.Module:
        for block in [block for block in backbone.modules() if isinstance(block, nn.Sequential)]:
            if isinstance(block[0], nn.Conv2d):
                change(block)
        return backbone

    return changed


def patched(backbone: nn.Module) -> nn.Module:
    forward = backbone.forward
    backbone.forward = lambda windows: 2 * forward(windows)
    return backbone


def subclassed(backbone: nn.Module) -> nn.Module:
    forward = type(backbone).forward
    body = {"forward": lambda self, windows: 2 * forward(self, windows)}
    backbone.__class__ = type("Doubled", (type(backbone),), body)
    return backbone


def set_options(**options) -> Callable[[nn.Module], nn.Module]:
    def change(block: nn.Sequential) -> None:
        for name, value in options.items():
            setattr(block[0], name, value)

    return every_block(change)


def hooked(block: nn.Sequential) -> None:
    block[0].register_forward_hook(lambda *called: called[2] - 1)


def convolving_otherwise(block: nn.Sequential) -> None:
    """As tools do that quantise weights: the layer's own method, and no hook."""
    inner = block[0]._conv_forward
    block[0]._conv_forward = lambda maps, weight, bias: inner(maps, weight.round(decimals=1), bias)


CHANGES = {
    "nothing": lambda backbone: backbone,
    "SyncBatchNorm": nn.SyncBatchNorm.convert_sync_batchnorm,
    "GroupNorm": replaced(nn.BatchNorm2d, lambda norm: nn.GroupNorm(2, norm.num_features)),
    "no statistics": replaced(
        nn.BatchNorm2d, lambda norm: nn.BatchNorm2d(norm.num_features, track_running_stats=False)
    ),
    "no gains": replaced(nn.BatchNorm2d, lambda norm: nn.BatchNorm2d(norm.num_features, affine=False)),
    "no norm": replaced(nn.BatchNorm2d, lambda norm: nn.Identity()),
    "norms learning": norms_learning,
    "LeakyReLU": replaced(nn.ReLU, lambda _: nn.LeakyReLU(0.3)),
    "one more layer": every_block(lambda block: block.append(nn.Tanh())),
    "one layer less": every_block(lambda block: block.pop(2)),
    "padding": set_options(padding_mode="circular"),
    "axes": set_options(dilation=(1, 2), padding=(0, 1)),
    "patched": patched,
    "subclassed": subclassed,
    "hooked": every_block(hooked),
    "convolving otherwise": every_block(convolving_otherwise),
}
BUILDS = {
    "fov": lambda: fovavg(GRID),
    "cifar": lambda: fovavg(GRID, data="cifar10", channels=1, window=16),
    "residual": lambda: fovavg(GRID, window=16, backbone=ResidualBackbone(4, channels=1)),
    "plain": lambda: PlainNetwork(CifarBackbone(channels=1)),
}


@pytest.mark.parametrize(
    ("change", "build"),
    [
        *((change, "fov") for change in CHANGES),
        *((change, build) for change in ("GroupNorm", "LeakyReLU") for build in BUILDS if build != "fov"),
        ("padding", "cifar"),
        ("norms learning", "plain"),
        ("patched", "plain"),
    ],
)
def test_the_same_function_with_gradients_and_without(change: str, build: str, monkeypatch):
    network = lively(BUILDS[build]())
    images = torch.randn(3, 1, 20, 20, dtype=torch.float64)
    before = network(images)
    network.backbone = CHANGES[change](network.backbone)
    expected = network(images)  # with gradients: as it is
    if change not in ("nothing", "SyncBatchNorm") and (change, build) != ("padding", "fov"):
        assert not torch.allclose(expected, before)
    for budget, mode in ((pieces.CPU_PIXELS, torch.no_grad), (1, torch.inference_mode)):
        monkeypatch.setattr(pieces, "CPU_PIXELS", budget)
        with mode():
            torch.testing.assert_close(network(images), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("build", BUILDS)
def test_hooks_fire_with_gradients_and_without(build: str):
    network, seen = lively(BUILDS[build]()), []
    for name, module in network.backbone.named_modules():
        handles = [
            module.register_forward_hook(lambda *_, name=name: seen.append(name)),
            module.register_forward_pre_hook(lambda *_, name=name: seen.append(f"before {name}")),
        ]
        network(torch.randn(2, 1, 20, 20, dtype=torch.float64))
        expected = seen.copy()
        assert set(expected) == {name, f"before {name}"}
        seen.clear()
        with torch.no_grad():
            network(torch.randn(2, 1, 20, 20, dtype=torch.float64))
        assert seen == expected
        seen.clear()
        for handle in handles:
            handle.remove()


def test_hooks_on_all_modules_fire_without_gradients():
    network, seen = lively(fovavg(GRID)), []
    handle = register_module_forward_hook(lambda module, *_: seen.append(module))
    try:
        with torch.no_grad():
            network(torch.randn(2, 1, 20, 20, dtype=torch.float64))
    finally:
        handle.remove()
    assert set(network.backbone.modules()) <= set(seen)


@pytest.mark.parametrize("build", BUILDS)
def test_what_was_not_changed_is_folded(build: str):
    """The fast way is taken: no batch norm is called, not even one that was synchronised."""
    network = lively(BUILDS[build]())
    for backbone in (network.backbone, nn.SyncBatchNorm.convert_sync_batchnorm(network.backbone)):
        assert for_inference(backbone) is backbone  # with gradients
        for module in backbone.modules():
            if isinstance(module, (nn.BatchNorm2d, nn.SyncBatchNorm)):
                module._check_input_dim = lambda _: pytest.fail("batch norm was called")
        with torch.no_grad():
            network(torch.randn(2, 1, 20, 20, dtype=torch.float64))


class Doubled(nn.Conv2d):
    def forward(self, maps: Tensor) -> Tensor:
        return 2 * super().forward(maps)


def test_a_layer_of_a_class_of_ones_own_is_called_and_not_folded() -> None:
    backbone = ConvBackbone((3, 3), classes=3, hidden=4).eval()
    block, images = backbone.convolutions[0], torch.randn(2, 1, 28, 28)
    first = block[0]
    block[0] = Doubled(first.in_channels, first.out_channels, first.kernel_size, stride=first.stride)
    with torch.inference_mode():
        torch.testing.assert_close(for_inference(backbone)(images), backbone(images))
