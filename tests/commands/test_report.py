"""`scalechannels report`: a page that needs nothing else, or a document's generated part."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from helpers.command_line import run
from helpers.two_results import one_line_error, two_results

from scalechannels.paper.document import BEGIN, END


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return two_results(tmp_path)


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


@pytest.mark.slow
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


def test_a_page_is_html(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("report", "--out", "report.pdf", "--results", results) == 1
    one_line_error(capsys, "--out must end in .html")
