"""The generated parts of the documents are those of the committed results."""

from pathlib import Path

import pytest

from scalechannels.paper.document import updated
from scalechannels.paper.results import RUNS, Results

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["reproduce", "notebook", "evidence"])
def test_the_documents_generated_part_is_current(name: str) -> None:
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    current = updated(text, Results(ROOT / "results" / RUNS))
    assert text == current, f"run: scalechannels report --document docs/{name}.md"
