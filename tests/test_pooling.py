"""Pooling over scales: the definitions by hand, on logits, and which of them are symmetric."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scalechannels import (
    ConcatScales,
    LogMeanExpOverScales,
    MaxOverScales,
    MeanOverScales,
    MeanProbabilityOverScales,
    ScaleChannelNetwork,
    ScaleGrid,
    fovmax,
    swmax,
)
from scalechannels.backbones.residual import ResidualBackbone
from scalechannels.pooling import Pooling

CHANNELS = torch.tensor([[[1.0, -2.0], [3.0, 0.0], [-1.0, 4.0]]], dtype=torch.float64)  # (1, 3, 2)
SYMMETRIC = [MaxOverScales(), MeanOverScales(), LogMeanExpOverScales()]


def test_max_is_eq_lambda_s_max():
    assert MaxOverScales()(CHANNELS).tolist() == [[3.0, 4.0]]


def test_mean_is_eq_lambda_s_avg():
    torch.testing.assert_close(MeanOverScales()(CHANNELS), torch.tensor([[1.0, 2 / 3]], dtype=torch.float64))


def test_log_mean_exp_by_hand():
    expected = [
        math.log((math.e + math.e**3 + math.e**-1) / 3),
        math.log((math.e**-2 + 1 + math.e**4) / 3),
    ]
    assert LogMeanExpOverScales()(CHANNELS)[0].tolist() == pytest.approx(expected)


def test_log_mean_exp_does_not_overflow():
    large = torch.tensor([[[1000.0], [1000.0], [999.0]]])
    assert LogMeanExpOverScales()(large).item() == pytest.approx(1000 + math.log((2 + 1 / math.e) / 3))


def test_concatenation_is_eq_lambda_s_conc():
    """A dense layer over all logits, channel after channel."""
    pool = ConcatScales(3, 2).double()
    with torch.no_grad():
        pool.mix.weight.copy_(torch.arange(12.0).view(2, 6))
        pool.mix.bias.copy_(torch.tensor([10.0, 20.0]))
    flat = [1, -2, 3, 0, -1, 4]
    expected = [
        10 + sum(k * v for k, v in enumerate(flat)),
        20 + sum((6 + k) * v for k, v in enumerate(flat)),
    ]
    assert pool(CHANNELS)[0].tolist() == pytest.approx(expected)
    assert ConcatScales(3, 2, 5)(CHANNELS.float()).shape == (1, 5)


@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 100))
@settings(deadline=None, max_examples=30)
def test_mean_is_below_log_mean_exp_is_below_max_and_all_are_symmetric(scales: int, classes: int, seed: int):
    random = torch.Generator().manual_seed(seed)
    channels = 5 * torch.randn(2, scales, classes, generator=random, dtype=torch.float64)
    largest, mean, smooth = (pool(channels) for pool in SYMMETRIC)
    assert (mean <= smooth + 1e-12).all()
    assert (smooth <= largest + 1e-12).all()
    shuffled = channels[:, torch.randperm(scales, generator=random)]
    for pool in (*SYMMETRIC, MeanProbabilityOverScales()):
        torch.testing.assert_close(pool(shuffled), pool(channels), rtol=0, atol=1e-12)
    equal = channels[:, :1].expand(-1, scales, -1)
    for pool in SYMMETRIC:
        torch.testing.assert_close(pool(equal), channels[:, 0], rtol=0, atol=1e-12)


def test_concatenation_is_not_symmetric():
    torch.manual_seed(0)
    pool = ConcatScales(3, 2).double()
    assert not torch.allclose(pool(CHANNELS), pool(CHANNELS.flip(1)))


@pytest.mark.parametrize("pool", SYMMETRIC[:2], ids=repr)
def test_convention_pooling_logits_differs_from_pooling_probabilities(pool):
    """Even the winner can differ: two channels that lean to class 0 against one that is sure of class 1."""
    channels = torch.tensor([[[2.0, 0.0, 0.0], [2.0, 0.0, 0.0], [-9.0, 4.0, 0.0]]])
    if isinstance(pool, MaxOverScales):
        channels = torch.tensor([[[6.0, 5.5, 5.5], [-9.0, 4.0, -9.0]]])
    on_logits, on_probabilities = pool(channels), pool(channels.softmax(2))
    assert on_logits.argmax() != on_probabilities.argmax()


def test_a_silent_channel_has_a_vote_in_the_mean_of_probabilities_and_hardly_one_in_log_mean_exp():
    """Zero logits: in log-mean-exp they count as exp(0) beside exp(9), as probabilities as a third each."""
    sure, silent = torch.tensor([9.0, 0.0, -9.0]), torch.zeros(4, 3)
    channels = torch.cat([sure[None], silent])[None]  # (1, 5, 3)
    votes = MeanProbabilityOverScales()(channels).exp()[0]
    assert float(votes.sum()) == pytest.approx(1)
    assert float(votes[0]) == pytest.approx((1 + 4 / 3) / 5, abs=1e-3)
    assert float(LogMeanExpOverScales()(channels).softmax(1)[0, 0]) > 0.99


@pytest.mark.parametrize("pool", [*SYMMETRIC, ConcatScales(3, 2).double()], ids=repr)
def test_gradients(pool):
    assert torch.autograd.gradcheck(pool, (CHANNELS.clone().requires_grad_(),))


def test_bad_input_of_a_concatenation_is_named():
    with pytest.raises(ValueError, match="made for 3 scales of 2 outputs; got 4 of 2"):
        ConcatScales(3, 2)(torch.zeros(1, 4, 2))
    with pytest.raises(ValueError, match="made for 3 scales of 2 outputs; got 3 of 5"):
        ConcatScales(3, 2)(torch.zeros(1, 3, 5))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inductor itself uses what torch deprecates
def test_a_compiled_maximum_has_a_gradient_in_bfloat16():
    """What comes before it is computed again for the gradient, and then not rounded to bfloat16."""
    generator = torch.Generator().manual_seed(0)
    channels = torch.randn(8, 40, 10, generator=generator).bfloat16().requires_grad_()
    bias = torch.randn(10, generator=generator).bfloat16()
    pooled = torch.compile(lambda channels: MaxOverScales()(channels + bias))(channels)
    pooled.float().sum().backward()
    assert channels.grad.sum(1).equal(torch.ones(8, 10).bfloat16())


def test_the_gradient_of_a_maximum_goes_to_one_of_those_that_tie():
    channels = torch.tensor([[[2.0], [5.0], [5.0]]], requires_grad=True)
    MaxOverScales()(channels).sum().backward()
    assert channels.grad.flatten().tolist() == [0.0, 1.0, 0.0]


def test_no_network_asks_for_the_places_that_equal_a_maximum_where_it_learns(monkeypatch):
    """See `winner`: compiled, in bfloat16, there may be none."""
    grid, image = ScaleGrid.of(1, 2), torch.randn(2, 1, 40, 40)
    backbone = ResidualBackbone(2, channels=1)
    networks = [
        fovmax(grid),
        swmax(grid),
        swmax(grid, norm="each"),
        ScaleChannelNetwork(backbone, grid, MaxOverScales()),
    ]
    monkeypatch.setattr(torch.Tensor, "amax", lambda *_: pytest.fail("amax"))
    for network in networks:
        network(image).sum().backward()


def test_a_pooling_that_would_be_saved_without_its_arguments_is_refused() -> None:
    """It would be loaded with others: a wrong answer without a word."""
    with pytest.raises(TypeError, match="Power has a constructor: it needs `arguments`"):

        class Power(Pooling):
            def __init__(self, power: float = 2.0) -> None:
                super().__init__()
                self.power = power
