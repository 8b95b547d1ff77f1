import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from helpers.tiny_runs import tiny
from safetensors.torch import save_file

from scalechannels.training import runs
from scalechannels.training.runs import CHECKPOINT, CONFIG, PREVIOUS, RESULT, Checkpoint, Run, environment


def opened(folder, **training) -> Run:
    return Run.open(folder, tiny(**{"epochs": 3, **training}).resolve())


def state(epoch: int) -> Checkpoint:
    history = [{"epoch": one, "loss": 0.5, "seconds": 1.0} for one in range(1, epoch + 1)]
    return Checkpoint(epoch, {"weight": torch.full((2, 3), float(epoch))}, history)


def test_a_folder_is_named_after_its_configuration_and_holds_it(tmp_path) -> None:
    run, other = opened(tmp_path), opened(tmp_path, seed=1)
    assert run.folder == tmp_path / run.config.name
    assert run.folder != other.folder
    assert runs.ResolvedRun.from_toml(run.folder / CONFIG) == run.config
    assert opened(tmp_path) == run
    assert [path.name for path in run.folder.iterdir()] == [CONFIG]


def test_a_folder_with_another_configuration_is_not_touched(tmp_path) -> None:
    run, other = opened(tmp_path), opened(tmp_path, seed=1)
    (run.folder / CONFIG).write_bytes((other.folder / CONFIG).read_bytes())
    with pytest.raises(ValueError, match="a different run than its folder's name says; move the folder away"):
        opened(tmp_path)
    assert (run.folder / CONFIG).read_bytes() == (other.folder / CONFIG).read_bytes()


def test_a_file_in_the_place_of_the_folder(tmp_path) -> None:
    (tmp_path / "runs").write_text("mine")
    with pytest.raises(FileExistsError, match="runs"):
        opened(tmp_path / "runs")
    assert (tmp_path / "runs").read_text() == "mine"


def test_a_folder_of_the_first_edition_is_opened(tmp_path) -> None:
    """Its config file has options that are gone, at the values at which they did nothing."""
    run = opened(tmp_path)
    path = run.folder / CONFIG
    path.write_text(path.read_text().replace("[training]\n", "[training]\nbeyond = 0\nphases = 1\n"))
    assert opened(tmp_path) == run
    path.write_text(path.read_text().replace("phases = 1", "phases = 2"))
    with pytest.raises(ValueError, match=r"training\.phases = 2 is no longer supported"):
        opened(tmp_path)


def test_a_checkpoint_comes_back(tmp_path) -> None:
    run = opened(tmp_path)
    assert run.checkpoints() == []
    for epoch in (1, 2, 3):
        run.save(state(epoch))
    newest = run.checkpoints()[0]
    assert (newest.epoch, newest.history) == (3, state(3).history)
    assert torch.equal(newest.tensors["weight"], torch.full((2, 3), 3.0))
    assert [found.epoch for found in run.checkpoints()] == [3, 2]


def test_a_kill_between_the_two_renames_leaves_the_epoch_before(tmp_path) -> None:
    run = opened(tmp_path)
    run.save(state(1))
    (run.folder / CHECKPOINT).rename(run.folder / PREVIOUS)
    assert [found.epoch for found in run.checkpoints()] == [1]
    run.save(state(2))
    assert [found.epoch for found in run.checkpoints()] == [2, 1]


def test_a_failed_save_leaves_the_checkpoint(tmp_path, monkeypatch) -> None:
    run = opened(tmp_path)
    run.save(state(1))

    def full(path: Path, content: bytes) -> None:
        path.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match=r"checkpoint.safetensors' cannot be written: No space left on device"):
        run.save(state(2))
    assert [found.epoch for found in run.checkpoints()] == [1]
    assert sorted(path.name for path in run.folder.iterdir()) == [CHECKPOINT, CONFIG]


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "no metadata", "other metadata"])
def test_a_damaged_checkpoint_is_named(tmp_path, damage) -> None:
    run = opened(tmp_path)
    run.save(state(1))
    run.save(state(2))
    path = run.folder / CHECKPOINT
    whole = path.read_bytes()
    if damage == "no metadata":
        save_file({"weight": torch.zeros(2)}, path)
    elif damage == "other metadata":
        save_file({"weight": torch.zeros(2)}, path, {"run": run.config.name, "epoch": "two", "history": "[]"})
    else:
        path.write_bytes({"cut": whole[:-5], "empty": b"", "text": b"not a checkpoint"}[damage])
    left = path.read_bytes()
    with pytest.raises(ValueError, match=r"is damaged .*remove it") as caught:
        run.checkpoints()
    assert str(path) in str(caught.value)
    assert path.read_bytes() == left
    path.unlink()  # as the message says
    assert run.checkpoints()[0].epoch == 1


@pytest.mark.parametrize(
    ("epoch", "entries"), [("10000", 2), ("10000", 10000), ("0", 0), ("-1", 2), ("3", 2), ("2", 3)]
)
def test_a_checkpoint_that_does_not_fit_its_epochs_is_named(tmp_path, epoch: str, entries: int) -> None:
    run = opened(tmp_path)
    metadata = {"run": run.config.name, "epoch": epoch, "history": json.dumps([{"seconds": 1.0}] * entries)}
    save_file({"weight": torch.zeros(2)}, run.folder / CHECKPOINT, metadata)
    with pytest.raises(ValueError, match=r"does not fit its run of 3 epochs: .*; remove it") as caught:
        run.checkpoints()
    assert str(run.folder / CHECKPOINT) in str(caught.value)


def test_a_checkpoint_of_another_run_is_not_taken(tmp_path) -> None:
    run, other = opened(tmp_path), opened(tmp_path, seed=1)
    other.save(state(1))
    (run.folder / CHECKPOINT).write_bytes((other.folder / CHECKPOINT).read_bytes())
    with pytest.raises(ValueError, match=f"belongs to the run {other.config.name}"):
        run.checkpoints()


def test_a_result_ends_the_run(tmp_path) -> None:
    run = opened(tmp_path)
    run.save(state(1))
    run.save(state(2))
    assert not run.done
    run.finish({"accuracy": 99.5})
    assert run.done
    assert run.result() == {"accuracy": 99.5}
    assert sorted(path.name for path in run.folder.iterdir()) == [CONFIG, RESULT]
    (run.folder / RESULT).write_text("{")
    with pytest.raises(ValueError, match=r"result\.json is damaged .*remove it"):
        run.result()


HOLD = """
import sys
from pathlib import Path
from pathlib import Path
from scalechannels.training.runs import Run, ResolvedRun
folder = Path(sys.argv[1])
with Run(ResolvedRun.from_toml(folder / "config.toml"), folder).exclusive():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_told_at_once(tmp_path) -> None:
    run = opened(tmp_path)
    command = [sys.executable, "-c", HOLD, str(run.folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(OSError, match="another process has been working on"), run.exclusive():
                pass
        finally:
            holder.kill()
    with run.exclusive():  # a killed process holds nothing
        pass


def test_opening_waits_for_the_one_that_writes(tmp_path) -> None:
    """Without the lock the holder would remove the other's unfinished config file as a leftover."""
    config = tiny().resolve()
    run = Run(config, tmp_path / config.name)
    with run.exclusive(), pytest.raises(OSError, match="another process has been working on"):
        Run.open(tmp_path, config)
    assert Run.open(tmp_path, config) == run


def test_environment_says_what_a_result_was_obtained_with(monkeypatch) -> None:
    monkeypatch.setenv("SCALECHANNELS_COMMIT", "abc123")
    found = environment(torch.device("cpu"))
    assert found["commit"] == "abc123"
    assert found["torch"] == torch.__version__
    assert found.keys() == {"scalechannels", "commit", "torch", "python", "device", "threads"}
    json.dumps(found)


def test_the_commit_is_that_of_this_package_only(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("SCALECHANNELS_COMMIT", raising=False)
    installed = tmp_path / "site-packages" / "runs.py"
    installed.parent.mkdir()
    installed.touch()
    for command in (
        ["init"],
        ["-c", "user.name=a", "-c", "user.email=a", "commit", "--allow-empty", "-m", "a"],
    ):
        subprocess.run(["git", *command], cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.setattr(runs, "__file__", str(installed))
    assert runs._commit() is None  # another project's repository around it
