"""The README does what it says: its Python code runs, its commands exist and the cheap ones run."""

import re
import shlex
from pathlib import Path

import pytest

from scalechannels.cli import app, main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def shell_lines() -> list[str]:
    lines = [line.split("  #")[0].strip() for block in blocks("sh") for line in block.splitlines()]
    return [line for line in lines if line]


def test_the_python_code_runs_and_gives_the_shapes_it_names() -> None:
    (code,) = blocks("python")
    names: dict = {}
    exec(code, names)
    assert names["logits"].shape == (4, 10)
    assert names["channels"].shape == (4, 17, 10)
    assert names["scales"].shape == (4,)
    assert len(names["grid"]) == 17
    assert names["wrapped"](names["torch"].randn(2, 3, 200, 300)).shape == (2, 5)


def test_the_advice_beside_the_code_is_valid() -> None:
    from scalechannels import ScaleGrid

    (call,) = re.findall(r"`(ScaleGrid\.from_sizes\(.*?\))`", README)
    assert len(eval(call, {"ScaleGrid": ScaleGrid})) > 10


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [shlex.split(line)[1] for line in shell_lines() if line.startswith("make ")]
    assert targets == ["quickstart", "test"]
    for target in targets:
        assert re.search(rf"^{target}: \$\(READY\)$", makefile, flags=re.MULTILINE)


def test_every_command_of_the_table_exists_and_none_is_missing() -> None:
    told = set(re.findall(r"^\| `scalechannels (\w+)` \|", README, flags=re.MULTILINE))
    assert told == {name for name in app if not name.startswith("-")}


def test_links_and_pictures_exist() -> None:
    places = re.findall(r"\]\(([^)#]+)\)", README)
    assert any(place.endswith("quickstart.png") for place in places)
    for place in places:
        assert place.startswith("https://") or (ROOT / place).is_file(), place


def test_the_round_on_the_command_line_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from scalechannels.training import datasets

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets, "STROKES_TEST", 40)
    lines = [line for line in shell_lines() if line.startswith("scalechannels ")]
    assert [shlex.split(line)[1] for line in lines] == ["data", "train", "evaluate", "predict"]
    for line in lines:
        words = []
        for word in shlex.split(line)[1:]:  # as a shell expands them
            words += [str(path) for path in Path().glob(word)] if "*" in word else [word]
        main(words)
    assert "digits.png," in capsys.readouterr().out
