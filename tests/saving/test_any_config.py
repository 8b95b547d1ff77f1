"""Whatever a config file says: a network or a run, or an error that the command line prints as one line.

EXAMPLES=10000 pytest tests/saving/test_any_config.py tries more than the few of an ordinary run.
"""

import json
import resource
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.any_config import as_json, as_toml, changed, spoiled
from helpers.fuzzing import examples
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from scalechannels import MaxOverScales, PlainNetwork, ScaleChannelNetwork, ScaleGrid, fovconc, swmax
from scalechannels.backbones.paper import ConvBackbone
from scalechannels.saving.saved_network import SavedNetwork
from scalechannels.training.build import build_network
from scalechannels.training.config import RunConfig

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

ONE_LINE = (OSError, ValueError, FloatingPointError, ImportError)
"""What `cli.main` prints as one line."""
MEMORY = 2**30
"""Bytes that loading may need at most; the networks here have some megabytes."""
GRID = ScaleGrid.of(0.7, 1, 2)
USAGE = {"classes": ["a", "b"], "background": 2, "values": "digits", "reduce": 1}
NETWORKS: dict[str, Callable[[], Any]] = {
    "fovmax": lambda: ScaleChannelNetwork(ConvBackbone((3, 3), classes=3, hidden=4), GRID, MaxOverScales()),
    "fovconc": lambda: fovconc(GRID, classes=3),
    "swmax": lambda: swmax(GRID, classes=3, norm="each"),
    "cnn": lambda: PlainNetwork(ConvBackbone((3, 3), classes=3)),
}
RUNS: dict[str, dict[str, Any]] = {
    "short": {"data": {"sizes": [1, 2], "samples": 64}, "network": {"low": 1, "high": 2, "ratio": 2.0}},
    "whole": {
        key: {name: value for name, value in section.items() if value is not None}
        for key, section in RunConfig().resolve().as_dict().items()
    },
}
SEEN: Counter[str] = Counter()


def memory() -> int:
    """The most bytes that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def tried(attempt: Callable[[], Any]) -> None:
    """An answer or an error of one line, in bounded memory."""
    started = memory()
    try:
        attempt()
        SEEN["accepted"] += 1
    except ONE_LINE as error:
        SEEN[type(error).__name__] += 1
        said = str(error)
    else:
        said = ""
    assert "\n" not in said
    assert memory() < started + MEMORY


@pytest.fixture(scope="module", autouse=True)
def counts() -> Any:
    """What was seen; pytest -s shows it."""
    yield
    print(dict(SEEN))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {}
    for name, make in NETWORKS.items():
        network = make()
        network.usage = USAGE
        folders[name] = tmp_path_factory.mktemp(name)
        network.save_pretrained(folders[name])
        assert isinstance(SavedNetwork.open(folders[name]).network, nn.Module)
    return folders


@examples(200)
@given(data=st.data(), name=st.sampled_from(sorted(NETWORKS)))
def test_any_config_of_a_network(saved: dict[str, Path], data: st.DataObject, name: str) -> None:
    path = saved[name] / "config.json"
    valid = path.read_bytes()
    config = data.draw(changed(json.loads(valid)))
    try:
        path.write_bytes(data.draw(spoiled(as_json(config))))
        tried(lambda: SavedNetwork.open(saved[name]))
    finally:
        path.write_bytes(valid)


@examples(100)
@given(
    data=st.data(),
    which=st.sampled_from(("config.toml", "result.json", "detector.json")),
    name=st.sampled_from(sorted(NETWORKS)),
)
def test_any_file_beside_a_network(
    saved: dict[str, Path], data: st.DataObject, which: str, name: str
) -> None:
    beside = {
        "config.toml": RUNS["whole"],
        "result.json": {"classes": ["a", "b", "c"]},
        "detector.json": USAGE,
    }
    path, config = saved[name] / which, saved[name] / "config.json"
    valid = config.read_bytes()
    try:
        config.write_text(json.dumps({**json.loads(valid), "usage": None}))
        value = data.draw(changed(beside[which]))
        text = as_toml(value) if path.suffix == ".toml" else as_json(value)
        path.write_bytes(data.draw(spoiled(text)))
        tried(lambda: SavedNetwork.open(saved[name]))
    finally:
        path.unlink(missing_ok=True)
        config.write_bytes(valid)


@examples(200)
@given(data=st.data(), name=st.sampled_from(sorted(RUNS)))
def test_any_config_of_a_run(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, name: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(data.draw(spoiled(as_toml(data.draw(changed(RUNS[name]))))))

    def attempt() -> None:
        run = RunConfig.from_toml(path)
        if not run.data.about.of_user:  # else its folder would be read
            build_network(run.resolve())

    tried(attempt)
