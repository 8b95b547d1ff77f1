"""A result is read only where it is whole and of the run that its name promises, and is written compactly."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from helpers.made_up import made_up, write

from scalechannels.paper.results import RUNS, Results, result_text, results_folder, store_result
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig
from scalechannels.training.errors import pack_errors

RUN = RunConfig(
    DataConfig(samples=100),
    NetworkConfig("fovavg", low=1, high=2, ratio=2),
    TrainingConfig(epochs=1, batch=20),
)
OTHER = replace(RUN, network=replace(RUN.network, name="fovmax"))
ONE_WRONG = pack_errors(torch.arange(10) == 3)
COMMITTED = Path(__file__).parents[2] / "results"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v["evaluation"]["sizes"].pop(3), "lacks the test sizes"),
        (lambda v: v["evaluation"].update(split="validation"), "validation split"),
        (lambda v: v["evaluation"]["sizes"][0].update(accuracy=101.0), "no percentages"),
        (lambda v: v["evaluation"]["sizes"][0].update(accuracy=float("nan")), "no percentages"),
        (lambda v: v["history"][-1].update(epoch=7), "ends after 7 of 1 epochs"),
        (lambda v: v.update(history=[]), "damaged: IndexError"),
        (lambda v: v.pop("seconds"), "damaged: KeyError: 'seconds'"),
        (lambda v: v["evaluation"]["sizes"][2].update(errors="eNo="), "damaged at size 0.707"),
        (lambda v: v["evaluation"]["sizes"][2].update(errors=7), "damaged at size 0.707"),
        (lambda v: v["evaluation"]["sizes"][-1].update(errors=ONE_WRONG), "1 of 10 images"),
        (lambda v: v["evaluation"]["sizes"][0].update(errors=ONE_WRONG, images=20), "20"),
        (lambda v: v["config"]["training"].update(seed=5), "promises fovavg-strokes-tr1-seed0"),
        (lambda v: v["config"]["training"].update(unheard=5), "unknown option training.unheard"),
    ],
)
def test_what_is_wrong_with_a_result_is_said(tmp_path: Path, change, message: str) -> None:
    result = made_up(RUN, device="cpu")
    change(result.values)
    write(tmp_path, result)
    path = tmp_path / f"{RUN.resolve('cpu').name}.json"
    results = Results(tmp_path)
    assert results.find(RUN) is None
    (fault,) = results.faults.values()
    assert str(path) in fault
    assert message in fault


def test_errors_are_read_where_they_were_kept(tmp_path: Path) -> None:
    result = made_up(RUN, device="cpu", accuracy=lambda size: 90.0)
    first, second, third = result.values["evaluation"]["sizes"][:3]
    first["errors"], second["errors"], third["errors"] = ONE_WRONG, ONE_WRONG, None
    second["accuracy"] = 90.00000000000001  # as a mean over images may be rounded
    write(tmp_path, result)
    found = Results(tmp_path).find(RUN)
    assert found is not None
    assert list(found.errors) == [first["size"], second["size"]]
    assert found.errors[first["size"]].nonzero()[0].tolist() == [3]
    write(tmp_path, made_up(OTHER, device="cpu"))
    before = Results(tmp_path).find(OTHER)
    assert before is not None
    assert before.errors == {}


def test_of_a_long_history_a_hundred_epochs_are_kept(tmp_path: Path) -> None:
    values = {"history": [{"epoch": n} for n in range(1, 2085)], "evaluation": {"sizes": []}}
    store_result(tmp_path / "a.json", values)
    kept = [entry["epoch"] for entry in json.loads((tmp_path / "a.json").read_text())["history"]]
    assert len(kept) == 100
    assert kept[-1] == 2084
    assert kept == sorted(kept)


def test_a_result_is_stored_without_what_no_table_reads(tmp_path: Path) -> None:
    values = made_up(RUN, device="cpu", ranges=((1.0, 4.0),)).values
    before = json.loads(json.dumps(values))
    store_result(tmp_path / "a.json", values)
    assert values == before  # what was given is left as it was
    for entry in before["evaluation"]["sizes"]:
        del entry["per_class"], entry["confusion"]
    assert json.loads((tmp_path / "a.json").read_text()) == before


def test_a_result_has_a_line_for_each_section_and_each_test_size() -> None:
    values = made_up(RUN, device="cpu").values
    values["history"] *= 3
    lines = result_text(values).splitlines()
    assert sum(line.startswith('   {"size": ') for line in lines) == 17
    begins = [line.split(":")[0] for line in lines if ":" in line and not line.startswith("   ")]
    sections = ["name", "config", "classes", "parameters", "environment", "seconds", "history", "evaluation"]
    assert [begin for begin in begins if begin.startswith(' "')] == [f' "{name}"' for name in sections]
    assert [begin for begin in begins if begin.startswith("  ")] == [
        f'  "{name}"' for name in ("data", "network", "training", "split", "sizes")
    ]


def test_a_remark_does_not_hinder_reading(tmp_path: Path) -> None:
    result = made_up(RUN, device="cpu")
    result.values["remark"] = "Stopped by a time limit and resumed."
    write(tmp_path, result)
    results = Results(tmp_path)
    assert results.find(RUN) is not None, results.faults


def test_the_committed_runs_are_as_they_would_be_stored() -> None:
    paths = list((COMMITTED / "runs").glob("*"))
    assert len(paths) >= 320
    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert text == result_text(json.loads(text)), path.name


@pytest.mark.parametrize("name", ["averages", "batch_size", "beyond", "deviations", "earlier"])
def test_the_other_runs_are_one_to_a_line_with_a_remark(name: str) -> None:
    runs = [json.loads(line) for line in (COMMITTED / f"{name}.jsonl").read_text("utf-8").splitlines()]
    assert len(runs) >= 18
    for run in runs:
        assert run["name"].startswith(f"{run['config']['network']['name']}-{run['config']['data']['name']}-")
        assert run["remark"].endswith(".")
        assert run["environment"]["commit"]
        assert all(0 <= entry["accuracy"] <= 100 for entry in run["evaluation"]["sizes"])
    assert [run["name"] for run in runs] == sorted(run["name"] for run in runs)


def test_results_are_looked_for_here_and_then_in_the_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert results_folder() == COMMITTED
    (tmp_path / "results" / RUNS).mkdir(parents=True)
    assert results_folder() == Path("results")
    assert results_folder("~/x") == Path.home() / "x"
