"""The page of guarantees names tests, and each of them exists; and the versions that were run."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/guarantees.md").read_text(encoding="utf-8")
NAMED = re.compile(r"\[`(test_\w+)`\]\(\.\./(tests/[\w/]+\.py)\)")
TABLES = re.findall(r"^\| .* held by \|\n\| --- .*\n((?:\|.*\n?)+)", PAGE, re.MULTILINE)
PROMISES = [row for table in TABLES for row in table.splitlines()]


@pytest.mark.parametrize(("name", "file"), sorted(set(NAMED.findall(PAGE))))
def test_each_test_that_is_named_exists(name: str, file: str) -> None:
    assert re.search(rf"^(def {name}\(|{name} = )", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("promise", PROMISES)
def test_each_promise_is_held_by_a_test(promise: str) -> None:
    assert NAMED.search(promise)


def test_the_versions_are_those_that_are_allowed_and_installed() -> None:
    """Lower bounds are run before they are written: they stand in the first row, today's in all others."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    oldest = [re.search(rf"{what}\s*>=\s*([\d.]+)", project) for what in ('requires-python = "', '"torch')]
    installed = re.search(r"^torch==([\d.]+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    first, *others = re.findall(r"^\| (3\.\d+)\.\d+ \| ([\d.]+) \| (.*?) \|", PAGE, re.MULTILINE)
    assert [found and found[1] for found in oldest] == [first[0], first[1].removesuffix(".0")]
    assert first[2] == "the lowest that `pyproject.toml` allows"
    assert installed is not None
    assert [row[1:] for row in others] == [(installed[1], "those of `constraints.txt`")] * 3
    tried = [int(row[0].split(".")[1]) for row in (first, *others)]
    assert tried == list(range(10, 14))
    assert f"Untried: Python 3.{tried[-1] + 1} and newer" in PAGE


def test_the_page_is_read() -> None:
    assert len(TABLES) >= 6
    assert len(PROMISES) > 30
    assert PAGE.count("](../tests/") == len(NAMED.findall(PAGE))  # none is written in another way
