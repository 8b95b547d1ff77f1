"""Runs that are done and were tested on other sizes or another split: tested anew, not trained again."""

from dataclasses import replace

import pytest
from helpers.tiny_runs import SIZES, assert_same, tiny, trained, weights

from scalechannels.training import fit as fit_module
from scalechannels.training.config.data_sets import DATA_SETS
from scalechannels.training.fit import fit
from scalechannels.training.sweep import RunsFailedError, sweep


@pytest.mark.parametrize(
    ("name", "split", "sizes"),
    [
        ("fovlse", "test", (0.5, 4.0)),
        ("cnn", "validation", SIZES),
        ("swmax", "test", (2.0, (1.0, 2.0))),
    ],
)
def test_a_done_run_is_tested_anew_where_other_sizes_are_asked_for(
    name, split, sizes, tmp_path, monkeypatch
) -> None:
    config = tiny(name, samples=20, epochs=1)
    run = trained(config, tmp_path / "first")
    old, learnt = run.result(), weights(run)
    (whole,) = fit([config], tmp_path / "whole", device="cpu", split=split, sizes=sizes)
    with monkeypatch.context() as patch:
        patch.setattr(fit_module, "Group", None)  # nothing may be trained
        assert fit([config], tmp_path / "first", device="cpu", split=split, sizes=sizes) == [run]
    new = run.result()
    assert new["evaluation"] == whole.result()["evaluation"]
    assert new["evaluation"] != old["evaluation"]
    for kept in ("name", "config", "classes", "parameters", "environment", "history"):
        assert new[kept] == old[kept]
    assert new["seconds"]["training"] == old["seconds"]["training"]
    assert_same(learnt, weights(run))


def test_some_of_the_sizes_that_were_tested_are_not_tested_anew(tmp_path) -> None:
    run = trained(tiny("fovlse", samples=20, epochs=1), tmp_path)
    before = (run.folder / "result.json").read_bytes()
    for sizes in (SIZES[:1], SIZES[::-1]):
        fit([run.config], tmp_path, device="cpu", sizes=sizes)
        assert (run.folder / "result.json").read_bytes() == before


def test_without_sizes_a_done_run_has_those_of_its_data_and_keeps_further_ones(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(DATA_SETS, "strokes", replace(DATA_SETS["strokes"], test_sizes=(0.5, 1.0)))
    run = trained(tiny("fovlse", samples=20, epochs=1), tmp_path)  # at 1 and 2
    again = {"device": "cpu", "together": False}
    fit([run.config], tmp_path, **again)
    assert [entry["size"] for entry in run.result()["evaluation"]["sizes"]] == [0.5, 1.0]
    fit([run.config], tmp_path, sizes=(1.0, 0.5, (1.0, 2.0)), **again)
    before = (run.folder / "result.json").stat().st_mtime_ns
    fit([run.config], tmp_path, **again)
    assert (run.folder / "result.json").stat().st_mtime_ns == before


def test_a_test_that_fails_leaves_the_old_result(tmp_path) -> None:
    config = tiny("fovlse", samples=20, epochs=1)
    run = trained(config, tmp_path)
    before = (run.folder / "result.json").read_bytes()
    (run.folder / "model.safetensors").unlink()
    said = "was tested on the test split at the sizes 1, 2; testing on the validation split at the sizes 3"
    with pytest.raises(ValueError, match=said + " needs the weights"):
        fit([config], tmp_path, device="cpu", split="validation", sizes=(3.0,))
    with pytest.raises(RunsFailedError, match=said):
        sweep([config], tmp_path, device="cpu", split="validation", sizes=(3.0,), report=lambda _: None)
    assert (run.folder / "result.json").read_bytes() == before
    assert trained(config, tmp_path) == run  # what was tested is still to be had
    (run.folder / "result.json").write_text("{}")
    with pytest.raises(ValueError, match=r"result\.json' is not a run's result"):
        trained(config, tmp_path)
