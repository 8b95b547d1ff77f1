"""A process in which packages that a rented machine lacks cannot be found."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LACKING = ("PIL", "safetensors", "huggingface_hub", "cyclopts", "pycocotools", "matplotlib", "onnx")
HIDE = f"""
import sys
from importlib.machinery import PathFinder

class Bare:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name.partition(".")[0] in {LACKING!r} else PathFinder.find_spec(name, path, target)

sys.meta_path = [Bare if finder is PathFinder else finder for finder in sys.meta_path]
"""


def ran_bare(program: str) -> str:
    """What a program prints there; an error if it fails."""
    done = subprocess.run(
        [sys.executable, "-c", HIDE + program], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
