"""Modules by name: rivals, files, packages; what they are offered, and what is refused."""

import pytest
import torch

from scalechannels.rivals import RIVALS
from scalechannels.rivals.named import build_module, is_module, source_checksum, split_path
from scalechannels.scales import ScaleGrid

OFFERED = {"channels": 3, "classes": 4, "image": 28, "grid": ScaleGrid(0.5, 1, ratio=2)}
OWN = """
from torch import nn
class Method(nn.Sequential):
    def __init__(self, channels, classes, width=2):
        super().__init__(nn.Flatten(), nn.LazyLinear(width), nn.Linear(width, classes))
def needy(channels, depth): ...
def empty(): return 1
"""


@pytest.mark.parametrize("name", RIVALS)
def test_every_rival_is_built_for_any_images(name: str) -> None:
    assert is_module(name)
    module = build_module(name, None, **OFFERED).eval()
    with torch.no_grad():
        assert module(torch.randn(2, 3, 28, 28)).shape == (2, 4)


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "method.py"
    path.write_text(OWN)
    return path


def test_a_file_is_read_again_only_when_it_changes(own) -> None:
    name, file = split_path(f"{own}:Method")
    assert (name, file) == ("method.py:Method", str(own))
    first = source_checksum(name, file)
    assert type(build_module(name, file, **OFFERED)) is type(build_module(name, file, **OFFERED))
    own.write_text(OWN.replace("width=2", "width=5"))
    assert source_checksum(name, file) != first
    assert build_module(name, file, **OFFERED)[1].out_features == 5


def test_a_package_is_imported(monkeypatch, own) -> None:
    monkeypatch.syspath_prepend(own.parent)
    assert split_path("method:Method") == ("method:Method", None)
    assert build_module("method:Method", None, **OFFERED)[2].out_features == 4
    assert source_checksum("method:Method", None) == source_checksum("method.py:Method", str(own))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ("Other", "has no class or function 'Other'; it has Method, empty, needy"),
        ("needy", "needs depth, which nobody gives it.*channels, classes, image, grid"),
        ("empty", r"must give a torch.nn.Module; got int"),
    ],
)
def test_what_cannot_be_built_is_named(own, made: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_module(f"method.py:{made}", str(own), **OFFERED)


def test_what_is_not_there_is_named(own) -> None:
    own.write_text("def")
    with pytest.raises(ValueError, match=r"method.py' is not valid Python"):
        build_module("method.py:Method", str(own), **OFFERED)
    with pytest.raises(ValueError, match=r"there is no file 'nowhere.py'"):
        source_checksum("nowhere.py:Method", "nowhere.py")
    with pytest.raises(ValueError, match=r"Python finds no module 'no_package.nets'"):
        source_checksum("no_package.nets:Method", None)
