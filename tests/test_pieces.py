"""Large batches in pieces: the result does not depend on them, and gradients never see them."""

import pytest
import torch
from torch import Tensor

from scalechannels import ScaleGrid, cnn, fovavg, fovmax, pieces, swmax
from scalechannels.pieces import in_pieces

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
