"""docs/commands.md is what the commands say about themselves.

To update it: python tests/docs/test_commands_page.py
"""

import sys
from pathlib import Path
from unittest.mock import patch

import cyclopts
import pytest

from scalechannels.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
NOTE = "<!-- generated from the commands' help by `python tests/docs/test_commands_page.py` -->"


def generated() -> str:
    with patch.object(sys, "argv", ["scalechannels"]):  # from where some usage lines take the program's name
        text = app.generate_docs(output_format="markdown")
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join([NOTE, "", *lines]).rstrip() + "\n"


@pytest.mark.skipif(cyclopts.__version__ < "5", reason="the page is written by cyclopts 5, in its words")
def test_the_page_is_current() -> None:
    told = PAGE.read_text(encoding="utf-8")
    assert told == generated(), "run: python tests/docs/test_commands_page.py"


def test_every_command_is_on_it() -> None:
    told = PAGE.read_text(encoding="utf-8")
    names = [name for name in app if not name.startswith("-")]
    assert len(names) > 12
    for name in names:
        assert f"\n## scalechannels {name}\n" in told


def test_no_option_is_made_up_by_the_library() -> None:
    """Cyclopts adds --empty-NAME to options that take several values; no command means it."""
    assert "--empty-" not in generated()


if __name__ == "__main__":
    PAGE.write_text(generated(), encoding="utf-8")
