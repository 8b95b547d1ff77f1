"""What each ingredient is worth: rows of accuracies that differ in one thing, and their differences.

Law: a row is a mean over the seeds that all of its training sets have; nothing is shown for a row without
runs. What is called clear is so after Holm's correction for all comparisons of the table, see `paired`.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import Any

from scalechannels.paper.comparisons import comparisons_json, over_column, row_runs, sizes_over
from scalechannels.paper.experiments import Experiment
from scalechannels.paper.results import Results
from scalechannels.paper.tables import Mean, mean_of


@dataclass(frozen=True)
class Row:
    """A network with a recipe."""

    title: str
    seeds: int
    parameters: int | None
    by: dict[str, Mean]
    """For each column of the experiment; empty where there are no results."""


def factorial_rows(results: Results, one: Experiment) -> list[Row]:
    """A row for each panel of the experiment."""
    rows = []
    for panel in one.panels:
        seeds = results.by_seed(row_runs(one, panel.title))
        if not seeds:
            rows.append(Row(panel.title, 0, None, {}))
            continue
        by = {}
        for column in one.columns:
            places = sizes_over(seeds[0][0], over_column(column))
            means = ([run.accuracies[size] for run in runs for size in places] for runs in seeds)  # type: ignore
            by[column] = mean_of([fmean(values) for values in means])
        rows.append(Row(panel.title, len(seeds), int(seeds[0][0].values["parameters"]), by))
    return rows


def factorial_json(results: Results, one: Experiment) -> dict[str, Any]:
    return {
        "title": one.title,
        "rows": [
            {
                "row": row.title,
                "seeds": row.seeds,
                "parameters": row.parameters,
                "mean": {column: round(mean.mean, 4) for column, mean in row.by.items()},
                "std": {column: mean.std and round(mean.std, 4) for column, mean in row.by.items()},
            }
            for row in factorial_rows(results, one)
        ],
        "comparisons": comparisons_json(results, one.id),
    }
