"""fit: the same weights however often it was interrupted, and clear words for what cannot be trained."""

import dataclasses
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from helpers.tiny_runs import SIZES, assert_same, tiny, trained, weights
from safetensors import safe_open
from safetensors.torch import save_file

import scalechannels
from scalechannels.training import fit as fit_module
from scalechannels.training import group, inputs
from scalechannels.training.fit import fit
from scalechannels.training.runs import CHECKPOINT, Run
from scalechannels.training.trainer import Trainer

TESTS = Path(__file__).parents[1]
PATHS = os.pathsep.join(map(str, (TESTS, TESTS.parent)))  # this package, not an installed one
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": PATHS}


class Killed(BaseException):
    """Stands for Ctrl-C, which would end the tests too."""


def _interrupted(learn):
    taken = []

    def interrupted(self, *batch) -> None:
        if len(taken) == 2:
            raise Killed
        taken.append(learn(self, *batch))

    return interrupted


def stop_after(monkeypatch, epochs: int) -> None:
    """Interrupt, as Ctrl-C would, in the middle of the epoch that follows."""
    original, done = Trainer.epoch, []

    def epoch(self, order, rate, report=None):
        if len(done) == epochs:
            monkeypatch.setattr(Trainer, "learn", _interrupted(Trainer.learn))
        else:
            done.append(rate)
        return original(self, order, rate, report)

    monkeypatch.setattr(Trainer, "epoch", epoch)


def test_a_run_leaves_a_network_and_a_result(tmp_path) -> None:
    run = trained(tiny(), tmp_path)
    result = run.result()
    assert {path.name for path in run.folder.iterdir()} == {
        "config.toml", "config.json", "model.safetensors", "README.md", "result.json",
    }  # fmt: skip
    assert [entry["size"] for entry in result["evaluation"]["sizes"]] == list(SIZES)
    assert [entry["epoch"] for entry in result["history"]] == [1, 2]
    assert result["history"][1]["loss"] < result["history"][0]["loss"]
    assert result["name"] == run.config.name == run.folder.name
    assert result["environment"]["processes"] == 1
    assert result["parameters"] == 68_870
    network = scalechannels.load(run.folder)
    assert_same(network.state_dict(), weights(run))


@pytest.mark.parametrize("name", ["fovlse", "fovconc", "cnn", "swmax"])
def test_every_network_can_be_trained(tmp_path, name) -> None:
    run = trained(tiny(name, samples=20, epochs=1, batch=10), tmp_path)
    assert run.done
    assert len(run.result()["history"]) == 1


def test_same_seed_same_weights_another_seed_others(tmp_path) -> None:
    torch.manual_seed(1)
    one = weights(trained(tiny(), tmp_path / "one"))
    torch.manual_seed(2)  # the caller's random state has no say
    assert_same(one, weights(trained(tiny(), tmp_path / "two")))
    other = weights(trained(tiny(seed=1), tmp_path / "one"))
    assert not torch.equal(one["backbone.dense.weight"], other["backbone.dense.weight"])


@pytest.mark.parametrize("epochs", [0, 1, 2])
def test_an_interrupted_run_ends_as_if_it_had_not_been(tmp_path, monkeypatch, epochs) -> None:
    config = tiny(epochs=3)
    whole = trained(config, tmp_path / "whole")
    with monkeypatch.context() as patch:
        stop_after(patch, epochs)
        with pytest.raises(Killed):
            trained(config, tmp_path / "parts")
    run = Run.open(tmp_path / "parts", config.resolve())
    assert not run.done
    assert [state.epoch for state in run.checkpoints()][:1] == ([epochs] if epochs else [])
    resumed = trained(config, tmp_path / "parts")
    assert_same(weights(whole), weights(resumed))
    one, other = (
        [(entry["epoch"], entry["rate"], entry["loss"]) for entry in run.result()["history"]]
        for run in (whole, resumed)
    )
    assert one == other
    assert whole.result()["evaluation"] == resumed.result()["evaluation"]


def test_a_run_killed_while_it_was_evaluated_is_not_trained_again(tmp_path, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(group, "evaluation", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            trained(tiny(), tmp_path)
    with monkeypatch.context() as patch:
        stop_after(patch, 0)  # any epoch would be one too many
        run = trained(tiny(), tmp_path)
    assert_same(weights(run), weights(trained(tiny(), tmp_path / "whole")))


def test_a_finished_run_is_left_alone(tmp_path, monkeypatch) -> None:
    run = trained(tiny(), tmp_path)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in run.folder.iterdir()}
    monkeypatch.setattr(fit_module, "Group", None)  # nothing may be begun
    assert trained(tiny(), tmp_path) == run
    assert before == {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in run.folder.iterdir()}


def test_runs_together_are_the_runs_alone(tmp_path, double) -> None:
    """Without dropout, which draws other numbers: all weights agree to 1e-6 after ten steps in float64.

    In float32 they agree less, since Adam makes full steps even of gradients that are rounding noise. Those
    of a bias before batch norm are nothing else in any precision, and left out here.
    """
    configs = [tiny(dropout=0.0, seed=seed, rate=1e-3) for seed in (0, 1)]
    together = fit(configs, tmp_path / "together", device="cpu", sizes=SIZES, together=True)
    for config, run in zip(configs, together, strict=True):
        assert run.result()["seconds"]["runs_together"] == 2
        alone = weights(trained(config, tmp_path / "alone"))
        for name, value in weights(run).items():
            if not re.search(r"convolutions\.\d\.0\.bias|running_mean|num_batches_tracked", name):
                assert value.dtype == torch.float64
                torch.testing.assert_close(value, alone[name], rtol=1e-6, atol=1e-6, msg=name)


def test_the_average_of_few_steps_is_trained(tmp_path) -> None:
    """A decay of 0.999 over ten steps keeps 99 % of the first weights, and the statistics with them."""
    plain = tiny("fovavg", samples=200, epochs=4, average=0.999, average_corrected=False)
    corrected = dataclasses.replace(
        plain, training=dataclasses.replace(plain.training, average_corrected=None)
    )
    accuracies = [
        trained(config, tmp_path).result()["evaluation"]["sizes"][0]["accuracy"]
        for config in (plain, corrected)
    ]
    assert accuracies[0] < 30 < 60 < accuracies[1]


@pytest.mark.parametrize("average", [0.0, 0.5], ids=["alike", "one averaged"])
def test_runs_together_go_on_from_the_epoch_they_share(average, tmp_path, monkeypatch) -> None:
    """Killed between the saves of two runs: the one that is ahead goes back by one epoch."""
    configs = [tiny(epochs=3), tiny(epochs=3, seed=1, average=average)]
    options = {"device": "cpu", "sizes": SIZES, "together": True}
    whole = fit(configs, tmp_path / "whole", **options)
    original, saved = Run.save, []

    def save(self, checkpoint) -> None:
        if len(saved) == 3:
            raise Killed
        saved.append((self.config.training.seed, checkpoint.epoch))
        original(self, checkpoint)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "save", save)
        with pytest.raises(Killed):
            fit(configs, tmp_path / "parts", **options)
    assert saved == [(0, 1), (1, 1), (0, 2)]
    epochs: list[float] = []
    train = Trainer.epoch
    monkeypatch.setattr(
        Trainer, "epoch", lambda self, order, rate, *r: epochs.append(1) or train(self, order, rate, *r)
    )
    resumed = fit(configs, tmp_path / "parts", **options)
    assert len(epochs) == 2
    for one, other in zip(whole, resumed, strict=True):
        assert_same(weights(one), weights(other))


def test_the_time_of_runs_together_is_shared_among_all_of_them(tmp_path, monkeypatch) -> None:
    """Killed when the first of them was evaluated: the other one did not learn alone."""
    configs = [tiny(), tiny(seed=1)]
    options = {"device": "cpu", "sizes": SIZES, "together": True}
    original, finished = Run.finish, []

    def finish(self, result) -> None:
        original(self, result)
        finished.append(self)
        if len(finished) == 1:
            raise Killed

    monkeypatch.setattr(Run, "finish", finish)
    with pytest.raises(Killed):
        fit(configs, tmp_path, **options)
    first, second = (run.result()["seconds"] for run in fit(configs, tmp_path, **options))
    assert first["training"] == second["training"]
    assert first["runs_together"] == second["runs_together"] == 2


def test_a_new_run_does_not_set_back_older_ones(tmp_path, monkeypatch) -> None:
    options = {"device": "cpu", "sizes": SIZES, "together": True}
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(Killed):
            fit([tiny(epochs=3)], tmp_path, **options)
    epochs: list[int] = []
    train = Trainer.epoch
    monkeypatch.setattr(
        Trainer, "epoch", lambda self, order, *rest: epochs.append(len(order)) or train(self, order, *rest)
    )
    runs = fit([tiny(epochs=3, seed=1), tiny(epochs=3)], tmp_path, **options)
    assert epochs == [1, 1, 1, 1]  # three of the new one, one of the older
    assert all(run.done for run in runs)


def test_the_same_run_twice_in_a_list_is_one(tmp_path) -> None:
    runs = fit([tiny(), tiny()], tmp_path, device="cpu", sizes=SIZES)
    assert runs[0] == runs[1]
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 1


def test_windows_that_do_not_fit_are_made_in_every_step(tmp_path, monkeypatch) -> None:
    """The same weights to 1e-5: each window is computed from its image alone, whatever the batch."""
    cached = weights(trained(tiny(), tmp_path / "cached"))
    monkeypatch.setattr(inputs, "free_memory", lambda device: 1000)
    seen = []
    original = inputs.Looks.forward
    monkeypatch.setattr(
        inputs.Looks, "forward", lambda self, *given: seen.append(given[0].ndim) or original(self, *given)
    )
    for together in (False, True):
        made = weights(trained(tiny(), tmp_path / f"made {together}", together=together))
        for name, value in cached.items():
            torch.testing.assert_close(value, made[name], rtol=1e-5, atol=1e-5, msg=name)
    assert set(seen) == {5}  # images (1, B, C, H, W), not windows
    with pytest.raises(MemoryError, match="train fewer runs together"):
        fit([tiny(), tiny(seed=1)], tmp_path, device="cpu", sizes=SIZES, together=True)


def test_out_of_memory_names_the_knob(tmp_path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("tried to allocate")

    monkeypatch.setattr(Trainer, "epoch", full)
    with pytest.raises(MemoryError, match=r"smaller training\.batch.*\(tried to allocate\)"):
        trained(tiny(), tmp_path)


def test_a_loss_that_is_no_number_ends_the_run_and_leaves_no_result(tmp_path) -> None:
    with pytest.raises(FloatingPointError, match=r"step \d+ of 5.*try a smaller training\.rate"):
        trained(tiny(rate=1e38), tmp_path)
    assert not Run.open(tmp_path, tiny(rate=1e38).resolve()).done


def test_a_batch_larger_than_the_data(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"training\.batch must be at most 100, .*; got 101"):
        trained(tiny(batch=101), tmp_path)


def test_labels_outside_the_classes(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("scalechannels.training.datasets.StrokesData.classes", ("0", "1", "2"))
    with pytest.raises(ValueError, match="labels lie in 0 to 2, one for each class, got 0 to 9"):
        trained(tiny(), tmp_path)
    monkeypatch.setattr("scalechannels.training.datasets.StrokesData.classes", ())
    with pytest.raises(ValueError, match="at least two classes"):
        trained(tiny(), tmp_path)


def test_a_damaged_checkpoint_is_named_and_kept(tmp_path, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(Killed):
            trained(tiny(), tmp_path)
    path = Run.open(tmp_path, tiny().resolve()).folder / CHECKPOINT
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match="is damaged"):
        trained(tiny(), tmp_path)
    assert path.stat().st_size == 1000


@pytest.mark.parametrize("change", ["shape", "name", "more", "none"])
@pytest.mark.parametrize("together", [False, True])
def test_a_checkpoint_that_does_not_fit_its_network_is_named(tmp_path, monkeypatch, change, together) -> None:
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(Killed):
            trained(tiny(), tmp_path, together=together)
    (path,) = tmp_path.glob("*/checkpoint.safetensors")
    with safe_open(path, "pt") as file:
        metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa
    name = next(iter(tensors))
    if change == "more":
        tensors["model.more"] = torch.zeros(1)
    else:
        value = tensors.pop(name)
        tensors.update({"shape": {name: value[None]}, "name": {f"{name}s": value}, "none": {}}[change])
    save_file(tensors, path, metadata)
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors does not fit its run, .*; remove it"):
        trained(tiny(), tmp_path, together=together)


def test_a_file_in_the_place_of_the_runs(tmp_path) -> None:
    (tmp_path / "runs").write_text("mine")
    with pytest.raises(FileExistsError, match="runs"):
        trained(tiny(), tmp_path / "runs")
    assert (tmp_path / "runs").read_text() == "mine"


def test_a_run_that_is_being_trained_is_not_trained_twice(tmp_path) -> None:
    run = Run.open(tmp_path, tiny().resolve())
    with run.exclusive(), pytest.raises(OSError, match="another process has been working on"):
        trained(tiny(), tmp_path)


def test_a_missing_tensorboard_is_told_before_any_work(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ImportError, match=r'pip install "scalechannels\[log\]"'):
        trained(tiny(), tmp_path, log=True)
    assert not list(tmp_path.iterdir())


LOGGED = """
import sys
from helpers.tiny_runs import tiny, trained
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
run = trained(tiny(epochs=3), sys.argv[1], log=True)
events = EventAccumulator(str(run.folder / "tensorboard"))
events.Reload()
for name in ("loss", "rate"):
    found = [(event.step, event.value) for event in events.Scalars(name)]
    wanted = [(entry["epoch"], entry[name]) for entry in run.result()["history"]]
    assert len(found) == 3, found
    assert all(a == c and abs(b - d) <= 1e-6 * d for (a, b), (c, d) in zip(found, wanted)), (found, wanted)
print("logged")
"""


@pytest.mark.slow
def test_tensorboard_gets_every_epoch(tmp_path) -> None:
    pytest.importorskip("tensorboard", reason="the extra scalechannels[log] is not installed")
    done = subprocess.run(  # its imports warn in ways that are not ours
        [sys.executable, "-c", LOGGED, str(tmp_path)], capture_output=True, text=True, env=ENVIRONMENT
    )
    assert "logged" in done.stdout, done.stderr


KILLED = """
import sys
from helpers.tiny_runs import tiny, trained
from scalechannels.training.trainer import Trainer
import torch
torch.set_num_threads(1)
original = Trainer.epoch
def epoch(self, order, rate, report=None):
    print("epoch", flush=True)
    return original(self, order, rate, report)
Trainer.epoch = epoch
trained(tiny(epochs=EPOCHS, batch=10), sys.argv[1])
print("done", flush=True)
"""


@pytest.mark.slow
def test_ten_kills_at_random_moments_change_no_bit(tmp_path) -> None:
    """Each kill comes up to three epochs after the first epoch of its process has begun."""
    epochs, kills = 40, 10
    script = KILLED.replace("EPOCHS", str(epochs))
    draw = random.Random(time.time_ns())

    def start(folder: Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", script, str(folder)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)

    with start(tmp_path / "whole") as process:
        output, _ = process.communicate()
    assert output.splitlines() == ["epoch"] * epochs + ["done"]
    config = tiny(epochs=epochs, batch=10).resolve()
    whole, run = (Run.open(tmp_path / name, config) for name in ("whole", "parts"))
    length = sum(entry["seconds"] for entry in whole.result()["history"]) / epochs
    reached = []
    for kill in range(kills):
        with start(tmp_path / "parts") as process:
            assert process.stdout.readline() == "epoch\n"
            if kill:  # progress: this one was begun after the last process's checkpoints
                time.sleep(draw.uniform(0, 3) * length)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
        assert not run.done
        reached.append(max((state.epoch for state in run.checkpoints()), default=0))
    assert reached == sorted(reached)
    assert 0 < reached[-1] < epochs, reached
    with start(tmp_path / "parts") as process:
        output, _ = process.communicate()
    assert output.splitlines() == ["epoch"] * (epochs - reached[-1]) + ["done"]
    assert_same(weights(whole), weights(run))
    assert whole.result()["evaluation"] == json.loads((run.folder / "result.json").read_text())["evaluation"]
    assert not list(run.folder.glob(".partial-*"))


WALK = """
import sys
from scalechannels.cli import main
words = "--data.samples 40 --training.epochs 1 --training.batch 10 --network.high 1 --sizes 1 --device cpu"
main(["train", "--recipe", "paper", "--out", sys.argv[1], *words.split()])
ours = {name for name, module in sys.modules.items() if name.startswith("scalechannels.")}
print(*(name for name in ours if not hasattr(sys.modules[name], "__path__")))
"""
OF_A_PREDICTION = {  # see its own test
    *(
        "cli",
        "commands.predict",
        "saving.saved_network",
        "saving.usage",
        "data.image_files",
        "data.decoding",
        "data.pictures",
    ),
    *("scales", "sampling", "network", "pooling", "backbones.paper", "backbones.inference"),
}


def test_a_run_on_a_cpu_visits_few_of_our_files(tmp_path) -> None:
    """25 beside those of a prediction; what a plain run has no use for stays unread."""
    done = subprocess.run(
        [sys.executable, "-c", WALK, str(tmp_path)], capture_output=True, text=True, env=ENVIRONMENT
    )
    visited = done.stdout.splitlines()[-1].split() if done.stdout else []
    assert "scalechannels.training.inputs" in visited, done.stderr
    own = {name.removeprefix("scalechannels.") for name in visited} - OF_A_PREDICTION
    assert len(own) <= 25, sorted(own)
    for room in ("augment", "stacking.stacked", "streaming", "own_images", "sweep", "retest"):
        assert not any(name.startswith(f"scalechannels.training.{room}") for name in visited), room
