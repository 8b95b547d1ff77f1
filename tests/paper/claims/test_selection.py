"""Slope, overlap and bias of histograms of selected scales."""

import math

import pytest
from helpers.made_up import made_up

from scalechannels.paper.claims.selection import bias, overlap, trend
from scalechannels.paper.recipes import main


def test_trend_overlap_and_bias_of_known_histograms() -> None:
    run = main("fovmax", "tr2")
    diagonal = made_up(run)
    assert trend(diagonal) == (pytest.approx(1.0), pytest.approx(1.0))
    steep = made_up(run, selection=lambda size, scale: 2 - abs(math.log2(scale / (2 * size**0.5))))
    assert trend(steep)[0] == pytest.approx(0.5, abs=0.06)
    level = made_up(run, selection=lambda size, scale: float(scale == 1))
    assert trend(level) == (0.0, 0.0)
    assert overlap(diagonal, diagonal) == pytest.approx(1.0)
    assert overlap(diagonal, level) == pytest.approx(1 / 13)
    even = made_up(run, selection=lambda size, scale: 1.0)
    assert bias(even) == pytest.approx(1.0)
    doubled = made_up(run, selection=lambda size, scale: 2.0 if scale == 1 else 1.0)
    assert bias(doubled) == pytest.approx(2.0)
