"""torch.hub finds every shipped network in hubconf.py, with no more than the packages that it names."""

import inspect
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import scalechannels
from scalechannels.saving.saved_network import shipped_names

ROOT = Path(__file__).parents[2]
NAMES = [name.replace("-", "_") for name in shipped_names()]
WITHOUT = [
    "cyclopts",
    "rich",
    "PIL",
    "h5py",
    "matplotlib",
    "jinja2",
    "platformdirs",
    "sklearn",
    "onnx",
    "scipy",
]
"""Packages that hubconf.py does not name, and that are no dependencies of what it names."""


def test_every_shipped_network_has_an_entry_that_says_what_it_is() -> None:
    entries = runpy.run_path(str(ROOT / "hubconf.py"))
    public = {name: one for name, one in entries.items() if inspect.isfunction(one) and name[0] != "_"}
    assert sorted(public) == sorted(NAMES)
    for name, entry in public.items():
        assert entry.__doc__, name


@pytest.mark.parametrize("name", NAMES)
def test_the_network_of_that_name_is_loaded(name: str) -> None:
    loaded = torch.hub.load(str(ROOT), name, source="local")
    network = getattr(loaded, "network", loaded)
    expected = scalechannels.load(name.replace("_", "-"))
    assert not network.training
    images = torch.rand(2, 1, 112, 112, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        assert torch.equal(network(images), expected(images))
    assert (type(loaded).__name__ == "Detector") == (name == "digit_detector")


def test_no_other_package_is_needed() -> None:
    code = f"""
import sys
sys.modules.update(dict.fromkeys({WITHOUT}))
import torch
network = torch.hub.load({str(ROOT)!r}, "fovlse_mnist", source="local")
print(tuple(network(torch.zeros(1, 1, 60, 60)).shape))
detector = torch.hub.load({str(ROOT)!r}, "digit_detector", source="local")
print(detector(torch.full((1, 60, 60), -0.76)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/")
    assert (done.stdout.split("\n")[:2], done.returncode) == (["(1, 10)", "[]"], 0), done.stderr
