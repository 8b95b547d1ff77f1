"""What `scalechannels train --data FOLDER` says before it trains, and what it is called."""

from pathlib import Path

import pytest
from helpers.own_folder import chosen, write

from scalechannels.report.own_images import described, in_pixels, uncertainty
from scalechannels.report.own_images_run import Asked, _tried, run_name
from scalechannels.training.config import DataConfig, RunConfig
from scalechannels.training.runs import Run


def test_the_size_of_objects_is_told_before_and_after_they_are_shrunk(tmp_path: Path) -> None:
    said = described(chosen(write(tmp_path / "large", [(240, 240)] * 4)))
    assert said.startswith(
        "objects of 240 pixels, shrunk to 120 (factor 2), later 0.25 to 4 times that size; 21 "
    )
    small = chosen(write(tmp_path / "small", [(40, 40)] * 4), range=(0.5, 2.0))
    assert described(small).startswith("objects of 40 pixels, later 0.5 to 2 times that size; 13 channels")


def test_pixels_and_names_are_written_as_people_do(tmp_path: Path) -> None:
    assert [in_pixels(one) for one in (12.34, 120, 999, 1000, 4032)] == [
        "12.3",
        "120",
        "999",
        "1,000",
        "4,032",
    ]
    entry = {"group": "size", "value": 1, "images": 9, "margin": 3.0}
    for name, whose in (("resized CNN", "resized CNN's at"), ("scale channels", "scale channels' at")):
        result = {"verdict": {"winner": name}, "candidates": {name: {"test": [entry]}}}
        assert f"such as the {whose} size 1 (own)" in uncertainty(result)


def test_a_run_is_called_by_its_folder_its_images_and_what_was_asked_for(tmp_path: Path) -> None:
    names = []
    for folder, range_, budget in (
        ("my photos", None, None),
        ("my photos", (0.5, 2.0), None),
        ("x", None, "1m"),
    ):
        root = tmp_path / folder
        config = RunConfig(DataConfig("folder", folder=str(write(root, [(30, 30)] * 4)), range=range_))
        asked = Asked(Path("runs"), "cpu", budget=budget)
        names.append(run_name(config, config.resolve(), asked))
        assert run_name(config, config.resolve(), asked) == names[-1]
    assert [name.rpartition("-")[0] for name in names] == ["my-photos", "my-photos", "x"]
    assert len({name.rpartition("-")[2] for name in names}) == 3


def test_a_damaged_trial_is_named(tmp_path: Path) -> None:
    run = Run(chosen(write(tmp_path / "photos", [(30, 30)] * 4)), tmp_path)
    for content in ("[]", "{}", "cut sho"):
        (tmp_path / "trial.json").write_text(content)
        with pytest.raises(ValueError, match=r"trial\.json' is damaged .*; remove it to test again"):
            _tried("resized CNN", run, [], Asked(tmp_path, "cpu"), print)
