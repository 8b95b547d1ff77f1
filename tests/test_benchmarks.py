"""The benchmarks are run by hand and rarely: that they can be is tested here."""

import importlib
import json
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


@pytest.mark.slow
@pytest.mark.usefixtures("few_textures")
def test_a_finished_run_on_emoji_is_a_line_and_is_not_run_again(
    emoji_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(ROOT)
    emoji = importlib.import_module("benchmarks.emoji")
    out = tmp_path / "emoji.jsonl"
    words = ["--root", str(emoji_root), "--classes", "4", "--epochs", "1", "--seeds", "0", "--sizes", "1"]
    words += ["--rows", "scratch fovlse", "--out", str(out)]
    monkeypatch.setattr("sys.argv", ["emoji", *words])
    emoji.main()
    emoji.main()
    (line,) = out.read_text().splitlines()
    found = json.loads(line)
    assert (found["run"]["row"], found["run"]["split"]) == ("scratch fovlse", "validation")
    assert set(found["accuracy"]["1"]) == {"plain", "textured"}
    assert "scratch fovlse, seed 0: done before" in capsys.readouterr().out
