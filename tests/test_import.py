"""Importing the package costs nothing, and its face holds what it promises."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import scalechannels


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_the_package_does_not_import_torch():
    code = "import sys, scalechannels; print('torch' in sys.modules, 'numpy' in sys.modules)"
    assert run(code).split() == ["False", "False"]


def test_help_does_not_import_torch():
    code = """
import sys
from pathlib import Path
from scalechannels.cli import app
try:
    app(["--help"])
except SystemExit as done:
    assert not done.code
print("torch" in sys.modules)
"""
    output = run(code)
    assert "scalechannels" in output
    assert output.split()[-1] == "False"


def test_a_grid_needs_no_torch():
    code = (
        "import sys; from scalechannels import ScaleGrid; ScaleGrid.of(1, 2); print('torch' in sys.modules)"
    )
    assert run(code).strip() == "False"


def test_every_public_name_exists():
    for name in scalechannels.__all__:
        assert getattr(scalechannels, name) is not None
    assert set(dir(scalechannels)) == set(scalechannels.__all__)


def test_an_unknown_name_is_named():
    with pytest.raises(AttributeError, match="module 'scalechannels' has no attribute 'fovmin'"):
        _ = scalechannels.fovmin


def test_type_checkers_are_told_every_public_name():
    stub = (Path(scalechannels.__file__).parent / "__init__.pyi").read_text(encoding="utf-8")
    assert sorted(re.findall(r"(?: as (?=\w)|^(?=__))(\w+)", stub, re.MULTILINE)) == sorted(
        scalechannels.__all__
    )
