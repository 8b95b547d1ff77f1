"""The site is built without a warning, leads nowhere that is not there, and needs no other host."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from helpers.browser import chromium

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow
LOADED = {"script": "src", "img": "src", "source": "src", "iframe": "src", "link": "href"}
"""What a browser fetches by itself; a `link` that only names another page is checked as a link is."""


class Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if given.get(LOADED.get(tag, "")):
            self.loaded.append(given[LOADED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    settings = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True)
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    found = {path.resolve(): Page(path) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(found) > 25
    return found


def test_every_link_anchor_and_picture_is_there(pages: dict[Path, Page]) -> None:
    wrong, checked = [], 0
    for path, page in pages.items():
        for place in page.links + page.loaded:
            parts = urlsplit(place)
            if parts.scheme in ("https", "http", "mailto"):
                continue
            checked += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and target in pages and anchor not in pages[target].anchors):
                wrong.append(f"{path.name}: {place}")
    assert not wrong
    assert checked > 2000


def test_examples_of_the_reference_are_code(site: Path) -> None:
    """As text, `>>>` would be three block quotes within one another."""
    made = [path.read_text(encoding="utf-8") for path in sorted((site / "reference").glob("*.html"))]
    assert sum(page.count('<span class="gp">&gt;&gt;&gt; </span>') for page in made) > 50
    assert not any("<blockquote>" in page for page in made)


def test_nothing_is_loaded_from_another_host(site: Path, pages: dict[Path, Page]) -> None:
    elsewhere = [place for page in pages.values() for place in page.loaded if urlsplit(place).netloc]
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert styles
    elsewhere += [
        url
        for style in styles
        for url in re.findall(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^)\"']+)", style)
    ]
    assert not elsewhere


def test_a_page_on_a_phone_asks_for_files_alone_and_is_not_too_wide(site: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    asked: list[str] = []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "how_it_works.html").as_uri())
        wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        browser.close()
    assert wider <= 0
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
