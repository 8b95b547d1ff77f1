"""Run r of a stack computes what its own network computes, up to the order of summation.

Compared in float64: in float32 rounding decides on which side of a ReLU's kink a value near zero lies, and
with it a visible part of the gradient.
"""

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from helpers.tiny_runs import tiny
from torch import nn

from scalechannels import ScaleChannelNetwork, ScaleGrid, swmax
from scalechannels.backbones.paper import CifarBackbone
from scalechannels.data.image_set import ImageSet
from scalechannels.pooling import MeanOverScales
from scalechannels.training import stacking
from scalechannels.training.build import build_network
from scalechannels.training.inputs import Inputs
from scalechannels.training.stacking import products
from scalechannels.training.stacking.stacked import SearchedSliding, StackedNetwork, can_stack
from scalechannels.training.trainer import Trainer

FOVEATED = ["fovavg", "fovmax", "fovlse", "fovconc"]
EVERY = [*FOVEATED, "cnn", "swmax"]
R, B = 3, 5


@pytest.fixture
def double(monkeypatch) -> torch.dtype:
    """The stack computes batch norm and logits in float32 at least; here, in float64."""
    monkeypatch.setattr(torch, "float32", torch.float64)
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    return torch.float64


class Case:
    """R networks, their stack, and a batch for each in both forms."""

    def __init__(self, name: str, dtype: torch.dtype = torch.float32, **network: Any) -> None:
        draw = torch.Generator().manual_seed(1)
        side = 44 if name == "swmax" else 112
        sets = []
        for _ in range(R):
            # Blobs of any size: neighbouring pixels agree, as in pictures.
            noise = F.interpolate(torch.randn(B, 1, 14, 14, generator=draw), (side, side), mode="bilinear")
            sets.append(ImageSet(noise, torch.arange(B) % 10, torch.ones(B).double()))
        self.labels = sets[0].labels
        configs = [tiny(name, dropout=0.0, network=network, seed=r).resolve() for r in range(R)]
        self.networks = [build_network(config) for config in configs]
        for network in self.networks:
            _disturb(network)
        made = Inputs(configs, self.networks, range(R), sets, stacked=True)
        self.inputs, self.cached = made.resident, made.windows
        self.images = torch.stack([made.images for made in sets])  # (R, B, 1, H, W)
        self.inputs, self.images = self.inputs.to(dtype), self.images.to(dtype)
        self.networks = [network.to(dtype) for network in self.networks]
        self.stack = stacking.stack(self.networks, side, side).to(dtype)

    def alone(self, run: int) -> torch.Tensor:
        network = self.networks[run]
        if self.cached:
            assert isinstance(network, ScaleChannelNetwork)
            return network.from_stack(self.inputs[run].movedim(-1, 2))
        return network(self.images[run])

    def loss(self, logits: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(logits, self.labels)


def _disturb(network: nn.Module) -> None:
    """Fresh batch norms are all alike: give each its own gain, shift and statistics."""
    draw = torch.Generator().manual_seed(2)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.weight, module.running_var):
                nn.init.uniform_(tensor, 0.5, 1.5, generator=draw)
            for tensor in (module.bias, module.running_mean):
                nn.init.uniform_(tensor, -0.5, 0.5, generator=draw)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
def test_forward_is_that_of_the_networks(name, training, double) -> None:
    case = Case(name, double)
    case.stack.train(training)
    logits = case.stack(case.inputs)
    assert logits.shape == (R, B, 10)
    for run, network in enumerate(case.networks):
        network.train(training)
        torch.testing.assert_close(logits[run], case.alone(run), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "option"), [("swmax", {"margin": 9}), ("swmax", {"centred": False}), ("fovlse", {"width": 2})]
)
def test_options_of_the_networks_are_kept(name, option, double) -> None:
    case = Case(name, double, **option)
    logits = case.stack.train()(case.inputs)
    plain = Case(name, double)
    assert not torch.allclose(logits, plain.stack.train()(plain.inputs))
    for run, network in enumerate(case.networks):
        network.train()
        torch.testing.assert_close(logits[run], case.alone(run), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", EVERY)
def test_forward_in_float32_agrees_to_rounding(name) -> None:
    case = Case(name)
    logits = case.stack.train()(case.inputs)
    for run, network in enumerate(case.networks):
        network.train()
        torch.testing.assert_close(logits[run], case.alone(run), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", EVERY)
def test_one_step_has_the_gradients_and_statistics_of_the_networks(name, double) -> None:
    case = Case(name, double)
    case.stack.train()
    torch.stack([case.loss(logits) for logits in case.stack(case.inputs)]).sum().backward()
    copies = [copy.deepcopy(network) for network in case.networks]
    with torch.no_grad():
        for parameter in case.stack.parameters():
            # Unstacked below, gradients land where the weights would. A bias before batch norm has none.
            parameter.copy_(parameter.grad if parameter.requires_grad else torch.zeros(()))
    case.stack.unstack(copies)
    for run, network in enumerate(case.networks):
        network.train()
        case.loss(case.alone(run)).backward()
        found, buffers = dict(copies[run].named_parameters()), dict(copies[run].named_buffers())
        for key, parameter in network.named_parameters():
            torch.testing.assert_close(found[key].detach(), parameter.grad, rtol=1e-8, atol=1e-9, msg=key)
        for key, buffer in network.named_buffers():
            if key.endswith(("running_mean", "running_var")):
                torch.testing.assert_close(buffers[key], buffer, rtol=1e-9, atol=1e-9, msg=key)


@pytest.mark.parametrize("name", EVERY)
def test_a_step_in_bfloat16_goes_the_way_of_float32(name) -> None:
    case = Case(name)
    losses = {}
    for precision in ("float32", "bfloat16"):
        kind = torch.bfloat16 if precision == "bfloat16" else torch.float32
        stack = copy.deepcopy(case.stack)
        labels = case.labels.expand(R, B)
        trainer = Trainer(stack, case.inputs.to(kind), labels, list(range(R)), precision=precision)
        order = torch.arange(B).expand(R, 10, B)
        losses[precision] = torch.tensor(trainer.epoch(order, 1e-3))
    torch.testing.assert_close(losses["bfloat16"], losses["float32"], rtol=0.1, atol=0)


def test_runs_that_pool_differently_share_a_stack() -> None:
    cases = [Case(name) for name in ("fovmax", "fovavg", "fovlse")]
    stack = stacking.stack([case.networks[run] for run, case in enumerate(cases)], 112, 112)
    logits = stack(cases[0].inputs)
    assert not torch.allclose(logits[1], cases[0].stack(cases[0].inputs)[1])  # the maximum
    for run, case in enumerate(cases):
        torch.testing.assert_close(logits[run], case.stack(case.inputs)[run])
    with pytest.raises(TypeError, match="concatenation"):
        stacking.stack([cases[0].networks[0], Case("fovconc").networks[0]], 112, 112)


@pytest.mark.parametrize("name", EVERY)
def test_unstacking_gives_back_every_bit(name) -> None:
    case = Case(name)
    others = [build_network(tiny(name, seed=r + 10).resolve()) for r in range(R)]
    case.stack.unstack(others)
    for network, other in zip(case.networks, others, strict=True):
        wanted, found = network.state_dict(), other.state_dict()
        for key, value in wanted.items():
            if not key.endswith("num_batches_tracked"):
                assert torch.equal(value, found[key]), key


@pytest.mark.parametrize("name", ["fovavg", "fovconc", "cnn"])
def test_runs_do_not_see_each_other(name) -> None:
    case = Case(name)
    case.stack.train()
    before = case.stack(case.inputs)[1]
    case.loss(before).backward()
    for parameter in (found for found in case.stack.parameters() if found.requires_grad):
        assert parameter.grad is not None
        assert float(parameter.grad[[0, 2]].abs().max()) == 0  # from run 1's loss
    changed = case.inputs.clone()
    changed[[0, 2]] += 1
    torch.testing.assert_close(case.stack(changed)[1], before, rtol=0, atol=0)


@pytest.mark.parametrize("piece_rows", [1, 7, 60, 1000])
def test_a_product_has_its_gradients_whatever_the_pieces(monkeypatch, double, piece_rows) -> None:
    monkeypatch.setattr(products, "PIECE_ROWS", piece_rows)
    draw = torch.Generator().manual_seed(0)
    rows, weight, pull = (
        torch.randn(R, *shape, generator=draw, dtype=double) for shape in ((60, 7), (7, 5), (60, 5))
    )
    for with_rows in (False, True):
        found, wanted = (
            [rows.clone().requires_grad_(with_rows), weight.clone().requires_grad_()] for _ in range(2)
        )
        outputs = products.product(*found), torch.bmm(*wanted)
        torch.testing.assert_close(*outputs)
        for output in outputs:
            (output * pull).sum().backward()
        torch.testing.assert_close(found[1].grad, wanted[1].grad)
        if with_rows:
            torch.testing.assert_close(found[0].grad, wanted[0].grad)


def test_what_cannot_be_stacked_is_refused() -> None:
    other = ScaleChannelNetwork(CifarBackbone(), ScaleGrid.of(1, 2), MeanOverScales(), window=32)
    assert not can_stack(other)
    with pytest.raises(TypeError, match="ConvBackbone"):
        StackedNetwork([other])
    networks = [build_network(tiny().resolve(), classes=classes) for classes in (10, 7)]
    with pytest.raises(ValueError, match="of one shape"):
        StackedNetwork(networks)


# SWMax tested by search: the same logits and deciding channels


def test_logits_and_channels_are_those_of_the_network() -> None:
    torch.manual_seed(0)
    network = swmax(ScaleGrid(0.5, 2, ratio=2), margin=4, centred=True).eval()
    noise = [torch.randn(12, 1, side, side) for side in (3, 6, 12, 24)]  # detail of several sizes
    images = torch.cat([F.interpolate(coarse, (40, 48), mode="bilinear") for coarse in noise])
    with torch.inference_mode():
        own = network.explain(images)
        found = SearchedSliding(network, 40, 48).eval().explain(images)
    assert len(own.contributions.argmax(1).unique()) > 1
    torch.testing.assert_close(found.logits, own.logits)
    assert torch.equal(found.contributions, own.contributions)
    assert torch.equal(found.scales, own.scales)


def test_without_a_gpu_the_network_stays_as_it_is() -> None:
    network = swmax(ScaleGrid.of(1))
    assert stacking.searched(network, 40, 40) is network
