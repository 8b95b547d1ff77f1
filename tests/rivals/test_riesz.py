"""Riesz networks: the transform commutes with rescaling, and the published size."""

import torch
from helpers.signals import blob, pattern

from scalechannels.rivals.riesz import RieszNetwork, RieszTransforms, multipliers

SIDE, LARGER = 81, 161


def test_the_second_transforms_add_up_to_minus_one_but_for_the_mean() -> None:
    found = multipliers(12, 9)
    total = found[2] + found[4]
    total[0, 0] -= 1
    assert torch.allclose(total, -torch.ones_like(total), atol=1e-6)


def test_the_transforms_do_not_change_with_the_scale() -> None:
    """Law, within 4 %: transform, then rescale, equals rescale, then transform."""
    image, larger = pattern(2.0).image(SIDE, SIDE), pattern(4.0).image(LARGER, LARGER)
    one, other = RieszTransforms()(image), RieszTransforms()(larger)[..., ::2, ::2]
    assert float((one - other).abs().max() / one.abs().max()) < 0.04
    assert float((image - other[:, :1]).abs().max()) > 0.3


def test_the_first_transform_is_odd_along_its_axis() -> None:
    found = RieszTransforms()(blob(3.0).image(SIDE, SIDE))[0]  # (5, H, W)
    assert torch.allclose(found[0], -found[0].flip(0), atol=1e-9)
    assert torch.allclose(found[0], found[0].flip(1), atol=1e-9)
    assert torch.allclose(found[0], found[1].T, atol=1e-9)


def test_the_centre_says_the_same_at_every_scale() -> None:
    """Law of the network, within 5 % of the range of its logits over two octaves."""
    torch.manual_seed(0)
    made = RieszNetwork(features=(4, 6, 8)).double().eval()
    with torch.no_grad():
        found = torch.cat([made(pattern(size).image(LARGER, LARGER)) for size in (1.5, 3.0, 6.0)])  # (3, K)
    span = float(found.max() - found.min())
    assert float((found - found[1]).abs().max()) < 0.05 * span


def test_it_has_the_published_size_and_learns() -> None:
    assert sum(weight.numel() for weight in RieszNetwork().parameters()) == 20_882
    made = RieszNetwork(features=(4, 5), channels=3, classes=4, reading="max")
    made(torch.randn(3, 3, 14, 11)).square().sum().backward()
    still = [name for name, weight in made.named_parameters() if not weight.grad.abs().max() > 0]
    assert not [name for name in still if not name.endswith("0.bias")]  # batch norm takes these off again
    assert made.eval()(torch.randn(3, 3, 14, 11)).shape == (3, 4)
    assert made.correction(16, 16) == 6 * (3 + 4) * 256 * 8
