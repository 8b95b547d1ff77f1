"""The meter: zero for an invariant network, large for one that is not, and true to numbers by hand."""

import pytest
import torch
from helpers.signals import pattern
from torch import Tensor

from scalechannels import ScaleGrid, fovavg, scale_invariance_error
from scalechannels.invariance import InvarianceError, rescale_images


def test_a_rescaled_image_is_the_rescaled_signal():
    f = pattern(5.0)
    for factor in (1.5, 1.0, 2.3):
        rescaled = rescale_images(f.image(81, 81), factor)
        assert rescaled.shape == (1, 1, 81, 81)
        inner = (slice(None), slice(None), slice(20, 61), slice(20, 61))
        truth = f.scaled(factor).image(81, 81)
        assert (rescaled - truth)[inner].abs().max() <= f.bilinear_error
        assert (rescaled - f.scaled(1 / factor).image(81, 81))[inner].abs().max() > 0.1 or factor == 1


def test_a_shrunk_image_is_anti_aliased():
    board = ((torch.arange(65)[:, None] + torch.arange(65)) % 2).double()[None, None]
    shrunk = rescale_images(board, 0.25)[..., 29:36, 29:36]
    assert (shrunk - 0.5).abs().max() < 1e-9


def test_a_network_that_ignores_its_input_is_perfectly_invariant():
    def constant(images: Tensor) -> Tensor:
        return torch.tensor([[3.0, 4.0]]).expand(len(images), 2)

    errors = scale_invariance_error(constant, torch.randn(3, 1, 16, 16), [0.5, 2])
    assert errors == [InvarianceError(0.5, 0.0, 1.0), InvarianceError(2.0, 0.0, 1.0)]


def test_the_error_and_the_agreement_by_hand():
    """Outputs (3, 4) and (0, 5); then (4, 3) and (0, 10): distances √2/5 and 5/5, one winner kept."""
    before = torch.tensor([[3.0, 4.0], [0.0, 5.0]])
    after = torch.tensor([[4.0, 3.0], [0.0, 10.0]])

    def network(images: Tensor) -> Tensor:
        return after if images.max() > 1 else before

    images = torch.zeros(2, 1, 4, 4)
    (result,) = scale_invariance_error(network, images, [2.0], rescale=lambda factor: images + factor)
    assert result.error == pytest.approx((2**0.5 / 5 + 1) / 2)
    assert (result.factor, result.agreement) == (2.0, 0.5)


def test_measuring_does_not_depend_on_the_mode_and_leaves_no_trace():
    torch.manual_seed(0)
    network, images = fovavg(ScaleGrid.of(1, 2)), torch.randn(3, 1, 40, 40)
    network(images)  # batch norm has statistics of its own now
    before = {name: value.clone() for name, value in network.state_dict().items()}
    found = scale_invariance_error(network, images, [0.5])
    assert network.training
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert found == scale_invariance_error(network.eval(), images, [0.5])


def test_exact_rescaling_can_be_given():
    seen = []

    def rescale(factor: float) -> Tensor:
        seen.append(factor)
        return pattern(3.0).scaled(factor).image(41, 41)

    torch.manual_seed(0)
    net = fovavg(ScaleGrid.of(1, 2)).double().eval()
    errors = scale_invariance_error(net, pattern(3.0).image(41, 41), [1.0, 1.5], rescale=rescale)
    assert seen == [1.0, 1.5]
    assert errors[0].error == 0
    assert errors[1].error > 0


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="factor must be positive; got -1"):
        rescale_images(torch.randn(1, 1, 8, 8), -1)
    with pytest.raises(ValueError, match="must have the shape"):
        scale_invariance_error(lambda images: images, torch.randn(8, 8), [2])
