"""The table: means inside and outside, differences, the frontier; the picture shows what is in it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.made_up import keep
from helpers.tiny_comparison import TINY

from scalechannels.compare.cost import Costs
from scalechannels.compare.plot import draw
from scalechannels.compare.protocols import read_protocols
from scalechannels.compare.table import frontier, rows, table_json, table_text
from scalechannels.paper.results import RUNS


def first_of_40(count: int) -> np.ndarray:
    """The first images are wrong, so many."""
    return np.arange(40) < count


@pytest.fixture
def few(tmp_path: Path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return read_protocols(path)[0][0]


@pytest.fixture
def results(few, tmp_path: Path) -> Path:
    ours, cnn = few.methods
    keep(tmp_path / RUNS, few.run(ours), seeds=2, wrong=lambda run, _: first_of_40(2 - run.training.seed))
    keep(tmp_path / RUNS, few.run(cnn), seeds=1, wrong=lambda _, size: first_of_40(4 if size == 1 else 20))
    for method, products in ((ours, 3_000_000), (cnn, 2_000_000)):
        cost = {"parameters": 1234, "multiplications": products, "megabytes": 1.5}
        Costs(tmp_path).add(few.run(method), {**cost, "milliseconds": {"cpu": {"value": 0.25}}})
    return tmp_path


def test_means_are_over_seeds_and_sizes(few, results) -> None:
    ours, cnn = rows(few, results)
    assert (ours.inside.mean, ours.outside.mean, ours.seeds) == (96.25, 96.25, 2)
    assert (cnn.inside.mean, cnn.outside.mean, cnn.seeds, cnn.wanted) == (90.0, 50.0, 1, 2)
    assert cnn.outside.std is None
    assert ours.better is None
    assert cnn.better is not None
    assert cnn.better.difference == pytest.approx((90 + 16 * 50) / 17 - 96.25)
    assert cnn.better.low < cnn.better.difference < cnn.better.high


def test_the_frontier_is_what_nothing_cheaper_beats() -> None:
    assert frontier([(3, 90), (1, 80), (2, 70), (4, 90), (None, 99), (5, None)]) == [1, 0]


def test_a_method_that_trains_on_other_sizes_is_not_on_the_frontier(few, results) -> None:
    ours, cnn = few.methods
    every = replace(cnn, on={"few": {"data": {"sizes": [0.5, 8.0]}, "training": {"smoothing": 0.1}}})
    keep(results / RUNS, few.run(every), seeds=1, wrong=lambda *_: first_of_40(0))
    cost = {"parameters": 1, "multiplications": 1, "megabytes": 1.0, "milliseconds": {}}
    Costs(results).add(few.run(every), cost)
    found = rows(replace(few, methods=(ours, every)), results)
    assert [row.outside.mean for row in found] == [96.25, 100.0]
    assert [row.frontier for row in found] == [True, False]


def test_text_markdown_and_data_say_the_same(few, results) -> None:
    found = rows(few, results)
    assert [row.frontier for row in found] == [True, True]
    text = table_text(few, found)
    assert "* FovAvg" in text
    assert "96.25 ± 1.77" in text
    assert "0.25 cpu" in text
    assert "Published, cnn: 12.50 % at 0.5 (a paper)" in text
    assert "| * CNN | 1/2 | 90.00 | 50.00 |" in table_text(few, found, markdown=True)
    made = table_json(few, found)
    assert made["methods"][1]["outside"]["mean"] == 50.0
    assert made["methods"][0]["multiplications"] == 3_000_000


def test_without_results_there_are_dashes_and_an_empty_picture(few, tmp_path) -> None:
    found = rows(few, tmp_path)
    assert "0/2" in table_text(few, found)
    said = [text.get_text() for text in draw(few, found).axes[0].texts]
    assert said == ["no results yet"]


def test_the_picture_has_a_point_for_each_method(few, results) -> None:
    figure = draw(few, rows(few, results))
    axes = figure.axes[0]
    assert {text.get_text() for text in axes.texts} == {"FovAvg", "CNN"}
    (steps,) = [line for line in axes.lines if line.get_label() == "frontier"]
    assert steps.get_xydata().tolist() == [[2.0, 50.0], [3.0, 96.25]]
