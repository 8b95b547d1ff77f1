"""`scalechannels train` and `evaluate`: what they do, what they say, and how they end."""

import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.command_line import run

from scalechannels import cli
from scalechannels.training import datasets
from scalechannels.training.config import RunConfig

TINY = """
[data]
sizes = [1, 2]
samples = 64
[network]
low = 1
high = 2
ratio = 1.4142135623730951
[training]
epochs = 2
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets, "STROKES_TEST", 40)
    (tmp_path / "run.toml").write_text(TINY)
    return tmp_path


def only(here: Path) -> Path:
    (folder,) = [path for path in (here / "runs").iterdir() if path.is_dir()]
    return folder


def test_help_is_fast_and_says_what_each_command_is_for() -> None:
    code = """
import atexit, sys
from scalechannels.cli import main
heavy = ("torch", "numpy", "matplotlib", "PIL")
atexit.register(lambda: print([name for name in heavy if name in sys.modules]))
main(["--help"])
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split("\n")[-2] == "[]"
    for words in ("train        Train a network", "evaluate     Test a trained", "predict      Class, prob"):
        assert words in said


@pytest.mark.parametrize("command", ["train", "sweep", "evaluate", "predict", "detect", "quickstart"])
def test_every_command_has_an_example_in_its_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command, "--help") == 0
    assert f"scalechannels {command} " in capsys.readouterr().out.split("Example")[1]


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
    assert "done before" not in said.err


def test_a_finished_run_says_that_it_is_done(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("train", "--config", "run.toml", "--sizes", 1)
    assert run(*words) == 0
    first = capsys.readouterr()
    before = {path: path.stat().st_mtime_ns for path in only(here).iterdir()}
    assert run(*words) == 0
    second = capsys.readouterr()
    assert second.out == first.out
    assert "This run was done before: nothing was trained." in second.err
    assert {path: path.stat().st_mtime_ns for path in only(here).iterdir()} == before
    assert run("train", "--config", "run.toml", "--sizes", 2, "--split", "validation") == 0
    third = capsys.readouterr()
    assert third.out.splitlines()[1].split()[0] == "2"
    assert "validation split" in third.out
    assert "This run was done before: it was only tested again." in third.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--config", "none.toml"), "none.toml"),
        (("--config", "bad.toml"), "bad.toml: unknown option data.smaples; known in data: name, sizes,"),
        (("--data.sizes", "-1"), "data.sizes is one positive size"),
        (("--training.epochs", "0"), "training.epochs is at least 1, got 0"),
        (("--sizes", "0"), "for --sizes. Sizes are positive"),
        (("--sizes", "1", "2", "1"), '"(1.0, 2.0, 1.0)" for --sizes. Give each size once'),
        (("--network.name", "swmax", "--data.name", "cifar10"), "swmax looks for objects over space"),
        (("--config", "run.toml", "--training.batch", "100"), "a batch of 100 is larger than the 64"),
        (("--config", "run.toml", "--out", "run.toml/runs"), "cannot write the run's folder run.toml/runs"),
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


def test_unknown_options_are_refused_with_the_nearest_name(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", "--data.nmae", "strokes") != 0
    assert "--data.name" in capsys.readouterr().err
    assert not (here / "runs").exists()


def failing(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every command end so."""

    def command() -> None:
        raise error

    parsed = command, inspect.signature(command).bind(), {}
    monkeypatch.setattr(cli, "app", SimpleNamespace(parse_args=lambda words, **options: parsed))


@pytest.mark.parametrize("memory", [MemoryError("64 GiB"), RuntimeError("can't allocate memory: 9 bytes")])
def test_out_of_memory_names_the_knob(
    memory: Exception, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(memory, monkeypatch)
    assert run("train") == 1
    said = capsys.readouterr().err
    assert said.startswith("error: out of memory")
    assert "--training.batch" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("fault", [RuntimeError("shapes do not fit"), ZeroDivisionError("by zero")])
def test_faults_keep_their_trace(fault: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(fault, monkeypatch)
    with pytest.raises(type(fault), match=str(fault)):
        run("train")


@pytest.mark.parametrize(
    ("command", "said"),
    [("predict", "stopped"), ("data", "stopped"), ("train", "stopped; run the same command again to resume")],
)
def test_ctrl_c_is_one_line(
    command: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(KeyboardInterrupt(), monkeypatch)
    assert run(command) == 130
    assert capsys.readouterr().err == f"\n{said}\n"


def test_evaluate_writes_one_json_and_a_table(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("train", "--config", "run.toml", "--sizes", 1) == 0
    capsys.readouterr()
    folder = only(here)
    assert run("evaluate", folder, "--sizes", 0.5, 2, "--split", "validation", "--out", "new/r.json") == 0
    said = capsys.readouterr().out
    result = json.loads((here / "new" / "r.json").read_text())
    sizes = result["evaluation"]["sizes"]
    assert [entry["size"] for entry in sizes] == [0.5, 2.0]
    assert result["evaluation"]["split"] == "validation"
    assert result["channels"] == pytest.approx([1, 2**0.5, 2])
    assert result["trained"] == [1.0, 2.0]
    for entry in sizes:
        right = sum(entry["confusion"][k][k] for k in range(10))
        assert entry["accuracy"] == pytest.approx(100 * right / 40)
        assert len(entry["per_class"]) == 10
        assert sum(entry["selection"]) == pytest.approx(1)
        assert f"{entry['accuracy']:.2f} %" in said
    assert "σ = " in said
    assert said.splitlines()[-1] == "new/r.json"
    assert run("evaluate", folder, "--sizes", 2, "--out", "test.json") == 0
    other = json.loads((here / "test.json").read_text())["evaluation"]
    assert other["split"] == "test"
    assert other["sizes"][0]["selection"] != sizes[1]["selection"]


def test_evaluate_needs_to_know_the_data_of_a_network_without_a_run(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from scalechannels import cnn

    cnn().save_pretrained("net")
    assert run("evaluate", "net", "--sizes", 1) == 1
    assert capsys.readouterr().err == "error: net does not say what it was trained on: give --data.name\n"
    assert run("evaluate", "net", "--sizes", 1, "--data.name", "strokes") == 0
    assert "channel" not in capsys.readouterr().out


def test_evaluate_does_not_overwrite_the_run_and_knows_one_that_is_not_done(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", "--config", "run.toml", "--sizes", 1) == 0
    folder = only(here)
    before = (folder / "result.json").read_text()
    other = Path(shutil.copytree(folder, here / "others" / folder.name))
    capsys.readouterr()
    for place in (folder, other):  # its own result, and that of another run
        assert run("evaluate", folder, "--sizes", 1, "--out", place / "result.json") == 1
        assert "result.json belongs to the network in" in capsys.readouterr().err
        assert json.loads((place / "result.json").read_text())["history"]
    assert run("evaluate", folder, "--sizes", 1, "--out", folder / "more.json") == 0
    assert run("evaluate", folder, "--sizes", 1, "--out", "result.json") == 0  # in no run's folder
    assert run("evaluate", folder, "--out", "x.txt") == 1
    assert (folder / "result.json").read_text() == before
    (folder / "config.json").unlink()
    capsys.readouterr()
    assert run("evaluate", folder) == 1
    assert "is not done; resume it with scalechannels train --config" in capsys.readouterr().err
    assert run("evaluate", "nowhere", "--data.name", "strokes") == 1
    assert "nowhere is no saved network" in capsys.readouterr().err


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
