"""Objects anywhere: what is inside and outside, how errors are averaged, and that missing runs are dashes."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
import torch
from helpers.made_up import keep, made_up, write

from scalechannels.compare.cost import multiplications
from scalechannels.data.anywhere import anywhere
from scalechannels.data.sizes import CIFAR_SIZES
from scalechannels.data.strokes import strokes
from scalechannels.paper.experiments import chosen, experiment
from scalechannels.paper.figures.draw import draw
from scalechannels.paper.placed import RING, RINGS_AT, _offsets, kind_of, placed_rows, ring_means
from scalechannels.paper.recipes import PLACED, placed, seeded
from scalechannels.paper.results import RUNS, Results
from scalechannels.paper.table_text import table_text
from scalechannels.training.build import build_network
from scalechannels.training.config import RunConfig

MOVED, CENTRED = "anywhere-translated", "anywhere-centred"


def run_of(label: str, train: str, id: str = MOVED) -> RunConfig:
    sizes = PLACED[train]
    (config,) = {
        curve.configs[0]
        for panel in experiment(id).panels
        for curve in panel.curves
        if curve.label == label and curve.configs[0].data.sizes == sizes
    }
    return config


def test_networks_cost_the_same_but_for_swmax(one_thread: None) -> None:
    panel = experiment(MOVED).panels[0]
    costs = {
        curve.label: multiplications(build_network(curve.configs[0].resolve()), torch.zeros(1, 1, 64, 64))
        for curve in panel.curves
    }
    swmax, wanted = costs.pop("SWMax"), costs["Everywhere, max"]
    assert all(abs(cost / wanted - 1) < 0.11 for cost in costs.values())
    assert swmax < 0.5 * wanted


def test_thirds_have_three_test_sizes_each_and_runs_are_kinds() -> None:
    for id in chosen(["anywhere"]):
        runs = [curve.configs[0] for panel in id.panels for curve in panel.curves]
        assert {kind_of(run) for run in runs} == {"one size", "thirds", "all sizes"}
        assert {run.data.places for run in runs} == {"centre" if id.id == CENTRED else "anywhere"}
        assert all((run.data.distinct, run.data.side, run.data.samples) == (500, 64, 8_000) for run in runs)
    for third in ("lower third", "middle third", "upper third"):
        low, high = PLACED[third]
        assert sum(low <= size <= high for size in CIFAR_SIZES) == 3
    assert len({run for one in chosen(["anywhere"]) for run in one.runs()}) == (8 + 5) * 5 * 3


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Two seeds of one network on all thirds and on one size; accuracies and errors that depend on both."""
    folder = tmp_path / RUNS
    for place, train in enumerate(("lower third", "middle third", "upper third", "size 1")):
        for seed in range(2):
            run = seeded(run_of("Everywhere, max", train), seed)
            low, high = PLACED[train][0], PLACED[train][-1]
            result = made_up(run, lambda size, low=low, high=high: 98.0 if low <= size <= high else 90.0)
            for entry in result.values["evaluation"]["sizes"]:
                entry["accuracy"] -= place + seed
                entry |= {
                    "place_error": 1.0 + place,
                    "evidence_error": place / 2,
                    "scale_error": 0.1,
                    "scale_offset": entry["size"] / 10,
                }
            write(folder, result)
    return Results(folder)


def test_inside_and_outside_are_means_over_runs_then_seeds(results: Results) -> None:
    rows = {(row.network, row.trained): row for row in placed_rows(results, experiment(MOVED))}
    thirds, one, every = (rows["Everywhere, max", kind] for kind in ("thirds", "one size", "all sizes"))
    assert thirds.inside is not None
    assert thirds.outside is not None
    assert thirds.inside.mean == pytest.approx(98 - fmean([0, 1, 2]) - 0.5)
    assert thirds.outside.mean == pytest.approx(90 - fmean([0, 1, 2]) - 0.5)
    assert (thirds.inside.seeds, thirds.missing, one.missing, every.missing) == (2, 3, 1, 3)
    assert thirds.place.mean == pytest.approx(2.0)  # type: ignore[union-attr]
    assert thirds.evidence.mean == pytest.approx(0.5)  # type: ignore[union-attr]
    assert thirds.drift.mean == pytest.approx(0.15)  # type: ignore[union-attr]
    assert one.inside.mean == pytest.approx(98 - 3 - 0.5)  # type: ignore[union-attr]
    assert (every.seeds, every.inside, every.place) == (0, None, None)


def test_the_table_has_a_dash_for_what_is_missing(results: Results) -> None:
    text = table_text(results, "anywhere")
    line = next(line for line in text.splitlines() if "Everywhere, max" in line and "thirds" in line)
    assert "96.50 ± 0.71" in line
    empty = next(line for line in text.splitlines() if "SWMax" in line)
    assert empty.split()[-7:] == ["–"] * 7
    assert "112 runs have no result: scalechannels reproduce anywhere-translated" in text
    assert experiment(CENTRED).title in text
    first, second = json.loads(table_text(results, "anywhere", "json"))
    assert first["rows"][1]["inside"]["mean"] == pytest.approx(96.5)
    assert len(second["rows"]) == 5 * 3
    assert "| Everywhere, max | thirds | 2 |" in table_text(results, MOVED, "markdown")


def test_rings_are_about_the_places_that_the_test_set_drew(tmp_path: Path) -> None:
    run = run_of("Everywhere, max", "size 1")
    count = 400
    off = _offsets(count, 64, run.data.seed)
    made = anywhere(strokes(count, 0), count, RINGS_AT, run.data.seed, side=64)
    assert np.array_equal((made.places - 31.5).abs().amax(1).numpy(), off)  # type: ignore[operator]
    keep(tmp_path / RUNS, run, seeds=2, wrong=lambda config, size: off >= 9)
    (curve,) = (one for one in experiment(MOVED).panels[-1].curves if one.label == "Everywhere, max")
    means = {place: mean.mean for place, mean in ring_means(Results(tmp_path / RUNS), curve).items()}
    assert means == {RING * (k + 0.5): 100.0 if k < 3 else 0.0 for k in range(7)}
    figure = draw(MOVED, Results(tmp_path / RUNS))
    assert [axes.get_xlabel() for axes in figure.axes].count("pixels off the centre") == 1


def test_a_figure_without_results_says_so(tmp_path: Path) -> None:
    figure = draw(CENTRED, Results(tmp_path / RUNS))
    assert sum("no results yet" in text.get_text() for axes in figure.axes for text in axes.texts) == 5


def test_a_recipe_names_both_kinds_of_places() -> None:
    run = placed("fovlse", "size 1", "centre", look="everywhere", over_places="mean")
    assert (run.data.places, run.network.places, run.data.redraw) == ("centre", "mean", False)
    assert placed("fovlse", "size 1").data.redraw
    assert placed("swmax", "size 1").training.batch == 16
