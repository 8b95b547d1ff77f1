"""The table of who wins on how many images, made where there is little beyond PyTorch and NumPy."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.bare_python import run_bare

from scalechannels.data.folder import image_folder
from scalechannels.training.own_images import FolderData

ROOT = Path(__file__).parent.parent
TINY = """
import torch
from benchmarks import own_images
from benchmarks.own_image_folders import CLOTHES
noise = torch.rand(80, 1, 28, 28, generator=torch.Generator().manual_seed(0))
own_images.clothes = lambda root, split: (noise[:40] if split == "train" else noise[40:], list(CLOTHES) * 4)
own_images.COUNTS, own_images.SEEDS, own_images.TESTED, own_images.CHECKED = (1,), (0,), 1, 1
own_images.PASSES, own_images.METHODS = 1, (own_images.RESIZED, own_images.EVERYWHERE)
sys.argv = ["", "--output", "OUTPUT", "--steps", "1", "--minutes", "0"]
own_images.main()
print("AGAIN")
sys.argv[-1] = "9"
own_images.main()
"""


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT)
    module = importlib.import_module("benchmarks.own_images")
    noise = torch.rand(120, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    parts = {"train": noise[:60], "test": noise[60:]}
    names = list(importlib.import_module("benchmarks.own_image_folders").CLOTHES) * 6
    monkeypatch.setattr(module, "clothes", lambda root, split: (parts[split], names))
    monkeypatch.setattr(module, "TESTED", 1)
    return module


def test_one_command_measures_what_is_missing_and_no_more(tmp_path: Path) -> None:
    output = tmp_path / "rows.jsonl"
    first, second = run_bare(TINY.replace("OUTPUT", str(output))).split("AGAIN\n")
    assert "1 0 " not in first  # the time was over before the first one
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    asked = [(row["kind"], row["method"]) for row in rows]
    everywhere = [(kind, "scale channels everywhere") for kind in ("crops", "frames")]
    assert asked == [("crops", "resized CNN"), *everywhere]
    for row in rows:
        assert set(row["accuracy"]) == {"1/2", "1", "2", "2 off", "4 off"}
        assert (row["images"], row["tested"]) == (1, 10)
    assert "\n| 1 | crops | " in second


def test_rows_that_are_kept_already_are_not_measured_again(
    benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, output = tmp_path / "kept.jsonl", tmp_path / "new.jsonl"
    rows = [{**case, "accuracy": dict.fromkeys(benchmark.MEANS, 50.0)} for case in benchmark.cases()]
    kept.write_text("".join(json.dumps(row) + "\n" for row in rows[:-1]))
    monkeypatch.setattr(benchmark, "RESULTS", kept)
    monkeypatch.setattr(benchmark, "measured", lambda case, *_: {**case, **rows[-1], "seconds": 1.0})
    monkeypatch.setattr("sys.argv", ["own_images", "--output", str(output)])
    benchmark.main()
    assert [json.loads(line) for line in output.read_text().splitlines()] == [{**rows[-1], "seconds": 1.0}]
    assert "| 1,000 | frames | – | 50.0 ± 0.0 |" in capsys.readouterr().out


def test_rows_of_an_earlier_recipe_are_measured_again_and_replaced(
    benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, output = tmp_path / "kept.jsonl", tmp_path / "new.jsonl"
    rows = [{**case, "accuracy": dict.fromkeys(benchmark.MEANS, 50.0)} for case in benchmark.cases()]
    earlier = [{**row, "moved": 9} for row in rows[:2]]
    kept.write_text("".join(json.dumps(row) + "\n" for row in [*earlier, *rows[2:]]))
    monkeypatch.setattr(benchmark, "RESULTS", kept)
    again = {"accuracy": dict.fromkeys(benchmark.MEANS, 60.0), "seconds": 1.0}
    monkeypatch.setattr(benchmark, "measured", lambda case, *_: {**case, **again})
    monkeypatch.setattr("sys.argv", ["own_images", "--output", str(output)])
    benchmark.main()
    new = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["method"] for row in new] == [row["method"] for row in rows[:2]]
    monkeypatch.setattr("sys.argv", ["own_images", "--collect", str(output)])
    benchmark.main()
    assert [json.loads(line) for line in kept.read_text().splitlines()] == [*rows[2:], *new]


@pytest.mark.parametrize("kind", ["crops", "frames"])
def test_images_are_those_of_a_folder_of_files(benchmark: Any, kind: str, tmp_path: Path) -> None:
    """So that rows do not depend on whether files lay between."""
    folders = importlib.import_module("benchmarks.own_image_folders")
    case = {
        "images": 2,
        "seed": 1,
        "kind": kind,
        "method": benchmark.CENTRE,
        "moved": {"crops": 2, "frames": 6}[kind],
    }
    images = benchmark.images_of(case, None)
    names = {"train": "train", "validation": "val", "test": "test"}
    for part, held in zip(names, images.parts(0, 0), strict=True):
        shown = torch.stack(held.pixels) / 255
        folders.write(tmp_path / names[part], shown, [images.classes[label] for label in held.labels])
    files = image_folder(tmp_path)
    config = benchmark.configured(case, images, "cpu", 1)
    assert (files.classes, files.labels, files.given) == (images.classes, images.labels, images.given)
    mine, theirs = (
        FolderData(config.data, torch.device("cpu"), None, found).training() for found in (images, files)
    )
    assert torch.equal(mine.images, theirs.images)
    assert torch.equal(mine.labels, theirs.labels)
    assert config.training.precision == benchmark.configured(case, images, "cuda", 1).training.precision
