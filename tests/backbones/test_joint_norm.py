"""Batch norm of maps of several sizes as one: torch's own, on all of them side by side, is the oracle."""

import copy

import pytest
import torch
from torch import Tensor, nn

from scalechannels.backbones.joint_norm import jointly_normed

SIZES = ((5, 7), (2, 3), (9, 4))


def side_by_side(maps: list[Tensor], norm: nn.Module) -> list[Tensor]:
    together = norm(torch.cat([one.flatten(2) for one in maps], 2)[..., None])[..., 0]
    parts = together.split([one[0, 0].numel() for one in maps], 2)
    return [part.reshape(one.shape) for part, one in zip(parts, maps, strict=True)]


def made(dtype: torch.dtype = torch.float64) -> tuple[list[Tensor], nn.BatchNorm2d]:
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(4).to(dtype)
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.0, 2.0, 0.5, -1.0]))
        norm.bias.copy_(torch.arange(4.0))
    return [torch.randn(3, 4, h, w, dtype=dtype) * (1 + h) + h for h, w in SIZES], norm


def test_values_gradients_and_statistics_are_those_of_one_batch():
    maps, norm = made()
    gradients = [torch.randn_like(one) for one in maps]
    results = []
    for function, own in ((jointly_normed, norm), (side_by_side, copy.deepcopy(norm))):
        leaves = [one.clone().requires_grad_() for one in maps]
        normed = function(leaves, own)
        torch.autograd.backward(normed, gradients)
        state = list(own.state_dict().values())
        of = [*leaves, own.weight, own.bias]
        results.append([*normed, *(one.grad for one in of), *state])
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-10)
    apart = [copy.deepcopy(made()[1])(one) for one in maps]
    assert not torch.allclose(apart[0], results[0][0])  # each by itself is another convention


def test_maps_may_differ_in_how_many_images_they_are_of():
    """Both ways: by ours, and by a norm that was changed, which sees one map of them all."""
    maps, norm = made()
    maps[1] = torch.cat((maps[1], 2 * maps[1]))  # of 6 images, the others of 3
    changed = copy.deepcopy(norm)
    changed.register_forward_hook(lambda *_: None)
    results = []
    for own in (norm, changed):
        leaves = [one.clone().requires_grad_() for one in maps]
        normed = jointly_normed(leaves, own)
        sum((one * one.detach().sin()).sum() for one in normed).backward()
        results.append([*normed, *(one.grad for one in leaves), *own.state_dict().values()])
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-10)
    values = torch.cat([one.transpose(0, 1).flatten(1) for one in results[0][:3]], 1)
    torch.testing.assert_close(values.mean(1), norm.bias.double(), rtol=0, atol=1e-9)


def test_its_gradient_is_the_derivative():
    maps, norm = made()
    leaf = maps[1].requires_grad_()
    torch.autograd.gradcheck(lambda one: tuple(jointly_normed([one, maps[0]], norm)), (leaf,))


def test_in_eval_mode_it_is_the_norm_of_each():
    maps, norm = made()
    norm(maps[0])
    norm.eval()
    for normed, one in zip(jointly_normed(maps, norm), maps, strict=True):
        torch.testing.assert_close(normed, norm(one))


def test_half_precision_has_float32_statistics():
    """A sum of 10,000 ones does not fit bfloat16, which would stop at 256."""
    norm, maps = nn.BatchNorm2d(1), [torch.ones(1, 1, 100, 100, dtype=torch.bfloat16)]
    (normed,) = jointly_normed(maps, norm)
    assert normed.dtype == torch.bfloat16
    assert norm.running_mean.item() == pytest.approx(0.1)


def test_a_changed_norm_is_called():
    maps, norm = made()
    seen: list[Tensor] = []
    norm.register_forward_hook(lambda *call: seen.append(call[2]))
    jointly_normed(maps, norm)
    assert len(seen) == 1
