"""`reproduce`, `table`, `figure` and `report` on the command line, and the document that is generated."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from helpers.command_line import run
from helpers.made_up import made_up, write

from scalechannels.paper.document import BEGIN, END, updated
from scalechannels.paper.recipes import better
from scalechannels.paper.recipes import main as run_of
from scalechannels.paper.report import _costs
from scalechannels.paper.results import RUNS, Results, results_folder

ROOT = Path(__file__).parents[2]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write(tmp_path / "results" / RUNS, made_up(run_of("cnn", "tr1")), made_up(run_of("fovmax", "tr2")))
    return tmp_path / "results"


def test_table_1_as_text_json_and_markdown(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("table", 1, "--results", results) == 0
    text = capsys.readouterr().out
    assert "CNN tr1" in text
    assert "58 runs have no result" in text
    assert run("table", "table1", "--format", "json", "--results", results) == 0
    assert len(json.loads(capsys.readouterr().out)) == 25
    assert run("table", 2, "--format", "markdown", "--results", results) == 0
    assert "| FovAvg | 99.32 |" in capsys.readouterr().out
    assert run("table", "figure5", "--results", results) == 0
    assert "missing: tr1 (2), tr2 (3)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("table", 9), "no experiment 'table9'"),
        (("table", "figure12"), "figure12 has no table"),
        (("figure", 1), "no experiment 'figure1'"),
        (("figure", "table1"), "table1 is a table"),
        (("report", "--out", "report.pdf"), "--out takes a .html file"),
        (("table", 1, "--results", "nowhere"), "nowhere holds no results"),
        (("reproduce", "figure99", "--list"), "no experiment 'figure99'"),
        (("reproduce", "table1", "--list", "--seeds", 0), "at least one seed is needed"),
    ],
)
def test_mistakes_end_with_one_line(
    words: tuple, message: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = () if "--results" in words else ("--results", results)
    assert run(*words, *given) == 1
    said = capsys.readouterr().err
    assert message in said
    assert said.startswith("error: ")


def test_a_fault_is_told_beside_the_table(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = next((results / RUNS).glob("cnn-*.json"))
    path.write_text("{")
    assert run("table", 1, "--results", results) == 0
    said = capsys.readouterr()
    assert f"not used: {path} is damaged" in said.err
    assert "59 runs have no result" in said.out


def test_figures_are_written(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("figure", 9, "batch-norm", "--out", tmp_path / "out", "--results", results) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "batch-norm.png",
        "batch-norm.svg",
        "figure9.png",
        "figure9.svg",
    ]
    assert "figure9.png" in capsys.readouterr().out


def test_what_is_missing_can_be_listed(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("reproduce", "table1", "--list", "--only", "cnn", "--results", results) == 0
    said = capsys.readouterr()
    names = said.out.split()
    assert len(names) == 11
    assert all(name.startswith("cnn-mnist-") for name in names)
    assert "11 runs are missing" in said.err


class Page(HTMLParser):
    """What a page links to and loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes) -> None:
        given = dict(attributes)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a":
            self.links.append(given["href"])
        self.loads += [given[key] for key in ("src", "xlink:href") if key in given]


def test_the_report_is_one_page_with_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "report.html"
    assert run("report", "--out", out) == 0  # from the committed results
    text = out.read_text()
    page = Page(text)
    assert not [load for load in page.loads if not load.startswith(("data:", "#"))]
    assert "http" not in re.sub(r"http://www\.w3\.org/[\w/]+", "", text)
    assert all(link[1:] in page.ids for link in page.links)
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', text))
    assert len(used) > 100
    assert {id for id in used if page.ids.count(id) != 1} == set()  # no picture takes another one's parts
    for number in range(2, 16):
        assert f'id="figure{number}"' in text
    for words in ("99.36 ± 0.06", "99.36 (0.00)", "NVIDIA H200", "commit e1f03a7", "Where we differ"):
        assert words in text
    assert len(text) < 5_000_000


def test_networks_of_different_width_have_costs_of_their_own() -> None:
    narrow, wide = made_up(better("tr2")), made_up(better("tr2", width=2))
    wide.values["parameters"] = 272_386
    wide.values["seconds"]["training"] *= 3
    assert _costs([narrow, wide, narrow]) == [
        ["FovLSE", "mnist", "17", "2", "68,870", "12.0"],  # (2 + 20) / 2 and 1
        ["FovLSE", "mnist", "17", "1", "272,386", "32.0"],
    ]


@pytest.mark.parametrize("name", ["reproduce", "beyond"])
def test_the_documents_generated_part_is_current(name: str) -> None:
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    current = updated(text, Results(ROOT / "results" / RUNS))
    assert text == current, f"run: scalechannels report --document docs/{name}.md"


def test_a_document_keeps_what_is_around_its_generated_part(tmp_path: Path, results: Path) -> None:
    path = tmp_path / "doc.md"
    path.write_text(f"before\n{BEGIN}\nout of date\n{END}\nafter\n")
    assert run("report", "--document", path, "--results", results) == 0
    text = path.read_text()
    assert text.startswith("before\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "out of date" not in text
    assert "`table1`" in text
    path.write_text("no marks")
    assert run("report", "--document", path, "--results", results) == 1


def test_results_are_looked_for_here_and_then_in_the_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert results_folder() == ROOT / "results"
    (tmp_path / "results" / RUNS).mkdir(parents=True)
    assert results_folder() == Path("results")
    assert results_folder("~/x") == Path.home() / "x"


def test_experiments_need_neither_torch_nor_the_command_line() -> None:
    import subprocess
    import sys

    code = (
        "import sys; import scalechannels.paper.reproduce as r; r.missing(['all'], 'results'); "
        "print([n for n in ('torch', 'cyclopts', 'matplotlib', 'platformdirs') if n in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert said.stdout.strip() == "[]"
