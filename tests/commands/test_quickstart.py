"""The quickstart: a small one in full, and the whole one with the claim that it makes."""

import json
import re
from pathlib import Path

import pytest

from scalechannels.commands.quickstart import NAMES, Effort, configs, quickstart
from scalechannels.training import datasets

SMALL = Effort(samples=64, epochs=1, tested=20, sizes=(0.5, 1.0, 2.0, 4.0, 8.0), ratio=2**1.5)


def test_a_small_quickstart_writes_a_report_that_needs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(datasets, "STROKES_TEST", 40)
    report = quickstart(out=tmp_path / "q", effort=SMALL)
    said = capsys.readouterr().out
    for line in ("1/3  Training: scale channels", "2/3  Training: plain CNN", "3/3  Testing both", "trained"):
        assert line in said
    result = json.loads((tmp_path / "q" / "result.json").read_text())
    assert tuple(result["evaluation"]) == NAMES
    for entries in result["evaluation"].values():
        assert [entry["size"] for entry in entries] == list(SMALL.sizes)
        assert {entry["images"] for entry in entries} == {20}
    text = report.read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", text)  # nothing is loaded from elsewhere
    assert "http" not in re.sub(r'xmlns(:xlink)?="[^"]*"', "", text)
    assert text.count("<svg") == 2
    assert text.count("data:image/png;base64,") == 9
    assert "#1f6fd0" not in text.split("</head>")[1]  # pictures take their colours from the page
    for name in NAMES:
        for entry in result["evaluation"][name]:
            assert f"{entry['accuracy']:.1f} %" in text
    assert (tmp_path / "q" / "accuracy.png").read_bytes().startswith(b"\x89PNG")


def test_a_second_quickstart_trains_nothing_and_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "STROKES_TEST", 40)
    results = []
    for _ in range(2):
        quickstart(out=tmp_path, effort=SMALL)
        results.append(json.loads((tmp_path / "result.json").read_text()))
        weights = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/model.safetensors")}
        results[-1]["weights"] = {str(path): stamp for path, stamp in weights.items()}
    first, second = results
    assert len(first["weights"]) == 2
    assert second["weights"] == first["weights"]
    assert second["evaluation"] == first["evaluation"]


def test_both_networks_learn_the_same_images_by_the_same_recipe() -> None:
    scales, plain = configs("mnist", Effort())
    assert scales.data == plain.data
    assert scales.training == plain.training
    assert scales.data.sizes == (1.0,)
    assert len(Effort().sizes) >= 9
    assert (Effort().sizes[0], Effort().sizes[-1]) == (0.5, 8)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_quickstart_shows_the_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "STROKES_TEST", 2_000)  # other tests take fewer
    quickstart(out=tmp_path)
    result = json.loads((tmp_path / "result.json").read_text())
    assert {entry["images"] for name in NAMES for entry in result["evaluation"][name]} == {500}
    channels, plain = (
        {entry["size"]: entry["accuracy"] for entry in result["evaluation"][name]} for name in NAMES
    )
    assert len(channels) == 17
    assert all(accuracy >= 95 for accuracy in channels.values())  # as the README says of its picture
    assert plain[1.0] >= 95  # it did learn
    assert plain[4.0] <= 40  # and it does not know other sizes
    assert plain[0.5] <= 60
