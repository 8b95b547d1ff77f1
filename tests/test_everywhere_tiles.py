"""Large images in tiles: the same answer, in memory that a tile bounds."""

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from scalechannels import LogMeanExpOverScales, MaxOverScales, ScaleChannelNetwork, ScaleGrid, everywhere
from scalechannels.backbones.paper import mnist_backbone

GRID = ScaleGrid.of(0.7, 1.0, 2.3)


def network(window: int = 13, **options: object) -> ScaleChannelNetwork:
    torch.manual_seed(0)
    norm = options.get("norm")
    backbone = mnist_backbone(window=window, channels=2, classes=3, batch_norm=norm != "each")
    made = ScaleChannelNetwork(backbone, GRID, LogMeanExpOverScales(), window, look="everywhere", **options)
    made.train()(torch.randn(4, 2, 40, 40))  # batch norm with statistics of its own
    return made.double().eval()


@pytest.mark.parametrize(
    "options",
    [
        {"places": "max", "window": 28},  # whose last pixels the convolutions do not see
        {"places": "mean", "outside": "reflect", "antialias": True},
        {"places": "logmeanexp", "outside": "constant", "fill": 0.3, "margin": 3},
        {"norm": "joint", "centred": True, "area_power": 1.0},
        {"norm": "each"},
        {"blur": 1.0, "outside": "reflect"},
        {"blur": 0.7, "antialias": True, "outside": "constant", "fill": 0.3},
    ],
    ids=str,
)
@torch.no_grad()
def test_in_tiles_the_answer_is_the_same(options: dict[str, object], monkeypatch: pytest.MonkeyPatch):
    net, images = network(**options), torch.randn(2, 2, 80, 75, dtype=torch.float64)
    whole = net.explain(images)
    monkeypatch.setattr(everywhere, "TILE_ON_CPU", 3)
    tiles = [len(list(parts)) for parts in net.everywhere._seen(images, net.backbone)]
    assert tiles[0] > tiles[-1]
    for one, other in zip(whole, net.explain(images), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)
    torch.testing.assert_close(net(images), whole.logits, rtol=0, atol=1e-10)


def test_a_gradient_needs_the_whole_image(monkeypatch: pytest.MonkeyPatch):
    net, images = network(), torch.randn(1, 2, 60, 60, dtype=torch.float64)
    monkeypatch.setattr(everywhere, "TILE_ON_CPU", 3)
    assert [len(list(parts)) for parts in net.everywhere._seen(images, net.backbone)] == [1, 1, 1]
    assert net(images).requires_grad


class Largest(TorchDispatchMode):
    """The elements of the largest tensor that any operation makes."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        sizes = [leaf.numel() for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        self.elements = max([self.elements, *sizes])
        return result


@torch.no_grad()
def test_no_tensor_is_larger_than_a_tile_makes_it(monkeypatch: pytest.MonkeyPatch):
    """16 features of what 12 places see, whatever the size of the image."""
    monkeypatch.setattr(everywhere, "TILE_ON_CPU", 12)
    torch.manual_seed(0)
    net = ScaleChannelNetwork(
        mnist_backbone(window=13), ScaleGrid.of(0.5, 1.0), MaxOverScales(), 13, look="everywhere"
    )
    net.eval()
    bound = 16 * (12 * 4 + 9) ** 2
    for side in (90, 200):
        image = torch.randn(1, 1, side, side)
        with Largest() as largest:
            net.explain(image)
        assert largest.elements <= bound < 16 * (2 * side) ** 2
