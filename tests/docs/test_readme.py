"""The README does what it says: its Python code runs, its commands exist and the cheap ones run."""

import re
import shlex
from pathlib import Path

import pytest
from PIL import Image

from scalechannels.cli import app, main
from scalechannels.report import candidates

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    (text,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", README, flags=re.DOTALL | re.MULTILINE)
    return text


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def shell_lines(text: str = README) -> list[str]:
    lines = [line.split("  #")[0].strip() for block in blocks("sh", text) for line in block.splitlines()]
    return [line for line in lines if line]


def run_in_shell(line: str) -> None:
    """Run a line in which runs/NAME stands for the one run."""
    words = shlex.split(line, comments=True)
    if "runs/NAME" in words:
        (folder,) = (path.parent for path in Path("runs").glob("*/report.html"))
        words[words.index("runs/NAME")] = str(folder)
    assert words[0] == "scalechannels"
    main(words[1:])


def test_the_order_is_install_three_doors_limits_networks() -> None:
    assert re.findall(r"^## (.*)", README, flags=re.MULTILINE) == [
        *("Install", "Your images", "Your backbone", "The paper", "When it does not help", "Which network"),
        *("Demo and detection", "Read on"),
    ]


def test_the_python_code_runs_and_gives_the_shapes_it_names() -> None:
    (code,) = blocks("python")
    names: dict = {}
    exec(code, names)
    assert names["logits"].shape == (2, 5)
    assert names["why"].channels.shape == (2, 17, 5)
    assert names["scales"].shape == (2,)
    assert len(names["grid"]) == 17
    sizes = 32 * names["grid"].scales  # of the objects that fill a window
    assert sizes[2].item() == pytest.approx(20)  # two channels beyond either end
    assert sizes[-3].item() == pytest.approx(160)


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [shlex.split(line)[1] for line in shell_lines() if line.startswith("make ")]
    assert targets == ["quickstart", "test"]
    for target in targets:
        assert re.search(rf"^{target}: \$\(READY\)$", makefile, flags=re.MULTILINE)


def test_every_command_that_is_named_exists() -> None:
    code = [*blocks("sh"), *re.findall("`[^`\n]+`", README)]
    named = set(re.findall(r"scalechannels (\w+)", "\n".join(code)))
    assert len(named) > 8
    assert named <= {name for name in app if not name.startswith("-")}


def test_the_picture_comes_first() -> None:
    first, *_ = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert first == "docs/images/quickstart.png"


def test_the_networks_that_are_shipped_load() -> None:
    import scalechannels

    names = re.findall(r"`(?:scalechannels\.load\(\")?(fovlse-[a-z-]+)", section("Which network"))
    assert names == ["fovlse-mnist", "fovlse-mnist-wide"]
    for name in names:
        assert scalechannels.load(name).grid.maximum == 8


def test_your_images_show_train_evaluate_and_predict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(candidates, "MOST_EPOCHS", 1)
    for index in range(8):
        path = Path("photos", ("dark", "light")[index % 2], f"{index}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (16, 16), 40 + 150 * (index % 2) + index).save(path)
    Path("new-photos").mkdir()
    Image.new("L", (20, 30), 60).save("new-photos/one.png")
    lines = shell_lines(section("Your images"))
    assert [shlex.split(line)[1] for line in lines] == ["data", "train", "evaluate", "predict"]
    for line in lines:
        run_in_shell(line)
    assert "4/4 scale channels everywhere: trained in " in capsys.readouterr().out
    assert Path("photos.png").is_file()
    assert len(list(Path("runs").glob("photos-*/report.html"))) == 1
    assert "one.png," in Path("classes.csv").read_text()


def test_the_papers_tables_figures_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    table, figure, report, reproduce = shell_lines(section("The paper"))
    assert shlex.split(report) == ["scalechannels", "report"]  # run by its own test, since it takes long
    for line in (table, figure, reproduce):
        run_in_shell(line)
    assert "FovAvg" in capsys.readouterr().out
    assert {path.suffix for path in tmp_path.rglob("figure5*")} == {".png", ".svg"}
