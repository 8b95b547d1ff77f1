"""Coarse to fine: equal to filling in by hand from all channels, image by image, and cheaper than them."""

import itertools
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from scalechannels import (
    LogMeanExpOverScales,
    MaxOverScales,
    MeanOverScales,
    ScaleChannelNetwork,
    ScaleGrid,
    cnn,
    fovconc,
    fovlse,
    selected_scale,
    swmax,
)
from scalechannels.coarse_to_fine import CoarseToFine, coarse_places, interpolation, nearest_places

GRID = ScaleGrid(0.5, 8, ratio=2**0.5)  # 9 scales
POOLS = [MaxOverScales(), MeanOverScales(), LogMeanExpOverScales()]
names = [type(pool).__name__ for pool in POOLS]


class Counting(nn.Module):
    """A small backbone that counts the windows it is shown."""

    def __init__(self, outputs: int = 3) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layers = nn.Sequential(
            nn.Conv2d(1, 4, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(36, outputs)
        ).double()
        with torch.no_grad():
            self.layers[3].weight.mul_(30)  # so that some images are sure and others in doubt
        self.windows = 0

    def forward(self, windows: Tensor) -> Tensor:
        self.windows += len(windows)
        return self.layers(windows)


def small_network(pool: nn.Module, grid: ScaleGrid = GRID, **options) -> ScaleChannelNetwork:
    return ScaleChannelNetwork(Counting(), grid, pool, window=8, **options).eval()


def blobs(count: int = 24, side: int = 40) -> Tensor:
    """Blots of different sizes and shapes, so that different channels win."""
    generator = torch.Generator().manual_seed(5)
    noise = torch.randn(count, 1, side, side, generator=generator, dtype=torch.float64)
    axis = torch.arange(side, dtype=torch.float64) - (side - 1) / 2
    radius = torch.logspace(0, 4, count, base=2, dtype=torch.float64)[:, None, None, None]
    envelope = torch.exp(-(axis[:, None] ** 2 + axis**2) / (2 * radius**2))
    return 3 * envelope * (1 + noise)


def by_hand(network: ScaleChannelNetwork, channels: Tensor, step: int, refine: int, sure: float) -> Tensor:
    """One image's channel outputs (S, F), filled in from a part of them in plain loops."""
    S = len(channels)
    coarse = list(range(((S - 1) % step) // 2, S, step))

    def filled(known: list[int]) -> Tensor:
        values = []
        for place in range(S):
            below = [one for one in known if one <= place]
            above = [one for one in known if one >= place]
            low, high = max(below or [min(known)]), min(above or [max(known)])
            share = (place - low) / (high - low) if high != low else 0.0
            values.append((1 - share) * channels[low] + share * channels[high])
        return torch.stack(values)

    pooled = network.pool_channels(filled(coarse)[None])[0]
    if sure < 1 and pooled.softmax(0).max() >= sure:
        return filled(coarse)
    logits = channels if network.head is None else network.head(channels)
    winners = [
        max(coarse, key=lambda place: float(logits[place, leader]))
        for leader in pooled.argsort(descending=True)[:2].tolist()
    ]
    others = sorted(
        set(range(S)) - set(coarse),
        key=lambda place: (min(abs(place - one) for one in winners), place),
    )
    return filled(coarse + others[:refine])


# Against the loops


@pytest.mark.parametrize("sure", [0.0, 0.9, 1.0])
@pytest.mark.parametrize(("step", "refine"), [(2, 1), (3, 2), (3, 4), (4, 3), (5, 0), (20, 3)])
@pytest.mark.parametrize("pool", POOLS, ids=names)
@torch.inference_mode()
def test_equal_to_filling_in_by_hand(pool, step: int, refine: int, sure: float) -> None:
    network, images = small_network(pool), blobs()
    fast = CoarseToFine(network, step, refine, sure)
    expected = torch.stack(
        [by_hand(network, channels, step, refine, sure) for channels in network.channel_logits(images)]
    )
    torch.testing.assert_close(fast.channel_logits(images), expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(fast(images), pool(expected), rtol=0, atol=1e-10)


@torch.inference_mode()
def test_different_images_are_refined_around_different_scales() -> None:
    """Else the test above would not show that the windows are each image's own."""
    network, images = small_network(MaxOverScales()), blobs()
    fast = CoarseToFine(network, 3)
    known = network.channel_logits(images)[:, fast.coarse]
    winners = torch.stack(fast._winners(known, network(images)))  # (2, B)
    assert len(winners.unique(dim=1)[0]) >= 6
    assert 0 < (winners[0] == winners[1]).sum() < len(images)


@pytest.mark.parametrize("options", [{}, {"antialias": True}, {"antialias": True, "blur": 0.8}], ids=str)
@torch.inference_mode()
def test_given_centres_and_every_kind_of_window(options) -> None:
    network, images = small_network(LogMeanExpOverScales(), **options), blobs(10)
    centres = torch.linspace(12, 27, 20, dtype=torch.float64).view(10, 2)
    fast = CoarseToFine(network, 3, 2, 0.9)
    expected = torch.stack(
        [by_hand(network, channels, 3, 2, 0.9) for channels in network.channel_logits(images, centres)]
    )
    torch.testing.assert_close(fast.channel_logits(images, centres), expected, rtol=0, atol=1e-9)


@torch.inference_mode()
def test_features_are_pooled_and_a_head_decides() -> None:
    torch.manual_seed(3)
    head = nn.Linear(3, 5).double()
    network, images = small_network(MeanOverScales(), head=head), blobs()
    fast = CoarseToFine(network, 3, 2, 1.0)
    with torch.inference_mode():
        features = network._channels(images, None)
        expected = torch.stack([by_hand(network, one, 3, 2, 1.0) for one in features]).mean(1)
        torch.testing.assert_close(fast(images), head(expected), rtol=0, atol=1e-10)


@torch.inference_mode()
def test_many_images_go_through_in_pieces() -> None:
    network, images = small_network(LogMeanExpOverScales()), blobs(400, 24)
    fast = CoarseToFine(network, 3, 2, 0.9)
    alone = torch.cat([fast(images[place : place + 1]) for place in range(0, 400, 13)])
    torch.testing.assert_close(fast(images)[::13], alone, rtol=0, atol=1e-10)


# The law


@pytest.mark.parametrize(("step", "refine"), [(1, 0), (2, 99), (4, 99)])
@pytest.mark.parametrize("pool", POOLS, ids=names)
@torch.inference_mode()
def test_with_all_channels_it_is_the_network_itself(pool, step: int, refine: int) -> None:
    network, images = small_network(pool), blobs()
    fast = CoarseToFine(network, step, refine, 1.0)
    torch.testing.assert_close(fast(images), network(images), rtol=0, atol=1e-10)


@given(
    scales=st.integers(1, 20),
    step=st.integers(1, 7),
    count=st.integers(0, 6),
    slope=st.floats(-3, 3),
    start=st.floats(-3, 3),
)
@settings(deadline=None, max_examples=60)
def test_lines_are_filled_in_exactly(scales: int, step: int, count: int, slope: float, start: float) -> None:
    coarse = coarse_places(scales, step)
    assert len(coarse) == (scales - 1) // step + 1
    margins = coarse[0], scales - 1 - coarse[-1]
    assert margins[1] - margins[0] in (0, 1)
    line = start + slope * torch.arange(scales, dtype=torch.float64)
    for winners in itertools.product(coarse, coarse):
        places = nearest_places(scales, coarse, winners, count)
        assert len(set(coarse + places)) == min(scales, len(coarse) + count)
        known = coarse + places
        filled = interpolation(scales, known) @ line[known]
        inside = slice(min(known), max(known) + 1)
        torch.testing.assert_close(filled[inside], line[inside], rtol=0, atol=1e-10)
        torch.testing.assert_close(filled[: min(known)], line[min(known)].expand(min(known)))


@torch.inference_mode()
def test_the_maximum_never_exceeds_the_networks() -> None:
    network, images = small_network(MaxOverScales()), blobs()
    below = network(images) - CoarseToFine(network, 3, 2, 1.0)(images)
    assert below.min() >= -1e-12
    assert below.max() > 0.01  # it is an approximation


@torch.inference_mode()
def test_the_mean_is_not_that_of_the_evaluated_channels() -> None:
    """Convention: the trapezoid rule, since channels around the winner must not count more than others."""
    network, images = small_network(MeanOverScales()), blobs()
    fast, logits = CoarseToFine(network, 2, 2, 1.0), network.channel_logits(images)
    coarse = CoarseToFine(network, 2, 0)(images)
    around = fast.fine[fast._winners(logits[:, fast.coarse], coarse)]
    evaluated = torch.cat([fast.coarse.expand(len(images), -1), around], 1)
    alone = torch.stack([one[places].mean(0) for one, places in zip(logits, evaluated, strict=True)])
    errors = [(given - network(images)).abs().mean() for given in (fast(images), alone)]
    assert errors[0] < 0.8 * errors[1]


# The cost


@torch.inference_mode()
def test_only_images_in_doubt_are_refined() -> None:
    network, images = small_network(LogMeanExpOverScales()), blobs()
    backbone = network.backbone
    coarse = CoarseToFine(network, 3, 2, 0.0)(images)
    doubtful = int((coarse.softmax(1).amax(1) < 0.9).sum())
    assert 0 < doubtful < len(images)
    for sure, refined in ((0.0, 0), (0.9, doubtful), (1.0, len(images))):
        backbone.windows = 0
        CoarseToFine(network, 3, 2, sure)(images)
        assert backbone.windows == 3 * len(images) + 2 * refined


def test_in_training_mode_all_channels_are_evaluated() -> None:
    network, images = small_network(LogMeanExpOverScales()), blobs(4)
    fast = CoarseToFine(network, 3)
    assert not fast.training
    torch.testing.assert_close(fast.train()(images), network.train()(images))


def test_gradients_reach_the_image() -> None:
    network, images = small_network(LogMeanExpOverScales()), blobs(6).requires_grad_()
    CoarseToFine(network, 3, 2, 0.9)(images).sum().backward()
    assert (images.grad.flatten(1).abs().sum(1) > 0).all()


def test_weights_are_shared_and_selection_works() -> None:
    network, images = small_network(MaxOverScales()), blobs()
    fast = CoarseToFine(network, 3, 2, 1.0)
    assert fast.backbone is network.backbone
    assert fast.grid == network.grid
    assert set(fast.state_dict()) == set(network.state_dict())
    nearest = (selected_scale(fast, images).log2() - selected_scale(network, images).log2()).abs()
    assert (nearest <= 0.5 + 1e-6).double().mean() > 0.7


# Errors


@pytest.mark.parametrize(
    ("network", "arguments", "message"),
    [
        (lambda: fovconc(GRID), {}, "symmetric.*ConcatScales"),
        (lambda: cnn(), {}, "foveated scale channels.*PlainNetwork"),
        (lambda: swmax(GRID), {}, "foveated scale channels"),
        (lambda: fovlse(GRID), {"step": 0}, "step.*at least 1, got 0"),
        (lambda: fovlse(GRID), {"step": 1.5}, "step.*got 1.5"),
        (lambda: fovlse(GRID), {"refine": -1}, "refine.*at least 0, got -1"),
        (lambda: fovlse(GRID), {"sure": 1.5}, "sure.*from 0 to 1, got 1.5"),
    ],
)
def test_errors_say_what_was_given_and_what_is_accepted(network, arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CoarseToFine(network(), **arguments)


def test_it_is_not_saved_but_the_network_is(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="save the network that was given"):
        CoarseToFine(fovlse(GRID)).save_pretrained(tmp_path / "net")


def test_by_default_all_channels_up_to_the_coarse_neighbours_are_refined() -> None:
    fast = CoarseToFine(fovlse(ScaleGrid(0.5, 8, ratio=2**0.25)))
    assert (fast.step, fast.sure) == (3, 0.85)  # as docs/cost.md measured it
    assert fast.coarse.tolist() == [0, 3, 6, 9, 12, 15]
    assert sorted(fast.fine[2, 2].tolist()) == [4, 5, 7, 8]
    assert sorted(fast.fine[1, 4].tolist()) == [2, 4, 11, 13]


# The commands


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    network = fovlse(ScaleGrid(0.5, 2, ratio=2**0.25))
    network.backbone.classifier.weight.data.mul_(200)  # sure enough not to be refined unless asked to
    network.save_pretrained("net")
    cnn().save_pretrained("plain")
    return tmp_path
