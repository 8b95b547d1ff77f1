"""A folder with two made-up results, for the commands of the paper; and how their errors are checked."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.made_up import made_up, write

from scalechannels.paper.recipes import main
from scalechannels.paper.results import RUNS


def two_results(folder: Path) -> Path:
    """The CNN trained on size 1, and FovMax trained on size 2."""
    write(folder / "results" / RUNS, made_up(main("cnn", "tr1")), made_up(main("fovmax", "tr2")))
    return folder / "results"


def one_line_error(capsys: pytest.CaptureFixture[str], message: str) -> None:
    said = capsys.readouterr().err
    assert message in said
    assert said.startswith("error: ")
    assert said.count("\n") == 1
