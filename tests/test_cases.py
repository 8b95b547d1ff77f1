"""Measurements of many cases: what is done is not done again, and what is stopped goes on."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.cases import measure_cases
from scalechannels.files import json_lines

CASES = [{"seed": seed, "kind": kind} for seed in (0, 1) for kind in ("crops", "frames")]


def test_a_case_is_measured_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, asked = tmp_path / "cases.jsonl", []

    def measured(case: dict[str, Any], scratch: Path) -> dict[str, Any]:
        assert scratch.is_dir()
        asked.append(case)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return {**case, "accuracy": 10 * len(asked)}

    with pytest.raises(KeyboardInterrupt):
        measure_cases(CASES, path, 1, measured, lambda one: one["accuracy"])
    measure_cases(CASES, path, 1, measured, lambda one: one["accuracy"])
    assert asked == [*CASES[:3], *CASES[2:]]
    assert [line["accuracy"] for line in json_lines(path)] == [10, 20, 40, 50]
    assert capsys.readouterr().out.splitlines()[0] == "0 crops 10"


def test_none_is_begun_when_the_time_is_over(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    measure_cases(CASES, path, -1, lambda case, _: case, str)
    assert not path.exists()
