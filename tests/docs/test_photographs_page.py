"""docs/photographs.md: its Python code runs, and its tables are those of the designs and of the benchmark."""

import importlib
import re
from pathlib import Path

import pytest

from scalechannels.data.emoji_drawings import DESIGNS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "photographs.md").read_text(encoding="utf-8")


def test_the_python_code_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict = {}
    exec(code, names)
    assert names["logits"].shape == (2, 7)
    groups = names["optimiser"].param_groups
    assert sum(len(group["params"]) for group in groups) == len(list(names["network"].parameters()))


def test_each_design_is_listed_with_its_licence_and_use() -> None:
    for about in DESIGNS.values():
        package = about["package"].rpartition("@")[0]
        (row,) = [line for line in PAGE.splitlines() if f"`{package}`" in line]
        licence = about["licence"].replace("CC-BY", "CC BY").replace("-4.0", " 4.0").replace("-2.0", " 2.0")
        assert f"| {licence} | {about['role']}" in row


def test_each_row_of_the_benchmark_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)
    table = PAGE.split("| row | looks at |")[1].split("\n\n")[0]
    named = [
        name.strip() for line in table.splitlines()[2:] for name in re.split(", (?!all)", line.split("|")[1])
    ]
    assert named == list(importlib.import_module("benchmarks.emoji").ROWS)
