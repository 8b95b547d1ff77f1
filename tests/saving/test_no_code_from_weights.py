"""Weights are numbers: whatever a file holds, reading it runs nothing."""

import pickle
import re
from pathlib import Path

import pytest

import scalechannels
from scalechannels import ScaleGrid, fovmax

PACKAGE = Path(scalechannels.__file__).parent


class Touch:
    """Unpickling it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return Path.touch, (self.path,)


def test_a_pickle_in_place_of_the_weights_is_refused_and_not_run(tmp_path: Path) -> None:
    fovmax(ScaleGrid.of(1, 2)).save_pretrained(tmp_path / "net")
    trace = tmp_path / "ran"
    hostile = pickle.dumps(Touch(trace))
    pickle.loads(hostile)
    assert trace.exists()  # it would run
    trace.unlink()
    (tmp_path / "net" / "model.safetensors").write_bytes(hostile)
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        scalechannels.load(tmp_path / "net")
    assert not trace.exists()


def test_nothing_of_ours_unpickles() -> None:
    loads = r"torch\.load\((?!.*weights_only=True)"
    forbidden = re.compile(rf"{loads}|\bimport (?:pickle|dill|joblib)|\bpickle\.|allow_pickle=True")
    found = [path.name for path in PACKAGE.rglob("*.py") if forbidden.search(path.read_text("utf-8"))]
    assert found == []
