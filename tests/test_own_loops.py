"""The examples of training loops run as they are, and what they train recognises larger digits."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LONGEST = 70
"""Lines: an example is read in one go."""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_says_how_it_is_run(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    assert f"python examples/{path.name}" in text.split('"""')[1]


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_recognises_digits_twice_as_large_as_those_it_learnt(path: Path) -> None:
    if path.stem == "lightning_module":
        pytest.importorskip("lightning", reason="the extra scalechannels[lightning] is not installed")
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, f"examples/{path.name}"], cwd=ROOT, env=settings, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = re.search(r"as large as in training: (\d+)%; twice as large: (\d+)%", done.stdout)
    assert found, done.stdout
    assert min(map(int, found.groups())) >= 85


@pytest.mark.slow
def test_lightning_comes_without_torchvision() -> None:
    """torchvision fails to import beside another build of torch, and would take Lightning along."""
    pytest.importorskip("lightning", reason="the extra scalechannels[lightning] is not installed")
    code = 'import sys; sys.modules["torchvision"] = None; import lightning; print(lightning.LightningModule)'
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "LightningModule" in done.stdout, done.stderr
