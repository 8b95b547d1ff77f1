"""Runs on a machine with little installed: what is kept of them, what is left out, and what is collected."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.bare_python import run_bare
from helpers.made_up import made_up
from helpers.tiny_runs import tiny

from scalechannels.paper.comparisons import row_runs
from scalechannels.paper.experiments import experiment
from scalechannels.paper.recipes import seeded
from scalechannels.paper.results import RUNS, Results
from scalechannels.training.config import RunConfig

ROOT = Path(__file__).parent.parent
EVERY = "from benchmarks.experiment_runs import main; main(sys.argv[1:])"


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT)
    module = importlib.import_module("benchmarks.experiment_runs")
    (tmp_path / RUNS).mkdir()
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    return module


def runs() -> tuple[RunConfig, ...]:
    return experiment("anywhere-centred").runs(2)


def test_what_is_done_is_left_out_and_lower_seeds_come_first(
    runner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, begun = tmp_path / "runs.jsonl", []
    done = made_up(runs()[0], device="cpu").values
    output.write_text(json.dumps(done) + "\n" + json.dumps(done)[:50])  # a kill cut off the second line
    monkeypatch.setattr(runner, "complete", lambda part, *_: begun.extend(part))
    runner.main(["anywhere-centred", "--output", str(output), "--seeds", "2", "--device", "cpu"])
    assert set(begun) == set(runs()) - {runs()[0]}
    seeds = [run.training.seed for run in begun]
    assert seeds == sorted(seeds)
    runner.Line(None, tmp_path, output).finish(made_up(runs()[1], device="cpu").values)
    assert len(runner.written(output)) == 2


def test_no_run_is_begun_after_the_time_is_over(
    runner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "complete", lambda *_: pytest.fail("it was begun"))
    words = ["anywhere-centred", "--output", str(tmp_path / "runs.jsonl"), "--minutes", "-1"]
    runner.main([*words, "--seeds", "1", "--device", "cpu"])
    assert "stopped after -1 minutes; 25 groups are left" in capsys.readouterr().out


def test_lines_become_results_that_tables_read(runner: Any, tmp_path: Path) -> None:
    output = tmp_path / "runs.jsonl"
    for run in runs()[:2]:
        runner.Line(None, tmp_path, output).finish(made_up(run).values)
    runner.main(["--collect", str(output)])
    assert all(Results(tmp_path / RUNS).find(run) for run in runs()[:2])


def test_runs_of_one_shape_are_each_trained(runner: Any, tmp_path: Path) -> None:
    output, configs = tmp_path / "runs.jsonl", [seeded(tiny(samples=40), seed) for seed in range(2)]
    runner.complete(configs, torch.device("cpu"), None, output, (1.0,))
    losses = {name: result["history"][-1]["loss"] for name, result in runner.written(output).items()}
    assert list(losses) == [config.resolve().name for config in configs]
    assert len(set(losses.values())) == 2
    late = tmp_path / "late.jsonl"
    assert runner.complete(configs, torch.device("cpu"), None, late, (1.0,), until=0.0) == 2
    assert not late.exists()


def test_networks_are_tested_outside_before_they_are_forgotten(
    runner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = importlib.import_module("benchmarks.outside")
    digits = torch.rand(30, 1, 112, 112), torch.arange(30) % 10
    monkeypatch.setattr(outside, "tests", lambda *_: iter([("wide", [(4.0, lambda: digits)])]))
    file, config = tmp_path / "outside.jsonl", tiny(samples=40)
    for _ in range(2):  # the second time it is known
        runner.complete([config], torch.device("cpu"), None, tmp_path / "runs.jsonl", (1.0,), file)
    (line,) = map(json.loads, file.read_text().splitlines())
    assert (line["name"], line["test"]) == (config.resolve().name, "wide")
    assert [entry["size"] for entry in line["evaluation"]["sizes"]] == [4.0]


def test_runs_with_a_result_are_trained_again_for_tests_outside(
    runner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[RunConfig] = []
    monkeypatch.setattr(runner, "complete", lambda part, *_: begun.extend(part))
    row = "FovLSE, whole"
    (known,) = row_runs(experiment("evidence-cifar"), row)
    runner.Line(None, tmp_path, tmp_path / "runs.jsonl").finish(made_up(known).values)
    runner.main(["--collect", str(tmp_path / "runs.jsonl")])
    words = ["evidence-cifar", "--rows", row, "--outside", str(tmp_path / "outside.jsonl"), "--device", "cpu"]
    runner.main([*words, "--output", str(tmp_path / "more.jsonl")])
    assert begun == [seeded(known, seed) for seed in (1, 2)]
    begun.clear()
    runner.main([*words, "--again"])
    assert begun == [seeded(known, seed) for seed in (0, 1, 2)]
    with pytest.raises(ValueError, match="FovLSE, hole: no such row in evidence-cifar"):
        runner.main(["evidence-cifar", "--rows", "FovLSE, hole", "--output", "runs.jsonl"])


@pytest.mark.slow
def test_every_network_is_trained_where_packages_are_missing() -> None:
    said = run_bare(EVERY, "anywhere-translated", "--trial", "--device", "cpu")
    assert said.count("% over all sizes") == 8
    assert said.endswith("all of these runs are done\n")
