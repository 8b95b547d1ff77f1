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


def test_a_device_that_is_not_there_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(ROOT)
    measure = importlib.import_module("benchmarks.measure")
    assert measure.options(None).parse_args(["--device", "cpu"]).device == "cpu"
    for name in ("cuda:99", "abacus", "meta"):
        with pytest.raises(SystemExit) as ended:
            measure.options(None).parse_args(["--device", name])
        assert ended.value.code == 2
        last = capsys.readouterr().err.splitlines()[-1]
        assert f"argument --device: {name} cannot be computed on here: " in last
