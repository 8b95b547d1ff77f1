"""A folder with the config file of a tiny run, and few test images."""

from pathlib import Path

import pytest
from helpers.command_line import TINY

from scalechannels.training import datasets


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets, "STROKES_TEST", 40)
    (tmp_path / "run.toml").write_text(TINY)
    return tmp_path
