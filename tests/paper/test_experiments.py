"""Experiments are data: they need no library that is slow to import."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_experiments_need_neither_torch_nor_the_command_line() -> None:
    import subprocess
    import sys

    code = (
        "import sys; import scalechannels.paper.reproduce as r; r.missing(['all'], 'results'); "
        "slow = ('torch', 'cyclopts', 'matplotlib', 'platformdirs', 'jinja2'); "
        "print([name for name in slow if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert said.stdout.strip() == "[]"
