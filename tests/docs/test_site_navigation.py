"""The site names every page of docs/ once and every public name, and its digit does what its page says."""

import importlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import scalechannels

ROOT = Path(__file__).parents[2]
MADE = {"index.md", "changelog.md", "contributing.md"}
"""Pages that are made of files beside docs/."""


def places(entries: list[dict[str, Any]]) -> Iterator[str]:
    for entry in entries:
        for place in entry.values():
            yield from [place] if isinstance(place, str) else places(place)


def navigation() -> list[str]:
    return list(places(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))


def test_every_page_is_named_once() -> None:
    named = Counter(navigation())
    assert not [page for page, times in named.items() if times > 1]
    written = {page for page in named if not page.startswith("reference/")} - MADE
    there = {path.name for path in (ROOT / "docs").glob("*.md")}
    lines = "\n".join(f"      - {page.removesuffix('.md').capitalize()}: {page}" for page in there - written)
    assert not there - written, f"add to nav in mkdocs.yml, where a reader looks for it:\n{lines}"
    assert not written - there, f"mkdocs.yml names pages that docs/ does not have: {written - there}"


def test_every_public_name_is_in_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs/site")
    pages = importlib.import_module("reference")
    shown = Counter(name for page in pages.REFERENCE for name in pages.reference_names(page))
    assert [*shown.values()] == [1] * len(shown)
    missing = set(scalechannels.__all__) - {"__version__"} - set(shown)
    assert not missing, f"add the modules of {missing} to REFERENCE in docs/site/reference.py"
    made = "".join(pages.reference(page) for page in pages.REFERENCE)
    assert all(f"scalechannels.{name}" in made for name in scalechannels.__all__)
    assert {f"reference/{page}.md" for page in pages.REFERENCE} == {
        place for place in navigation() if place.startswith("reference/")
    }


def test_columns_of_arguments_become_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("griffe", reason="the site's packages come with `make docs`")
    monkeypatch.syspath_prepend(ROOT / "docs/site")
    as_markdown = importlib.import_module("docstrings").as_markdown
    told = "First.\n\n    a  kept\n\nx, y   one\n       and more\nz  two\n\nLaw: it holds. Limit: not here."
    wanted = "First.\n\n    a  kept\n\n- `x`, `y`: one and more\n- `z`: two\n\n"
    wanted += "**Law:** it holds. **Limit:** not here."
    assert as_markdown(told) == wanted
    told = "First.\n\nExample:\n    >>> 1 + 1\n    2\n\nLaw: it holds."
    wanted = "First.\n\n**Example**\n\n```pycon\n>>> 1 + 1\n2\n```\n\n**Law:** it holds."
    assert as_markdown(told) == wanted


def test_the_growing_digit_is_read_at_every_size_by_a_channel_that_moves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT)
    growing = importlib.import_module("benchmarks.growing_digit")
    _, windows, said = growing.looked_at(scalechannels.load("fovlse-mnist"))
    assert said.logits.argmax(1).tolist() == [growing.DIGIT] * len(growing.SIZES)
    assert windows.shape[:2] == said.contributions.shape
    moved = torch.diff(said.contributions.argmax(1))
    assert (moved >= 0).all()
    assert moved.sum() >= 8
    assert growing.PICTURE.stat().st_size < 300_000
