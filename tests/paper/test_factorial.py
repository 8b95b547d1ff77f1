"""Rows of accuracies and their differences: what each ingredient is worth."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import pytest
from helpers.made_up import keep

from scalechannels.data.sizes import CIFAR_SIZES
from scalechannels.paper.comparisons import compare, comparisons, row_runs
from scalechannels.paper.experiments import chosen, experiment
from scalechannels.paper.factorial import factorial_rows
from scalechannels.paper.recipes import seeded
from scalechannels.paper.results import RUNS, Results
from scalechannels.paper.table_text import table_text

EVIDENCE = ("evidence-mnist", "evidence-cifar", "evidence-cifar-paper")


@pytest.fixture
def results(tmp_path: Path) -> Results:
    folder = tmp_path / RUNS
    for title in ("FovLSE", "FovAvg", "FovLSE, averaged"):
        keep(folder, *row_runs(experiment("evidence-mnist"), title))
    keep(folder, *row_runs(experiment("evidence-cifar"), "CNN"), seeds=2)
    return Results(folder)


@pytest.mark.parametrize("id", EVIDENCE)
def test_rows_have_names_of_their_own_and_pairs_name_rows(id: str) -> None:
    titles = [panel.title for panel in experiment(id).panels]
    assert len(set(titles)) == len(titles)
    for row, others in experiment(id).pairs.items():
        assert {row, *others} <= set(titles)


@pytest.mark.parametrize("id", EVIDENCE)
def test_rows_are_different_runs_unless_they_say_which_size(id: str) -> None:
    runs = {panel.title: frozenset(row_runs(experiment(id), panel.title)) for panel in experiment(id).panels}
    assert len(set(runs.values())) == len(runs)


def test_a_row_is_the_mean_over_training_sets_and_sizes(results: Results) -> None:
    rows = {row.title: row for row in factorial_rows(results, experiment("evidence-mnist"))}
    runs = row_runs(experiment("evidence-mnist"), "FovLSE")
    found = [[results.find(seeded(run, seed)) for run in runs] for seed in range(3)]
    by_hand = [fmean(one.accuracies[size] for one in seed for size in one.accuracies) for seed in found]
    assert rows["FovLSE"].by["[1/2,8]"].mean == pytest.approx(fmean(by_hand))
    assert (rows["FovLSE"].seeds, rows["FovMax"].seeds, rows["FovMax"].by) == (3, 0, {})
    cifar = {row.title: row for row in factorial_rows(results, experiment("evidence-cifar"))}
    one = [results.find(seeded(row_runs(experiment("evidence-cifar"), "CNN")[0], seed)) for seed in range(2)]
    assert cifar["CNN"].by["[1/2,2]"].mean == pytest.approx(
        fmean(result.accuracies[size] for result in one for size in CIFAR_SIZES)
    )
    assert cifar["CNN"].by["size 1/2"].mean == pytest.approx(fmean(result.accuracies[0.5] for result in one))


def test_differences_are_those_of_the_pairs(results: Results) -> None:
    found = {(one.network, one.other): one for one in comparisons(results, "evidence-mnist")}
    one = experiment("evidence-mnist")
    runs = [row_runs(one, title) for title in ("FovLSE, averaged", "FovLSE")]
    assert found["FovLSE, averaged", "FovLSE"].by["[1,4]"] == compare(results, *runs, "[1,4]")
    assert found["FovLSE", "FovMax"].by == {}


def test_the_command_prints_every_table(results: Results) -> None:
    assert [one.id for one in chosen(["evidence"])] == list(EVIDENCE)
    text = table_text(results, "evidence")
    for id in EVIDENCE:
        assert experiment(id).title in text
        assert table_text(results, id) in text
    first, second, _ = json.loads(table_text(results, "evidence", "json"))
    assert [row["row"] for row in first["rows"]] == [
        panel.title for panel in experiment("evidence-mnist").panels
    ]
    assert {one["data"] for one in second["comparisons"]} == {"cifar10"}
    assert "| FovLSE, averaged |" in table_text(results, "evidence-mnist", "markdown")
