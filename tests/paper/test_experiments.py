"""Experiments are data: what an entry stands for; they need no library that is slow to import."""

from pathlib import Path
from typing import Any

import pytest

from scalechannels.paper.experiments import _read
from scalechannels.paper.recipes import SAMPLES, few, mnist

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


def entry(**panel: Any) -> dict[str, Any]:
    return {"title": "Made up", "renderer": "curves", "where": "nowhere", "panels": [panel]}


def test_a_list_stands_for_several_and_names_are_filled_in() -> None:
    curves = [
        {"label": "{train}", "train": ["tr1", "tr4"], "colour": [1, 0]},
        {"label": "one", "network": "cnn", "train": [[1.0, 2.0]]},
    ]
    made = _read(
        "made-up", entry(title="{network}", recipe="mnist", network=["fovavg", "swmax"], curves=curves)
    )
    assert [panel.title for panel in made.panels] == ["FovAvg", "SWMax"]
    first, second, own = made.panels[1].curves
    assert (first.label, second.label, own.label) == ("tr1", "tr4", "one")
    assert (first.colour, second.colour, own.colour) == (1, 0, None)
    assert first.configs == (mnist("swmax", "tr1"),)
    assert second.configs == (mnist("swmax", "tr4"),)
    assert own.configs == (mnist("cnn", (1.0, 2.0)),)


def test_a_curve_of_samples_has_a_run_for_each_number() -> None:
    curves = [{"label": "a", "recipe": "few", "network": "cnn"}]
    made = _read("made-up", {**entry(title="", curves=curves), "renderer": "samples"})
    assert made.panels[0].curves[0].configs == tuple(few("cnn", count) for count in SAMPLES)


def test_an_entry_with_a_mistake_is_refused() -> None:
    curve = {"label": "a", "recipe": "mnist", "network": "cnn", "train": "tr1"}
    with pytest.raises(ValueError, match=r"unknown option network\.ration; \[network\] accepts: .*ratio"):
        _read("made-up", entry(title="", curves=[{**curve, "ration": 2.0}]))
    with pytest.raises(ValueError, match="shorter"):
        _read("made-up", entry(title="", curves=[{**curve, "train": ["tr1", "tr2"], "colour": [0]}]))
    with pytest.raises(ValueError, match="made-up: there is no recipe 'mnits'"):
        _read("made-up", entry(title="", curves=[{**curve, "recipe": "mnits"}]))
    with pytest.raises(ValueError, match="made-up: unknown captoin; an entry holds"):
        _read("made-up", {**entry(title="", curves=[curve]), "captoin": ""})
    with pytest.raises(ValueError, match="made-up: a table of its own needs code"):
        _read("made-up", {**entry(title="", curves=[curve]), "renderer": "table"})


@pytest.mark.parametrize(
    ("id", "change", "says"),
    [
        ("figure99", {"renderer": "curve"}, "figure99: renderer must be one of table, .*; got 'curve'"),
        ("made-up", {"where": ""}, "made-up needs `where`"),
        ("figure-five", {"where": ""}, "figure-five needs `where`"),
    ],
)
def test_an_entry_that_cannot_be_shown_is_refused_when_it_is_read(id: str, change, says: str) -> None:
    made = entry(title="", recipe="mnist", network="cnn", curves=[{"label": "", "train": "tr1"}])
    with pytest.raises(ValueError, match=says):
        _read(id, made | change)


def test_a_number_says_where_it_stands() -> None:
    made = entry(title="", recipe="mnist", network="cnn", curves=[{"label": "", "train": "tr1"}])
    assert _read("figure99", made | {"where": ""}).place == "Figure 99"
