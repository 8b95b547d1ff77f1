"""`scalechannels train`: what it does, what it says, and how it ends and resumes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.command_line import TINY, only, run

from scalechannels.training.config.run import RunConfig


def test_train_takes_the_file_and_lets_options_override_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", "--config", "run.toml", "--sizes", 1, 2, "--training.seed", 3, "--data.sizes", 2) == 0
    said = capsys.readouterr()
    folder = only(here)
    config = RunConfig.from_toml(folder / "config.toml")
    assert config.data.sizes == (2.0,)
    assert config.training.seed == 3
    assert (config.data.samples, config.training.epochs, config.network.low) == (64, 2, 1.0)
    result = json.loads((folder / "result.json").read_text())
    assert [entry["size"] for entry in result["evaluation"]["sizes"]] == [1.0, 2.0]
    lines = said.out.splitlines()
    assert lines[0].split() == ["size", "fovlse"]
    assert f"{result['evaluation']['sizes'][1]['accuracy']:.2f} %  trained" in lines[2]
    assert "trained" not in lines[1]
    assert lines[-1] == str(folder.relative_to(here))
    assert "finished before" not in said.err


def test_a_finished_run_says_that_it_is_done(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("train", "--config", "run.toml", "--sizes", 1)
    assert run(*words) == 0
    first = capsys.readouterr()
    before = {path: path.stat().st_mtime_ns for path in only(here).iterdir()}
    assert run(*words) == 0
    second = capsys.readouterr()
    assert second.out == first.out
    assert "This run was finished before: nothing was trained." in second.err
    assert {path: path.stat().st_mtime_ns for path in only(here).iterdir()} == before
    assert run("train", "--config", "run.toml", "--sizes", 2, "--split", "validation") == 0
    third = capsys.readouterr()
    assert third.out.splitlines()[1].split()[0] == "2"
    assert "validation split" in third.out
    assert "This run was finished before: it was only tested again." in third.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--config", "none.toml"), "error: 'none.toml' does not exist; give a TOML file"),
        (("--config", "."), "error: '.' is a folder; give a TOML file"),
        (("--config", "bad.toml"), "'bad.toml': unknown option data.smaples; [data] accepts: name, sizes,"),
        (("--data.sizes", "-1"), "--data.sizes must be a positive number; got -1.0"),
        (("--training.epochs", "0"), "--training.epochs must be at least 1; got 0"),
        (("--network.margin", "3"), "--network.margin is for swmax, not fovlse"),
        (("--network.batch-norm", "joint"), "--network.batch-norm works only with swmax, and joint with"),
        (("--network.window", "0"), "--network.window is only for your own images; remove it"),
        (("--network.pretrained", "3"), "--network.pretrained must be the scale of a channel, 0.5 to 8"),
        (("--network.low", "0.2"), "do not fit: the largest scale, 8, is not the smallest, 0.2, times"),
        (("--sizes", "0"), "--sizes must be positive numbers; got '0'"),
        (("--sizes", "1", "2", "1"), "--sizes must name each size only once; got '1 2 1'"),
        (
            ("--network.name", "swmax", "--data.name", "cifar10"),
            "swmax searches for small objects in large images",
        ),
        (("--network.name", "fovavgg"), "network.name must be one of fovavg, fovmax"),
        (("--config", "run.toml", "--training.batch", "100"), "training.batch must be at most 64, the"),
        (("--config", "run.toml", "--out", "run.toml/runs"), "the folder 'run.toml/runs' cannot be made"),
    ],
)
def test_what_a_user_can_mend_is_one_line(
    words: tuple[str, ...], message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "bad.toml").write_text(TINY.replace("samples", "smaples"))
    assert run("train", *words) == 1
    said = capsys.readouterr()
    assert said.err.startswith("error: ")
    assert message in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals differ")
def test_ctrl_c_ends_with_one_line_and_the_same_command_resumes(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(TINY.replace("epochs = 2", "epochs = 150"))
    words = [sys.executable, "-m", "scalechannels.cli", "train", "--config", "run.toml", "--sizes", "1"]
    process = subprocess.Popen(
        words,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # A suite that runs in the background ignores Ctrl-C, and its children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("runs/*/checkpoint.safetensors")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err.strip() == "stopped; run the same command again to resume"
    assert subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=250).returncode == 0
    (result,) = tmp_path.glob("runs/*/result.json")
    assert len(json.loads(result.read_text())["history"]) == 150
