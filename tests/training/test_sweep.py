import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.tiny_runs import SIZES, assert_same, tiny, trained, weights

from scalechannels.training import sweep as module
from scalechannels.training.runs import Run
from scalechannels.training.sweep import sweep

TESTS = Path(__file__).parents[1]
PATHS = os.pathsep.join(map(str, (TESTS, TESTS.parent)))  # this package, not an installed one
OPTIONS = {"device": "cpu", "sizes": SIZES}


def few(seed: int = 0, **training):
    return tiny(samples=40, epochs=1, seed=seed, **training)


def test_runs_are_done_one_after_the_other_with_a_line_for_each(tmp_path) -> None:
    lines: list[str] = []
    again = replace(few(0), network=replace(few(0).network, dropout=None))  # 0.15 is the default
    configs = [few(0), few(1), again]
    runs = sweep(configs, tmp_path, report=lines.append, **OPTIONS)
    assert [run.config for run in runs] == [config.resolve() for config in configs]
    assert all(run.done for run in runs)
    assert lines == [f"{n + 1}/2 {runs[n].config.name}: done" for n in (0, 1)]


def test_lines_go_to_the_standard_error(tmp_path, capsys) -> None:
    sweep([few()], tmp_path, **OPTIONS)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"1/1 {few().resolve().name}: done\n"


def test_a_run_that_fails_does_not_stop_the_others(tmp_path) -> None:
    lines: list[str] = []
    configs = [few(0, rate=1e38), few(1)]
    with pytest.raises(RuntimeError, match=r"(?s)1 of 2 runs failed.*FloatingPointError.*training\.rate"):
        sweep(configs, tmp_path, report=lines.append, **OPTIONS)
    assert Run.open(tmp_path, configs[1].resolve()).done
    assert lines[0] == f"1/2 {configs[0].resolve().name}: failed"
    assert lines[1].endswith("done")


def test_what_cannot_be_trained_is_told_before_the_first_run(tmp_path) -> None:
    impossible = replace(few(), network=replace(few().network, ratio=3))
    with pytest.raises(ValueError, match="times a whole power of the ratio"):
        sweep([few(), impossible], tmp_path, **OPTIONS)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="at least one run"):
        sweep([], tmp_path)


def test_runs_together_come_to_fit_as_one_list(tmp_path, monkeypatch) -> None:
    lists = []

    def fit(configs, folder, **options):
        lists.append(len(configs))
        return [Run(config, folder) for config in configs]

    monkeypatch.setattr(module, "fit", fit)
    sweep([few(0), few(1)], tmp_path, device="cpu", together=True)
    sweep([few(0), few(1)], tmp_path, device="cpu")
    assert lists == [2, 1, 1]


def test_what_was_done_before_another_failed_is_done(tmp_path) -> None:
    configs = [few(0), few(1, rate=1e38)]
    lines: list[str] = []
    with pytest.raises(RuntimeError, match="1 of 2 runs failed"):
        sweep(configs, tmp_path, together=True, report=lines.append, **OPTIONS)
    assert lines[0].endswith("done")
    assert Run.open(tmp_path, configs[0].resolve()).done


def test_a_missing_ray_is_told(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r'pip install "scalechannels\[ray\]"'):
        sweep([few()], tmp_path, ray=True, **OPTIONS)
    assert not list(tmp_path.iterdir())


ON_RAY = """
import os, signal, sys
from pathlib import Path
import ray
from helpers.tiny_runs import SIZES, tiny
from scalechannels.training import sweep as module

folder, marker = Path(sys.argv[1]), Path(sys.argv[1]) / "killed"
fit = module.fit

def mortal(configs, folder, **options):
    # The run of seed 1 kills its own process in the middle of its third epoch, once.
    from helpers import tiny_runs  # sets the small test sets in the worker
    from scalechannels.training.trainer import Trainer
    original, done = Trainer.epoch, []
    def epoch(self, *arguments):
        done.append(1)
        with open(marker.parent / f"epochs-{configs[0].training.seed}", "a") as file:
            file.write(f"{os.getpid()}\\n")
        if configs[0].training.seed == 1 and len(done) == 3 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return original(self, *arguments)
    Trainer.epoch = epoch
    return fit(configs, folder, **options)

def task(config, folder, options):
    return mortal([config], folder, **options)[0]

module._task = task
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
lines = []
configs = [tiny(epochs=4, seed=seed) for seed in (0, 1)]
failing = tiny(epochs=4, rate=1e38)
try:
    module.sweep([*configs, failing], folder, ray=True, report=lines.append, device="cpu", sizes=SIZES)
except RuntimeError as error:
    assert "1 of 3 runs failed" in str(error) and "FloatingPointError" in str(error), error
else:
    raise SystemExit("the impossible run did not fail")
assert ray.is_initialized()  # not the sweep's to shut down
ray.shutdown()
runs = module.sweep(configs, folder, ray=True, report=lines.append, device="cpu", sizes=SIZES)
assert [run.config.training.seed for run in runs] == [0, 1] and all(run.done for run in runs)
assert not ray.is_initialized()  # this one was
print("\\n".join(lines))
"""


@pytest.mark.slow
def test_a_task_that_dies_on_ray_goes_on_from_its_checkpoint(tmp_path) -> None:
    pytest.importorskip("ray", reason="the extra scalechannels[ray] is not installed")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
                   "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": PATHS}  # fmt: skip
    environment.pop("RAY_ADDRESS", None)
    done = subprocess.run(
        [sys.executable, "-c", ON_RAY, str(tmp_path / "runs")],
        capture_output=True, text=True, env=environment, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len([line for line in done.stdout.splitlines() if line.endswith(": done")]) == 4
    assert (tmp_path / "runs" / "killed").exists()
    processes = (tmp_path / "runs" / "epochs-1").read_text().split()
    assert len(processes) == 5  # epochs 1, 2 and half of 3, then 3 and 4
    assert len(set(processes[:3])) == 1
    assert len(set(processes)) == 2
    for seed in (0, 1):
        config = tiny(epochs=4, seed=seed)
        whole = weights(trained(config, tmp_path / "whole"))
        assert_same(whole, weights(Run.open(tmp_path / "runs", config.resolve())))
