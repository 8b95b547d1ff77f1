"""`scalechannels table`."""

import json
from pathlib import Path

import pytest
from helpers.command_line import run
from helpers.two_results import one_line_error, two_results

from scalechannels.paper.results import RUNS


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return two_results(tmp_path)


def test_table_1_as_text_json_and_markdown(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("table", 1, "--results", results) == 0
    text = capsys.readouterr().out
    assert "CNN tr1" in text
    assert "58 runs have no result" in text
    assert run("table", "table1", "--format", "json", "--results", results) == 0
    assert len(json.loads(capsys.readouterr().out)) == 25
    assert run("table", 2, "--format", "markdown", "--results", results) == 0
    assert "| FovAvg | 99.32 |" in capsys.readouterr().out
    assert run("table", "figure5", "--results", results) == 0
    assert "missing: tr1 (2), tr2 (3)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            (9,),
            "there is no table '9'; choose from 1, 2, 3, 4, 5, beyond, scatter, evidence-mnist,",
        ),
        (("figure12",), "'figure12' has no table"),
        ((1, "--results", "."), "'.' holds no results; give another --results, or make some with"),
        ((1, "--results", "nowhere"), "'nowhere' does not exist; give another --results"),
    ],
)
def test_mistakes_end_with_one_line(
    words: tuple, message: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = () if "--results" in words else ("--results", results)
    assert run("table", *words, *given) == 1
    one_line_error(capsys, message)


def test_a_fault_is_told_beside_the_table(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = next((results / RUNS).glob("cnn-*.json"))
    path.write_text("{")
    assert run("table", 1, "--results", results) == 0
    said = capsys.readouterr()
    assert f"not used: {path} is damaged" in said.err
    assert "59 runs have no result" in said.out
