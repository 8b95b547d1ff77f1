"""The command line as a whole: its help, and how every command ends."""

import inspect
import re
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.command_line import run

from scalechannels import cli


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
    for words in (
        "train        Train a network",
        "evaluate     Test a trained",
        "predict      Predict the cl",
    ):
        assert words in said


@pytest.mark.parametrize("command", ["train", "sweep", "evaluate", "predict", "detect", "quickstart"])
def test_every_command_has_an_example_in_its_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command, "--help") == 0
    assert f"scalechannels {command} " in re.split("[Ee]xample", capsys.readouterr().out)[1]


def test_unknown_options_are_refused_with_the_nearest_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("train", "--data.nmae", "strokes") != 0
    assert "--data.name" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("predikt",), "there is no command 'predikt'; did you mean predict?"),
        (("nonsense",), "there is no command 'nonsense'; see scalechannels --help"),
        (("--nonsense",), "there is no option '--nonsense'; see scalechannels --help"),
        (("detect", "a.png", "--invret"), "there is no option '--invret'; did you mean --invert?"),
        (
            ("data", "scene", "a.png", "b.png"),
            "unexpected argument 'b.png'; see scalechannels data scene --help",
        ),
        (("data", "fetch"), "scalechannels data fetch needs NAME; see scalechannels data fetch --help"),
        (("export", "net"), "scalechannels export needs --onnx; see scalechannels export --help"),
        (("predict", "net", "a.png", "--out"), "--out needs a value"),
        (("train", "--sizes"), "--sizes needs a value"),
        (("train", "--data", "photos", "--sizes"), "--sizes needs a value"),
        (("evaluate", "fovlse-mnist", "--sizes"), "--sizes needs a value"),
        (("evaluate", "fovlse-mnist", "--sizes", "--out", "a.json"), "--sizes needs a value"),
        (("sweep", "a.toml", "--sizes"), "--sizes needs a value"),
        (("quickstart", "--out", __file__), f"--out must be a folder, not a file; got '{__file__}'"),
        (("data", "scene", "a.png", "--sizes", "4"), "--sizes needs 2 values; got 1"),
        (
            ("detect", "a.png", "--device", "tpu"),
            "--device must be cpu, cuda, or a GPU by its number such as cuda:1; got 'tpu'",
        ),
        (("table", "1", "--format", "yaml"), "--format must be text, markdown or json; got 'yaml'"),
        (("data", "generate", "mnist"), "NAME must be mnist-large-scale or emoji; got 'mnist'"),
        (("demo", "--port", "http"), "--port must be a whole number; got 'http'"),
        (("detect", "a.png", "--threshold", "high"), "--threshold must be a number; got 'high'"),
        (("evaluate", "net", "--sizes", "1", "0"), "--sizes must be positive numbers; got '1 0'"),
        (("predict", "", "x.png"), "an argument must not be empty; got ''"),
        (("predict", "net", ""), "an argument must not be empty; got ''"),
        (("train", "--data", ""), "--data must not be empty; got ''"),
        (("train", "--out="), "--out must not be empty; got ''"),
        (("evaluate", "net", "--out", ""), "--out must not be empty; got ''"),
        *(
            (("evaluate", "net", "--sizes", size), f"--sizes must be {wanted}; got '{size}'")
            for size, wanted in {
                **dict.fromkeys(("0", "-1", "nan", "inf"), "positive numbers"),
                **dict.fromkeys(("1e-9", "1e9", "1e300"), "from 0.001 to 1000"),
            }.items()
        ),
        (("train", "--data.sizes", "1e9"), "--data.sizes must be from 0.001 to 1000; got 1000000000.0"),
        (("train", "--network.width", "10000000"), "--network.width must be from 1 to 16; got 10000000"),
        (
            ("train", "--network.ratio", "1.0000001"),
            "--network.low, --network.high and --network.ratio do not fit: a grid may have 1024 scales; got "
            "2.77e+07: choose a narrower range or a larger ratio",
        ),
        *(
            (("train", option, value), f"{option} must be {wanted}; got {value}")
            for option, value, wanted in (
                ("--network.low", "1e-300", "from 0.0001 to 10000"),
                ("--network.high", "1e+300", "from 0.0001 to 10000"),
                ("--network.blur", "1e+300", "at most 10000"),
                ("--network.shifts", "1000000000", "at most 256"),
                ("--network.margin", "1000000000", "at most 256"),
                ("--training.jitter", "1000000000", "at most 256"),
                ("--training.crops", "1000000000", "at most 256"),
                ("--training.images", "1000000000000", "at most 100 million"),
                ("--training.rate", "1e+300", "at most 1e38"),
                ("--training.detail", "1e-300", "at least 0.01"),
            )
        ),
        (
            ("train", "--data", "a", "--data.object-size", "1e+300"),
            "--data.object-size must be at most 1000000; got 1e+300",
        ),
        *(
            (("train", "--data", "a", "--pixel-size", size, "--deploy-pixel-sizes", "1"), said)
            for size, said in {
                "0": "--pixel-size must be a positive number; got 0.0",
                "nan": "--pixel-size must be a positive number; got nan",
                "1e300": "--pixel-size and --deploy-pixel-sizes may differ by a factor of 1000; got 1e+300 "
                "and 1",
            }.items()
        ),
        (("report", "--document", "nowhere.md"), "'nowhere.md' does not exist"),
        (("figure", "5", "--out", "file"), "'file' already exists and is not a folder"),
    ],
)
def test_what_is_refused_is_one_plain_sentence(
    words: tuple[str, ...],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert run(*words) == 1
    assert capsys.readouterr().err == f"error: {said}\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_terminals_of_any_encoding_show_help_and_errors(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = [TextIOWrapper(BytesIO(), encoding) for _ in range(2)]
    monkeypatch.setattr(sys, "stdout", shown[0])
    monkeypatch.setattr(sys, "stderr", shown[1])
    for command in cli.COMMANDS:
        assert run(command, "--help") == 0
    assert run("predict", "σ-net", "a.png") == 1
    text, error = (stream.buffer.getvalue().decode(encoding) for stream in shown if not stream.flush())
    assert ("σ" if encoding == "utf-8" else r"\u03c3") in text
    assert ("'σ-net'" if encoding == "utf-8" else r"'\u03c3-net'") in error


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


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe of a shell")
def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    told = "import sys; sys.argv = ['', 'table', 'evidence']; from scalechannels.cli import main; main()"
    command = f'"{sys.executable}" -c "{told}" | head -1'
    ended = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert ended.stdout.startswith("What each ingredient is worth")
    assert ended.stderr == ""


def test_a_command_may_have_two_words(tmp_path: Path) -> None:
    (tmp_path / "say_it.py").write_text('def say_it() -> None:\n    """Say it."""\n    print("said")\n')
    code = f"""
import importlib, scalechannels.commands as commands
from scalechannels import cli
commands.__path__.append({str(tmp_path)!r})
cli.COMMANDS += ("say_it",)
cli.app.command("scalechannels.commands.say_it:say_it")
cli.main(["say-it"])
cli.main([])
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("said\n")
    assert re.search(r"say-it +Say it\.", said.stdout)


def test_a_gpu_by_its_number_is_the_one_that_cuda_means(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    chosen: list[int] = []
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="PyTorch finds no CUDA device here; got 'cuda:1'"):
        cli.require_device("cuda:1")
    assert (cli.require_device("cpu"), cli.require_device(None)) == ("cpu", "cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert (cli.require_device("cuda"), cli.require_device(None), chosen) == ("cuda", "cuda", [])
    assert (cli.require_device("cuda:1"), chosen) == ("cuda", [1])
    with pytest.raises(ValueError, match="must be cuda:0 to cuda:1, the GPUs here; got 'cuda:2'"):
        cli.require_device("cuda:2")
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(ValueError, match="torchrun gives each process its own GPU"):
        cli.require_device("cuda:0")
    assert chosen == [1]
