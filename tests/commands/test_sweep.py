"""`scalechannels sweep`, and training from a stream, as a user starts them."""

from pathlib import Path

import pytest
from helpers.command_line import TINY, run


def write_configs(folder: Path) -> list[str]:
    for seed in (0, 1):
        (folder / f"seed{seed}.toml").write_text(f"{TINY}\nseed = {seed}\n")
    return ["seed0.toml", "seed1.toml"]


def test_a_sweep_does_every_run_and_then_says_that_they_are_done(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configs = write_configs(here)
    assert run("sweep", *configs, "--sizes", 1) == 0
    folders = sorted(path.name for path in (here / "runs").iterdir() if path.is_dir())
    assert [name.split("-")[-2] for name in folders] == ["seed0", "seed1"]
    said = capsys.readouterr()
    assert "2/2" in said.err
    assert all(name in said.out for name in folders)


def test_a_sweep_names_the_run_that_failed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configs = write_configs(here)
    (here / "seed1.toml").write_text(TINY + "\nbatch = 1000\n")
    assert run("sweep", *configs, "--sizes", 1) == 1
    said = capsys.readouterr().err
    assert "1 of 2 runs failed" in said
    assert "training.batch must be at most 64, the number of training images; got 1000" in said


def test_a_sweep_says_once_what_is_wrong_with_a_result(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configs = write_configs(here)
    assert run("sweep", *configs, "--sizes", 1) == 0
    damaged, _ = sorted((here / "runs").glob("*/result.json"))
    damaged.write_text("{")
    capsys.readouterr()
    assert run("sweep", *configs, "--sizes", 1) == 1
    said = capsys.readouterr().err
    assert said.count("is damaged") == 1
    assert "remove it to do this run again" in said
    assert "ValueError" not in said
    assert said.index("is damaged") < said.index("start the sweep again")


def test_a_sweep_of_a_missing_file_is_one_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sweep", "nowhere.toml") == 1
    assert "nowhere.toml" in capsys.readouterr().err


def test_train_can_stream(here: Path) -> None:
    assert run("train", "--config", "run.toml", "--sizes", 1, "--stream") == 0


@pytest.mark.slow
def test_a_sweep_on_a_local_ray(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sweep", *write_configs(here), "--sizes", 1, "--ray", "--device", "cpu") == 0
    assert len(list((here / "runs").glob("*/result.json"))) == 2
