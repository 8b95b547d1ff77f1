"""docs/onnx.md does what it says: its code runs in Python and in a browser, its tables name what is there."""

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers.browser import chromium, onnxruntime_web, served

from scalechannels.cli import main
from scalechannels.demo.without_server import ONNXRUNTIME_WEB

TEXT = (Path(__file__).parents[2] / "docs" / "onnx.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.slow


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)


def table(heading: str) -> set[str]:
    """The names in the first column of the table with this heading."""
    (rows,) = re.findall(rf"^\| {heading} \|.*\n\|[ -|]*\n((?:\|.*\n)+)", TEXT, flags=re.MULTILINE)
    return set(re.findall(r"^\| `(\w+)`", rows, flags=re.MULTILINE))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The export and the Python code, in an empty folder."""
    folder = tmp_path_factory.mktemp("page")
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        export, _ = blocks("sh")  # the second has tests of its own
        main(shlex.split(export)[1:])
        for code in blocks("python"):
            exec(code, names)
    return folder, names


def test_python_says_what_predict_says(
    ran: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, names = ran
    monkeypatch.chdir(folder)
    main(["predict", "fovlse-mnist", "digit.png", "--out", "digit.json"])
    (said,) = json.loads(Path("digit.json").read_text())
    assert names["digit"] == int(said["class"]) == 7
    assert names["sure"] == pytest.approx(100 * said["probability"], abs=0.02)
    assert names["scales"][0] == pytest.approx(said["scale"], rel=1e-3)


def test_the_browser_says_what_python_says(ran: tuple[Path, dict[str, Any]]) -> None:
    folder, names = ran
    (page,) = blocks("html")
    (folder / "index.html").write_text(page, encoding="utf-8")
    for name, content in onnxruntime_web().items():
        assert f"`{name}`" in TEXT
        (folder / name).write_bytes(content)
    assert f"`npm pack {ONNXRUNTIME_WEB.package}`" in TEXT
    with served(folder) as address, opened(address) as (shown, faults):
        shown.wait_for_selector("#answer:text('sure')", timeout=60_000)
        assert shown.inner_text("#answer") == names["answer"]
        assert faults == []


@contextmanager
def opened(address: str) -> Iterator[tuple[Any, list[str]]]:
    """A page in a browser, and what went wrong in it, or was asked of another host."""
    from playwright.sync_api import sync_playwright

    faults: list[str] = []
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium())
        page = browser.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda asked: faults.extend([asked.url] * (not asked.url.startswith(address))))
        try:
            page.goto(address)
            yield page, faults
        finally:
            browser.close()


def test_the_tables_name_what_the_file_gives_and_says(ran: tuple[Path, dict[str, Any]]) -> None:
    _, names = ran
    given = {output.name for output in names["session"].get_outputs()}
    assert given == table("output") - {"places", "windows"}
    assert set(names["told"]) == table("name") | {"network", "scalechannels"}
