"""The benchmarks are run by hand and rarely: that they can be is tested here."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NAMES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_finds_what_it_imports(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)
    assert importlib.import_module(f"benchmarks.{name}").__doc__
