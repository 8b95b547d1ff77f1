"""What the documents point to exists: links, anchors, files, modules, commands, options and settings."""

import importlib.util
import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest

from scalechannels import ScaleChannelNetwork
from scalechannels.cli import app
from scalechannels.training.config import DataConfig, NetworkConfig, TrainingConfig

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"))
)
GONE = re.compile(r"19eb71c|\bremoved\b", re.IGNORECASE)
"""What a paragraph names that speaks of removed code, or of the last commit that had it, may be gone."""
TABLES = {"data": DataConfig, "network": NetworkConfig, "training": TrainingConfig}


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def paragraphs(page: str) -> list[str]:
    """Those that speak of today; a bullet is one of its own. A changelog's history may name what is gone."""
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text(page))
    return [part for part in parts if not GONE.search(part) and page != "CHANGELOG.md"]


def spans(page: str) -> list[str]:
    """Code within lines."""
    prose = re.sub(r"```.*?```", "", "\n\n".join(paragraphs(page)), flags=re.DOTALL)
    return [re.sub(r"\s+", " ", span) for span in re.findall(r"`([^`]+)`", prose)]


def commands(page: str) -> list[str]:
    """Everything that begins with `scalechannels`, as one line each."""
    whole = "\n\n".join(paragraphs(page)).replace("\\\n", " ")
    lines = [line.strip().split("  #")[0] for line in whole.splitlines()]
    return [line for line in [*lines, *spans(page)] if re.match(r"scalechannels [a-z]", line)]


def anchors(page: str) -> set[str]:
    """Of the headings, as GitHub makes them."""
    prose = re.sub(r"```.*?```", "", text(page), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", prose, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_pictures_and_anchors_exist(page: str) -> None:
    for place in re.findall(r"\]\(([^)]+)\)", text(page)):
        if place.startswith("https://"):
            continue
        path, _, anchor = place.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.is_file(), place
        if anchor:
            assert anchor in anchors(target.resolve().relative_to(ROOT.resolve()).as_posix()), place


@pytest.mark.parametrize("page", PAGES)
def test_files_of_ours_exist(page: str) -> None:
    """What ends in .py or .md, or begins with a folder of ours: a path from the root or from the package."""
    rooms = {path.name for path in (ROOT / "scalechannels").iterdir() if path.is_dir()}
    ours = {"benchmarks", "docs", "results", "scalechannels", "tests", *rooms}
    for span in spans(page):
        path = re.fullmatch(r"[\w./-]+", span) and "NAME" not in span
        if path and (span.endswith((".py", ".md")) or ("/" in span and span.split("/")[0] in ours)):
            assert any((base / span).exists() for base in (ROOT, ROOT / "scalechannels")), span


@pytest.mark.parametrize("page", PAGES)
def test_modules_exist(page: str) -> None:
    whole = re.sub(r"\s+", " ", "\n\n".join(paragraphs(page)))
    for module in re.findall(r"\b(?:python -m )((?:scalechannels|benchmarks)(?:\.\w+)*)", whole):
        assert importlib.util.find_spec(module), module
    for name in spans(page):
        if re.fullmatch(r"scalechannels(\.[a-z_]+)+", name):
            assert importlib.util.find_spec(name), name


def known(words: list[str]) -> tuple[bool, set[str]]:
    """Whether the command exists, and its options."""
    command = app
    for word in words:
        if word not in command:
            break
        command = command[word]
    if command is app:
        return False, set()
    if not command.default_command:
        return len(words) == 1, {"--help"}  # a group, such as data
    names = {name for argument in command.assemble_argument_collection() for name in argument.names}
    return True, names | {"--help"}


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_their_options_exist(page: str) -> None:
    for line in commands(page):
        words = shlex.split(line.replace("'", ""))[1:]
        plain = [word for word in words if not word.startswith("-")]
        exists, options = known(plain)
        assert exists, line
        for word in words:
            if word.startswith("--"):
                assert word in options, line


@pytest.mark.parametrize("page", PAGES)
def test_settings_exist(page: str) -> None:
    """`training.visible = 0.5` and the like, as in a config file."""
    for span in spans(page):
        found = re.match(r"(data|network|training)\.([a-z_]+)(?![\w./(])", span.removesuffix(".py"))
        module = found and (ROOT / "scalechannels" / found[1] / f"{found[2]}.py").exists()
        attribute = found and found[1] == "network" and hasattr(ScaleChannelNetwork, found[2])
        if found and not (module or attribute):
            assert found[2] in {field.name for field in fields(TABLES[found[1]])}, span


def test_these_tests_see_something() -> None:
    """A pattern that matches nothing would pass."""
    assert "training/augment/detail.py" in spans("docs/training.md")
    assert "what-one-would-do-instead" in anchors("docs/notebook.md")
    assert sum(len(commands(page)) for page in PAGES) > 60
    assert known(["train"])[0]
    assert "--data.name" in known(["train"])[1]
    assert known(["data", "scene", "scene.png"])[0]
    assert known(["learn"]) == (False, set())
    assert not known(["data", "sceen"])[0]
    assert any(span.startswith("training.visible") for span in spans("docs/advice.md"))
