"""The spatial transformer: it begins with the whole image, and a window that moves along sees the same."""

import pytest
import torch
from helpers.signals import pattern

from scalechannels.backbones.sized import sized_backbone
from scalechannels.rivals.transformer import SpatialTransformer, affine_transformer, resampled

SIDE = 64


@pytest.mark.parametrize("windows", ["square", "affine"])
def test_it_begins_as_the_plain_cnn(windows) -> None:
    made = SpatialTransformer(image=28, windows=windows).eval()
    images = torch.randn(3, 1, 28, 28)
    assert torch.allclose(made(images), made.cnn(images), atol=1e-5)


def test_a_window_that_is_rescaled_and_moved_with_the_image_sees_the_same() -> None:
    """Law, up to bilinear interpolation: S_t f moved by δ, through a window t times as large at δ."""
    window = torch.tensor([[[0.5, 0.0, 0.0], [0.0, 0.5, 0.0]]], dtype=torch.float64)
    moved = torch.tensor([[[0.75, 0.0, 4 / 32], [0.0, 0.75, -2 / 32]]], dtype=torch.float64)
    signal, other = pattern(3.0), pattern(4.5).moved(-2, 4)
    one = resampled(signal.image(SIDE, SIDE), window)
    same = resampled(other.image(SIDE, SIDE), moved)
    assert float((one - same).abs().max()) < signal.bilinear_error + other.bilinear_error
    assert float((one - resampled(other.image(SIDE, SIDE), window)).abs().max()) > 0.3


def test_its_cnn_is_the_papers_and_all_of_it_learns() -> None:
    made = SpatialTransformer()
    count = sum(weight.numel() for weight in made.cnn.parameters())
    assert count == 92_198 == sum(weight.numel() for weight in sized_backbone(112, 1, 10).parameters())
    small = affine_transformer(3, 4, 28)
    torch.nn.init.normal_(small.says.weight, std=0.01)  # it begins at 0, where what comes before has no part
    small(torch.randn(4, 3, 28, 28)).square().sum().backward()
    learning = {name for name, weight in small.named_parameters() if weight.grad.abs().max() > 0}
    assert {"says.weight", "seen.0.0.weight", "cnn.dense.weight"} <= learning


def test_unknown_windows_are_named() -> None:
    with pytest.raises(ValueError, match="windows must be square or affine; got 'round'"):
        SpatialTransformer(windows="round")  # type: ignore[arg-type]
