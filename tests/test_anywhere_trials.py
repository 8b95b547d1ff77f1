"""Trials of the recipe for objects anywhere: each is a run, and the committed lines are of these."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
FILES = ("anywhere_trials", "anywhere_kept")
LINES = [
    json.loads(line)
    for name in FILES
    for line in (ROOT / f"benchmarks/results/{name}.jsonl").read_text().splitlines()
]


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.anywhere_trials")


def test_every_trial_is_a_run_that_differs_from_all_others(trials: Any) -> None:
    names = [*trials.TRIALS, *trials.OTHERS]
    runs = [trials.config_of(name, "lower third", 0).resolve("cuda") for name in names]
    assert len({run.name for run in runs}) == len(runs)
    assert {run.network.look for run in runs[: len(trials.TRIALS)]} == {"everywhere"}
    assert {run.data for run in runs} == {runs[0].data}


def test_weights_of_each_have_a_file_with_a_plain_name(trials: Any) -> None:
    names = [trials.file_of(Path(), name, train).name for name in trials.TRIALS for train in trials.PLACED]
    assert len(set(names)) == len(names)
    assert all(name.replace("-", "").replace(".", "").isalnum() for name in names)


def test_the_committed_lines_are_of_these_trials(trials: Any) -> None:
    assert LINES
    for line in LINES:
        assert line["options"] == {**trials.TRIALS, **trials.OTHERS, **trials.EARLIER}[line["trial"]]
        own = line["tested"]["own"]
        assert len(own["accuracy"]) == len(line["sizes"])
        for place, share in enumerate(own["accuracy"]) if "scales_right" in own else ():
            right, wrong = (sum(own[name][place]) for name in ("scales_right", "scales_wrong"))
            assert share == pytest.approx(100 * right / (right + wrong), abs=0.01)
