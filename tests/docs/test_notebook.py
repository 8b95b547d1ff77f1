"""The notebooks in docs/notebooks run from their first cell to their last, and show what they say."""

import importlib.util
import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "notebooks"
BOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
FIRST = "install"
"""The id of every notebook's first cell of code, which installs the package where it is missing."""


def cells(name: str) -> list[dict[str, Any]]:
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def first(name: str) -> str:
    """The first cell of code."""
    code = [cell for cell in cells(name) if cell["cell_type"] == "code"]
    assert code[0]["id"] == FIRST
    return "".join(code[0]["source"])


def test_every_notebook_has_a_test_that_runs_it() -> None:
    assert len(BOOKS) >= 4
    assert [name for name in BOOKS if not any(test.startswith(f"test_{name}_") for test in globals())] == []


@pytest.mark.parametrize("name", BOOKS)
def test_it_is_committed_without_outputs(name: str) -> None:
    code = [cell for cell in cells(name) if cell["cell_type"] == "code"]
    assert code
    assert all(not cell["outputs"] and not cell["execution_count"] for cell in code)


@pytest.mark.parametrize("name", BOOKS)
def test_its_links_lead_to_files(name: str) -> None:
    text = "\n".join("".join(cell["source"]) for cell in cells(name) if cell["cell_type"] == "markdown")
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
    assert links
    assert not [link for link in links if not (FOLDER / link).is_file()]


@pytest.mark.parametrize("name", BOOKS)
def test_its_first_cell_installs_what_is_missing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the clone that the notebook lies in, or else by the package's name; nothing where it is there."""
    pip = '%pip install --quiet "{source}"'
    assert pip in first(name)
    code = first(name).replace(pip, "asked = source")

    def asked_for(folder: Path) -> str | None:
        monkeypatch.chdir(folder)
        names: dict[str, Any] = {}
        exec(code, names)
        return names.get("asked")

    assert asked_for(FOLDER) is None
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert asked_for(FOLDER) == str(ROOT)
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert asked_for(tmp_path / "a" / "b") == "scalechannels"


class Ran(NamedTuple):
    """What a notebook left behind."""

    value: Any
    """Of the expression that was asked for after the last cell."""
    printed: str
    pictures: int


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a notebook in an empty folder, where it leaves nothing, and then evaluates an expression."""
    nbformat = pytest.importorskip("nbformat", reason="the extra scalechannels[notebook] is not installed")
    nbclient = pytest.importorskip("nbclient", reason="the extra scalechannels[notebook] is not installed")
    monkeypatch.setenv("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "2"))

    def ran(name: str, expression: str = "None") -> Ran:
        book = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
        asked = nbformat.v4.new_code_cell(f"import json\nprint(json.dumps({expression}))")
        book.cells.append(asked)
        place = {"metadata": {"path": str(tmp_path)}}
        nbclient.NotebookClient(book, timeout=800, kernel_name="python3", resources=place).execute()
        assert not list(tmp_path.iterdir())
        outputs = [output for cell in book.cells[:-1] for output in cell.get("outputs", [])]
        printed = "".join(output["text"] for output in outputs if output.get("name") == "stdout")
        pictures = sum("image/png" in output.get("data", {}) for output in outputs)
        return Ran(json.loads(asked.outputs[0]["text"]), printed, pictures)

    return ran


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")  # those of the kernel's packages
def test_own_images_recognises_digits_twice_as_large(run: Any) -> None:
    said = run("own_images")
    evaluated = said.printed[said.printed.rindex("is taken for") :]
    found = re.search(r"^ +1 +([\d.]+) %", evaluated, flags=re.MULTILINE)  # at their own size
    assert found, said.printed
    assert float(found[1]) >= 80, said.printed  # of three classes: guessing has 33
    assert said.pictures == 1


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")
def test_quickstart_shows_one_network_that_follows_the_size_and_one_that_does_not(run: Any) -> None:
    said = run("quickstart", "[tested, accuracy, why.logits.argmax(1).tolist(), why.scales.tolist()]")
    sizes, accuracy, answers, scales = said.value
    assert (sizes[0], sizes[8], sizes[-1]) == (0.5, 2, 8)
    assert min(accuracy["scale channels"]) >= 85
    plain = accuracy["plain CNN"]
    assert plain[8] >= 85
    assert max(plain[0], plain[-1]) <= 30
    assert answers == [3, 3, 3]
    doubled = pytest.approx([2, 2], rel=0.2)  # a step of the grid
    assert [scales[1] / scales[0], scales[2] / scales[1]] == doubled
    assert f"size 2: a 3, the strongest channel is σ = {scales[1]:.2f}" in said.printed
    assert said.pictures == 3


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")
def test_your_boxes_finds_marks_of_half_and_twice_the_size(run: Any) -> None:
    said = run("your_boxes", "[list(score), list(score.values())]")
    factors, scores = said.value
    assert factors == [0.5, 1, 2]
    for found, there, others in scores:
        assert there == 10
        assert found >= 8, said.printed
        assert others <= 2, said.printed
    assert said.printed.count(" of 10 found, ") == 3
    assert said.pictures == 2


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")
def test_your_backbone_learns_one_size_and_knows_others_only_in_scale_channels(run: Any) -> None:
    said = run("your_backbone", "[sizes, accuracy, same]")
    sizes, accuracy, same = said.value
    assert (sizes[0], sizes[2], sizes[-1]) == (0.5, pytest.approx(1), pytest.approx(4))
    assert min(accuracy["scale channels"]) >= 85
    alone = accuracy["one scale"]
    assert alone[2] >= 85
    assert max(alone[0], alone[-1]) <= 40
    assert same is True
    library = said.printed.splitlines()[-1]  # a shape, or what to install
    assert library == "(2, 10)" or "torchvision" in library, said.printed
    assert said.pictures == 2
