"""`scalechannels compare`: what is listed, trained, printed; a method of one's own by one command."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.command_line import run
from helpers.tiny_comparison import TINY

from scalechannels.training import datasets, group
from scalechannels.training.config.data_sets import DATA_SETS

PAGE = Path(__file__).parents[2] / "docs" / "add_a_method.md"
GIVEN = ("--file", "tiny.toml", "--results", "results", "--device", "cpu")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets, "STROKES_TEST", 20)
    monkeypatch.setitem(DATA_SETS, "strokes", replace(DATA_SETS["strokes"], test_sizes=(0.5, 1.0)))
    (tmp_path / "tiny.toml").write_text(TINY)
    (tmp_path / "results").mkdir()
    return tmp_path


def test_a_method_of_ones_own_is_in_the_table_by_one_command(here, capsys, monkeypatch) -> None:
    """The template of the page, saved and run as the page says."""
    (source,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(source.splitlines()) <= 33
    (here / "my_method.py").write_text(source)
    own = ("--method", "my_method.py:MyMethod")
    assert run("compare", "few", *own, *GIVEN, "--plot", "few.png") == 0
    said = capsys.readouterr()
    table = [line for line in said.out.splitlines() if "2/2" in line]
    assert len(table) == 3
    assert any("MyMethod" in line for line in table)
    assert (here / "few.png").stat().st_size > 5000
    assert len(list((here / "results" / "runs").glob("MyMethod-strokes-*.json"))) == 2
    monkeypatch.setattr(group.Group, "train", None)  # nothing may be trained again
    assert run("compare", "few", *own, *GIVEN, "--format", "json") == 0
    (made,) = json.loads(capsys.readouterr().out)
    mine = made["methods"][-1]
    assert (mine["method"], mine["seeds"]) == ("my_method.py:MyMethod", 2)
    assert mine["parameters"] == 1 * 16 * 25 + 16 + 32 + 16 * 16 * 25 + 16 + 32 + 16 * 10 + 10
    assert mine["multiplications"] == 54**2 * 16 * 25 + 25**2 * 16 * 16 * 25 + 160
    assert mine["better"][1] <= mine["better"][0] <= mine["better"][2]


def test_a_protocol_that_cannot_be_run_is_reported_the_others_are_done_and_listed(capsys) -> None:
    assert run("compare", *GIVEN, "--only", "cnn", "--seeds", 1) == 1
    said = capsys.readouterr()
    assert "error: 1 failed:\n  later: data.name must be one of" in said.err
    assert re.search(r"CNN +1/1", said.out)
    assert run("compare", "--list", *GIVEN) == 0
    said = capsys.readouterr()
    assert re.search(r"cnn +CNN +1 run, 1 missing", said.out)
    assert re.search(r"fovavg +FovAvg +0 runs, 2 missing", said.out)
    assert "cannot be run here: data.name must be one of" in said.out
    assert said.err == "missing runs: 3\n"


def test_without_training_there_is_an_empty_table(capsys) -> None:
    assert run("compare", "few", *GIVEN, "--no-train") == 0
    assert re.search(r"CNN +0/2 +–", capsys.readouterr().out)


@pytest.mark.slow
def test_every_method_gets_the_same_tries_once(here, capsys, monkeypatch) -> None:
    assert run("compare", "few", "--tune", *GIVEN) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    kept = [json.loads(line) for line in (here / "results" / "tuning.jsonl").read_text().splitlines()]
    assert [(one["method"], one["rate"]) for one in kept] == [
        ("fovavg", 1e-3),
        ("fovavg", 1e-2),
        ("cnn", 1e-3),
        ("cnn", 1e-2),
    ]
    with (here / "results" / "tuning.jsonl").open("a") as file:
        file.write('{"run": "cut')  # by a kill
    monkeypatch.setattr(group.Group, "train", None)  # nothing may be trained again
    assert run("compare", "few", "--tune", *GIVEN, "--out", "elsewhere") == 0
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("mnits",), "there is no protocol 'mnits'; choose from few, later"),
        (("few", "--method", "mine"), "--method must be path/to/file.py:Class"),
        (("few", "--method", "mine.py:Mine", "--list"), "there is no file 'mine.py'"),
        (("few", "--only", "sesn"), "--only must name methods, among cnn, fovavg; got 'sesn'"),
        (("few", "--rate", 1), "--rate is for your own methods"),
    ],
)
def test_mistakes_end_with_one_line(words, message: str, capsys) -> None:
    assert run("compare", *words, *GIVEN) == 1
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
