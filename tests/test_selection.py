"""Which scale channel decided: the paper's definitions on hand-made channel logits with answers by hand."""

import math

import pytest
import torch
from torch import Tensor, nn

from scalechannels import (
    ConcatScales,
    LogMeanExpOverScales,
    MaxOverScales,
    MeanOverScales,
    ScaleChannelNetwork,
    ScaleGrid,
    cnn,
    evidence_centres,
    expected_window,
    fovavg,
    fovconc,
    fovlse,
    fovmax,
    scale_contributions,
    selected_scale,
    swmax,
)
from scalechannels.constructors import paper_network

# Three channels, two classes. Class 0: 1, −5, 2; class 1: 0, 3, 4.
CHANNELS = torch.tensor([[[1.0, 0.0], [-5.0, 3.0], [2.0, 4.0]]])


class Median(nn.Module):
    """A user's own pooling."""

    def forward(self, channels: Tensor) -> Tensor:
        return channels.median(1).values


def channel_contributions(pool, channels):
    return pool.contributions(channels, pool(channels).argmax(1))


def close(actual: Tensor, expected: list[float]) -> None:
    torch.testing.assert_close(actual, torch.tensor([expected]))


def test_fovmax_and_swmax_give_all_to_the_channel_with_the_largest_value():
    close(channel_contributions(MaxOverScales(), CHANNELS), [0.0, 0.0, 1.0])


def test_fovavg_shares_by_the_absolute_value_of_the_winners_logit():
    """Means −2/3 and 7/3: class 1 wins, and its logits 0, 3, 4 share 7."""
    close(channel_contributions(MeanOverScales(), CHANNELS), [0.0, 3 / 7, 4 / 7])
    # With class 0 alone: 1, −5, 2 share 8 in absolute value.
    close(channel_contributions(MeanOverScales(), CHANNELS[..., :1]), [1 / 8, 5 / 8, 2 / 8])


def test_fovconc_shares_by_the_absolute_value_of_weights_times_logits():
    pool = ConcatScales(3, 2)
    with torch.no_grad():
        pool.mix.weight.copy_(torch.tensor([[1.0, 1.0, 1.0, -1.0, 0.5, 2.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]))
        pool.mix.bias.copy_(torch.tensor([0.0, 0.5]))
    # Class 0 has 1·1 + 1·0 = 1, 1·(−5) − 1·3 = −8 and 0.5·2 + 2·4 = 9: output 2 beats 0.5.
    close(channel_contributions(pool, CHANNELS), [1 / 18, 8 / 18, 9 / 18])


def test_log_mean_exp_shares_by_the_exponential_and_that_is_its_gradient():
    total = 1 + math.e**3 + math.e**4
    close(
        channel_contributions(LogMeanExpOverScales(), CHANNELS),
        [1 / total, math.e**3 / total, math.e**4 / total],
    )
    leaf = CHANNELS.clone().requires_grad_()
    LogMeanExpOverScales()(leaf)[0, 1].backward()
    assert leaf.grad is not None
    torch.testing.assert_close(leaf.grad[..., 1], channel_contributions(LogMeanExpOverScales(), CHANNELS))


def test_channels_that_all_say_zero_contribute_equally():
    close(channel_contributions(MeanOverScales(), torch.zeros(1, 4, 2)), [0.25, 0.25, 0.25, 0.25])


@pytest.mark.parametrize("build", [fovmax, fovavg, fovlse, fovconc, swmax])
def test_contributions_of_a_network_sum_to_one_and_name_a_scale(build):
    torch.manual_seed(0)
    grid = ScaleGrid.of(0.5, 1, 3)
    net, images = build(grid).eval(), torch.randn(4, 1, 40, 40)
    contributions = scale_contributions(net, images)
    assert contributions.shape == (4, 3)
    torch.testing.assert_close(contributions.sum(1), torch.ones(4))
    pool = MaxOverScales() if build is swmax else net.pool
    torch.testing.assert_close(contributions, channel_contributions(pool, net.channel_logits(images)))
    selected = selected_scale(net, images)
    assert selected.tolist() == [grid[index] for index in contributions.argmax(1)]
    assert set(selected.tolist()) <= set(grid)


def test_the_winner_is_that_of_the_whole_network_not_of_a_channel():
    """Channel 1 believes in class 0 most of all channels and classes, but the mean prefers class 1."""
    channels = torch.tensor([[[9.0, 2.0], [-9.0, 4.0]]])
    close(channel_contributions(MeanOverScales(), channels), [2 / 6, 4 / 6])


def test_where_no_definition_exists_it_says_so():
    with pytest.raises(TypeError, match="no definition of a channel's contribution is known for Median"):
        scale_contributions(paper_network(ScaleGrid.of(1), Median()), torch.randn(1, 1, 30, 30))
    net = ScaleChannelNetwork(
        fovavg(ScaleGrid.of(1)).backbone, ScaleGrid.of(1), MaxOverScales(), head=nn.Linear(10, 2)
    )
    with pytest.raises(ValueError, match="this network pools features"):
        scale_contributions(net, torch.randn(1, 1, 30, 30))


@pytest.mark.parametrize("function", [selected_scale, scale_contributions])
def test_a_plain_network_has_no_scale_channels(function):
    with pytest.raises(TypeError, match="a PlainNetwork has no scale channels"):
        function(cnn().eval(), torch.randn(1, 1, 112, 112))


@pytest.mark.parametrize("ask", [scale_contributions, selected_scale, evidence_centres, expected_window])
def test_asking_does_not_depend_on_the_mode_and_leaves_no_trace(ask):
    torch.manual_seed(0)
    network, images = swmax(ScaleGrid.of(1, 2)), torch.randn(3, 1, 40, 40)
    network(images)  # batch norm has statistics of its own now
    before = {name: value.clone() for name, value in network.state_dict().items()}
    while_training = ask(network, images)
    assert all(part.training for part in network.modules())
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    torch.testing.assert_close(while_training, ask(network.eval(), images), rtol=0, atol=0)
