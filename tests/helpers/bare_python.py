"""Python as on a machine that has little beyond PyTorch and NumPy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
WITHOUT = """
import importlib.util, sys
missing = "huggingface_hub safetensors PIL cyclopts platformdirs filelock rich matplotlib h5py jinja2".split()
missing += ["pycocotools", "onnx"]
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name.split(".")[0] in missing else find(name, *more)
sys.modules.update(dict.fromkeys(missing))  # importing one of these fails
"""


def run_bare(code: str, *words: object) -> str:
    """What a program prints that is run with these words where packages are missing."""
    command = [sys.executable, "-c", WITHOUT + code, *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout
