"""`scalechannels figure`."""

from pathlib import Path

import pytest
from helpers.command_line import run
from helpers.two_results import one_line_error, two_results


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return two_results(tmp_path)


def test_figures_are_written(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("figure", 9, "batch-norm", "--out", tmp_path / "out", "--results", results) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "batch-norm.png",
        "batch-norm.svg",
        "figure9.png",
        "figure9.svg",
    ]
    assert "figure9.png" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((1,), "there is no figure '1'; choose from 2, 3"),
        ((99,), "15, batch-norm, single-channel, pretrained, beyond-sizes, beyond-few, beyond-cifar"),
        (("table1",), "'table1' is a table, not a figure: scalechannels table 1"),
    ],
)
def test_mistakes_end_with_one_line(
    words: tuple, message: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = () if "--results" in words else ("--results", results)
    assert run("figure", *words, *given) == 1
    one_line_error(capsys, message)
