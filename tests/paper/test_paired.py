"""Intervals that hold the truth: on simulated networks whose accuracies have a closed form."""

from __future__ import annotations

import math
import statistics
import time

import numpy as np
import pytest

from scalechannels.paper.paired import (
    Paired,
    _over_images,
    _variance_of_seeds,
    chance_of,
    paired_difference,
    told_apart,
    two_sided,
)


def simulated(
    draws: np.random.Generator, level: float, hard: np.ndarray, spread: float, seeds: int = 3, sizes: int = 3
) -> np.ndarray:
    """Right where a sum of normals is positive: of the image, the seed, both, and all three with the size."""
    shape = (seeds, sizes, len(hard))
    of_seed = spread * draws.standard_normal((seeds, 1, 1))
    of_both = 0.5 * draws.standard_normal((seeds, 1, len(hard)))
    return level - hard + of_seed + of_both + 0.3 * draws.standard_normal(shape) > 0


def truth(level: float, spread: float) -> float:
    """The accuracy over all seeds and images there can be, in per cent."""
    return 100 * statistics.NormalDist(0, math.sqrt(1 + spread**2 + 0.5**2 + 0.3**2)).cdf(level)


def intervals(times: int, spreads: tuple[float, float], seeds: int = 3) -> list[Paired]:
    """Of pairs of networks with the levels 2.1 and 2.0."""
    draws = np.random.default_rng(5)
    found = []
    for _ in range(times):
        hard = draws.standard_normal(500)
        a, b = (
            simulated(draws, level, hard, spread, seeds)
            for level, spread in zip((2.1, 2.0), spreads, strict=True)
        )
        found.append(paired_difference(a, b, resamples=500))
    return found


@pytest.mark.parametrize(
    ("spreads", "least"),
    [
        ((0.0, 0.0), 0.94),  # images alone
        ((0.1, 0.1), 0.91),  # both matter alike
        ((0.4, 0.4), 0.92),  # seeds decide
        ((0.3, 0.02), 0.85),  # seeds decide, of one of them: the hardest case with three
    ],
)
def test_the_interval_holds_the_truth(spreads: tuple[float, float], least: float) -> None:
    expected = truth(2.1, spreads[0]) - truth(2.0, spreads[1])
    held = sum(one.low <= expected <= one.high for one in intervals(200, spreads)) / 200
    assert least <= held


@pytest.mark.parametrize(("spread", "seeds", "most"), [(0.2, 8, 1.25), (0.0, 3, 1.4)])
def test_the_interval_is_not_much_wider_than_it_must_be(spread: float, seeds: int, most: float) -> None:
    found = intervals(200, (spread, spread), seeds)
    deviation = statistics.stdev(one.difference for one in found)
    width = statistics.median(one.high - one.low for one in found)
    assert 0.9 < width / (2 * 1.96 * deviation) < most
    expected = truth(2.1, spread) - truth(2.0, spread)
    assert 0.91 <= sum(one.low <= expected <= one.high for one in found) / 200 <= 0.99


def same_weights(draws: np.random.Generator, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """Two ways to test the same three seeds, the first of which is a little better for all of them."""
    hard, of_seed = draws.standard_normal(500), spread * draws.standard_normal((3, 1, 1))
    common = of_seed + 0.5 * draws.standard_normal((3, 1, 500))
    first, second = (
        level - hard + common + 0.3 * draws.standard_normal((3, 3, 500)) > 0 for level in (2.1, 2.0)
    )
    return first, second


@pytest.mark.parametrize(("spread", "least", "narrower"), [(0.1, 0.92, 0.95), (0.4, 0.85, 0.5)])
def test_the_interval_of_the_same_weights_holds_the_truth_and_is_narrower(
    spread: float, least: float, narrower: float
) -> None:
    draws, expected = np.random.default_rng(5), truth(2.1, spread) - truth(2.0, spread)
    held, widths = 0, []
    for _ in range(200):
        pair = same_weights(draws, spread)
        apart = paired_difference(*pair, resamples=500)
        one = paired_difference(*pair, same_weights=True, resamples=500)
        assert one.difference == apart.difference
        held += one.low <= expected <= one.high
        widths.append((one.high - one.low) / (apart.high - apart.low))
    assert held / 200 >= least
    assert statistics.median(widths) < narrower
    with pytest.raises(ValueError, match="the same seeds, got 3 and 2"):
        paired_difference(pair[0], pair[1][:2], same_weights=True)


def test_the_variance_of_seeds_is_without_that_of_single_images() -> None:
    draws = np.random.default_rng(0)
    of_image, of_both = draws.normal(0, 3, (4000, 1, 50)), draws.normal(0, 2, (4000, 6, 50))
    for deviation in (0.5, 0.0):
        values = deviation * draws.standard_normal((4000, 6, 1)) + of_image + of_both
        found = [_variance_of_seeds(one) for one in values]
        spread = values.mean(2).var(1, ddof=1).mean()
        assert spread == pytest.approx(deviation**2 + 2**2 / 50, rel=0.06)
        assert min(found) == 0
        if deviation:
            assert statistics.fmean(found) == pytest.approx(deviation**2, rel=0.06)
        else:
            assert 0 < statistics.fmean(found) < 0.3 * spread  # never negative, so not 0 on average


def test_very_small_p_are_as_rare_as_they_say() -> None:
    """Else Holm's correction, which asks for these alone, would not correct."""
    draws, below = np.random.default_rng(3), 0
    for _ in range(400):
        hard = draws.standard_normal(400)
        pair = (simulated(draws, 2.0, hard, spread, 3, 1) for spread in (0.3, 0.0))
        below += paired_difference(*pair, resamples=100).p < 0.01
    assert below <= 8  # 4 are to be expected; 16 where the spread of seeds is taken without its own images


@pytest.mark.parametrize(
    ("difference", "normal", "spread", "freedom"),
    [(1.0, 0.1, 0.05, 3.0), (0.5, 0.1, 0.2, 2.2), (1.0, 0.0, 0.05, 3.0), (1.0, 0.2, 0.0, 1.0)],
)
def test_the_chance_of_a_difference_is_that_of_draws(
    difference: float, normal: float, spread: float, freedom: float
) -> None:
    draws, count = np.random.default_rng(0), 400_000
    sums = math.sqrt(normal) * draws.standard_normal(count)
    sums += math.sqrt(spread) * draws.standard_t(freedom, count)
    expected = float((np.abs(sums) >= difference).mean())
    found = chance_of(difference, normal, spread, freedom)
    assert found == pytest.approx(expected, abs=4 * math.sqrt(expected / count))
    assert chance_of(-difference, normal, spread, freedom) == found
    assert chance_of(0.0, normal, spread, freedom) == pytest.approx(1.0)


def single_images(network: np.ndarray) -> float:
    """The part of the variance of a mean over seeds that is what seed and image do together."""
    seeds, _, images = network.shape
    total = 0.0
    for seed in range(seeds):
        for image in range(images):
            left = network[seed, :, image].mean() - network[:, :, image].mean()
            total += (100 * (left - network[seed].mean() + network.mean())) ** 2
    return total / ((seeds - 1) * (images - 1)) / images / seeds


def test_it_is_what_a_plain_loop_gives() -> None:
    draws = np.random.default_rng(0)
    hard = draws.standard_normal(60)
    a, b = simulated(draws, 1.0, hard, 0.9), simulated(draws, 0.8, hard, 0.6, seeds=4, sizes=2)
    accuracies = [[100 * float(one.mean()) for one in network] for network in (a, b)]
    squares = [
        statistics.variance(values) / len(values) - single_images(network)
        for values, network in zip(accuracies, (a, b), strict=True)
    ]
    freedom = sum(squares) ** 2 / (squares[0] ** 2 / 2 + squares[1] ** 2 / 3)
    found = []
    for _ in range(20_000):
        chosen = draws.integers(60, size=60)  # the same for both, all seeds and all sizes
        means = [100 * network[:, :, chosen].mean() for network in (a, b)]
        found.append(means[0] - means[1] + math.sqrt(sum(squares)) * draws.standard_t(freedom))
    expected = statistics.fmean(accuracies[0]) - statistics.fmean(accuracies[1])
    result = paired_difference(a, b, resamples=20_000)
    assert result.difference == pytest.approx(expected, abs=1e-9)
    low, high = np.quantile(found, (0.025, 0.975))
    assert (result.low, result.high) == pytest.approx((low, high), abs=0.04 * (high - low))
    assert result.seeds == (3, 4)


def test_resampled_images_have_the_variance_of_a_mean() -> None:
    values = np.random.default_rng(1).integers(-3, 4, 200) / 3
    chance = _over_images(values, np.random.default_rng(0), 50_000)
    assert chance.mean() == pytest.approx(0, abs=0.002)
    assert chance.var() == pytest.approx(values.var() / 200, rel=0.05)


def test_one_seed_each_is_about_images_alone() -> None:
    draws = np.random.default_rng(0)
    hard = draws.standard_normal(400)
    a, b = simulated(draws, 2.0, hard, 0.0), simulated(draws, 1.5, hard, 0.0)
    alone = paired_difference(a[:1], b[:1])
    deviation = (100 * (a[0].mean(0) - b[0].mean(0))).std() / math.sqrt(400)
    assert alone.high - alone.low == pytest.approx(2 * 1.96 * deviation, rel=0.08)
    assert alone.seeds == (1, 1)
    varied = simulated(draws, 2.0, hard, 0.5)
    half = paired_difference(varied, b[:1])  # the seeds of the other are still allowed for
    assert half.high - half.low > 2 * (alone.high - alone.low)
    assert half.seeds == (3, 1)
    repeated = paired_difference(np.repeat(a[:1], 3, 0), b[:1])
    assert (repeated.low, repeated.high) == pytest.approx((alone.low, alone.high))


def test_images_are_paired() -> None:
    draws = np.random.default_rng(0)
    hard = 3 * draws.standard_normal(1000)  # most images are hard for both or for none
    a, b = simulated(draws, 1.0, hard, 0.0), simulated(draws, 1.0, hard, 0.0)
    paired = paired_difference(a[:1], b[:1])
    shuffled = paired_difference(a[:1], b[:1][:, :, draws.permutation(1000)])
    assert shuffled.difference == pytest.approx(paired.difference)
    assert shuffled.high - shuffled.low > 2 * (paired.high - paired.low)


def test_identical_networks_do_not_differ() -> None:
    one = np.random.default_rng(0).random((1, 4, 50)) < 0.7
    for seeds in (1, 3):
        same = np.repeat(one, seeds, 0)
        found = paired_difference(same, same)
        assert (found.difference, found.low, found.high) == (0, 0, 0)
        assert not found.clear


def test_the_same_seed_gives_the_same_interval() -> None:
    draws = np.random.default_rng(0)
    a, b = (draws.random((3, 2, 100)) < share for share in (0.9, 0.8))
    assert paired_difference(a, b) == paired_difference(a, b, seed=0)
    assert paired_difference(a, b) != paired_difference(a, b, seed=1)


def test_it_takes_seconds_for_a_table_row() -> None:
    draws = np.random.default_rng(0)
    a, b = (draws.random((3, 3 * 17, 10_000)) < share for share in (0.993, 0.992))
    began = time.perf_counter()
    found = paired_difference(a, b)
    assert time.perf_counter() - began < 5
    assert found.clear
    assert found.difference == pytest.approx(100 * (a.mean() - b.mean()), abs=1e-9)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (np.ones((3, 2, 10), bool), np.ones((3, 2, 11), bool), "same images, got 10 and 11"),
        (np.ones((3, 10), bool), np.ones((3, 2, 10), bool), r"a is bool .* got bool of shape \(3, 10\)"),
        (np.ones((3, 2, 10), bool), np.ones((3, 2, 10)), "b is bool .* got float64"),
        (
            np.ones((3, 2, 10), bool),
            np.ones((0, 2, 10), bool),
            r"b is bool .* got bool of shape \(0, 2, 10\)",
        ),
        (np.ones((3, 2, 1), bool), np.ones((3, 2, 1), bool), "a is bool .* of two images or more"),
    ],
)
def test_what_cannot_be_compared_is_told(a: np.ndarray, b: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        paired_difference(a, b)


def test_too_few_resamples_are_told() -> None:
    one = np.ones((1, 1, 5), bool)
    with pytest.raises(ValueError, match="at least 100 resamples, got 10"):
        paired_difference(one, one, resamples=10)


@pytest.mark.parametrize(
    ("low", "high", "clear"), [(0.1, 0.4, True), (-0.4, -0.1, True), (-0.1, 0.2, False), (0.0, 0.2, False)]
)
def test_a_difference_is_clear_without_0_in_its_interval(low: float, high: float, clear: bool) -> None:
    assert Paired(0.05, low, high).clear is clear


@pytest.mark.parametrize("freedom", [1.0, 2.3, 7.0, 9999.0])
@pytest.mark.parametrize("t", [0.0, 0.3, -2.0, 4.5])
def test_p_is_that_of_students_t(t: float, freedom: float) -> None:
    from scipy import stats

    assert two_sided(t, freedom) == pytest.approx(2 * stats.t.sf(abs(t), freedom), rel=1e-3, abs=1e-12)


def test_p_agrees_with_the_interval_and_is_even_where_there_is_no_difference() -> None:
    found = intervals(200, (0.1, 0.1))
    agree = sum((one.p < 0.05) == one.clear for one in found) / 200
    assert agree > 0.93
    draws, below = np.random.default_rng(3), 0
    for _ in range(300):
        hard = draws.standard_normal(500)
        pair = [simulated(draws, 2.0, hard, 0.0, 1) for _ in range(2)]
        below += paired_difference(*pair, resamples=100).p < 0.05
    assert 0.02 < below / 300 < 0.09
    assert paired_difference(pair[0], pair[0]).p == 1


def test_many_comparisons_are_corrected_by_holm() -> None:
    assert told_apart([0.04]) == [True]
    assert told_apart([0.04, 0.03]) == [False, False]  # 0.03 · 2 is above 0.05: nothing further is looked at
    assert told_apart([0.04, 0.02]) == [True, True]  # Bonferroni would leave out 0.04
    assert told_apart([0.001, 0.9, 0.02, 0.3]) == [True, False, False, False]
    assert told_apart([]) == []
    assert told_apart([math.nan]) == [False]


def test_a_difference_as_text() -> None:
    assert str(Paired(0.123, -0.004, 0.25)) == "+0.12 [-0.00, +0.25]"


# From results
