"""The page of guarantees names tests, and each of them exists."""

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


def test_the_page_is_read() -> None:
    assert len(TABLES) >= 6
    assert len(PROMISES) > 30
    assert PAGE.count("](../tests/") == len(NAMED.findall(PAGE))  # none is written in another way
