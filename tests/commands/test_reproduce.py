"""`scalechannels reproduce`: what it lists; what it trains is in tests/paper/test_reproduce.py."""

from pathlib import Path

import pytest
from helpers.command_line import run
from helpers.two_results import one_line_error, two_results


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return two_results(tmp_path)


def test_what_is_missing_can_be_listed(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("reproduce", "table1", "--list", "--only", "cnn", "--results", results) == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert len(lines) == 11
    assert all(line.startswith("cnn-mnist-") and line.endswith(" table1") for line in lines)
    assert "missing runs: 11" in said.err


def test_a_damaged_result_counts_as_missing_in_the_list(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = next((results / "runs").glob("*.json"))
    damaged.write_text("{")
    assert run("reproduce", "table1", "--list", "--results", results) == 0
    said = capsys.readouterr().err
    assert f"{damaged} is damaged" in said
    assert "; it counts as missing\n" in said
    assert "run again" not in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("figure99", "--list"), "there is no experiment 'figure99'; choose from table1, "),
        (("table1", "--list", "--seeds", 0), "--seeds must be at least 1; got '0'"),
    ],
)
def test_mistakes_end_with_one_line(
    words: tuple, message: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = () if "--results" in words else ("--results", results)
    assert run("reproduce", *words, *given) == 1
    one_line_error(capsys, message)
