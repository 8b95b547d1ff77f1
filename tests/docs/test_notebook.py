"""docs/notebooks/own_images.ipynb runs from its first cell to its last, and does what it says."""

import json
import re
from pathlib import Path

import pytest

BOOK = Path(__file__).parents[2] / "docs" / "notebooks" / "own_images.ipynb"
RIGHT = 80
"""Per cent of the larger digits, at least: with three classes, guessing has 33."""


def test_it_is_committed_without_outputs() -> None:
    cells = json.loads(BOOK.read_text(encoding="utf-8"))["cells"]
    assert all(not cell["outputs"] and not cell["execution_count"] for cell in cells if "outputs" in cell)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of the kernel's packages
def test_it_runs_and_recognises_digits_twice_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="the extra scalechannels[notebook] is not installed")
    nbclient = pytest.importorskip("nbclient", reason="the extra scalechannels[notebook] is not installed")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    book = nbformat.read(BOOK, as_version=4)
    nbclient.NotebookClient(book, timeout=600, kernel_name="python3").execute()
    said = "".join(output.get("text", "") for output in book.cells[-1].outputs)
    found = re.search(r"^ +1 +([\d.]+) %", said, flags=re.MULTILINE)  # at their own size
    assert found, said
    assert float(found[1]) >= RIGHT, said
