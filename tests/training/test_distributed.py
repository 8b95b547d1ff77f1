"""Several processes compute what one does. Real ones, as a user starts them: torchrun, gloo, loopback."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from helpers.tiny_runs import tiny, weights
from torch import nn

from scalechannels.training.build import build_network
from scalechannels.training.distributed import (
    GlobalBatchNorm,
    Processes,
    joined,
    with_global_batch_norm,
    without_global_batch_norm,
)
from scalechannels.training.runs import Run
from scalechannels.training.trainer import shuffled

TESTS = Path(__file__).parents[1]
PATHS = os.pathsep.join(map(str, (TESTS, TESTS.parent)))  # this package, not an installed one


def torchrun(count: int, script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(count),
        "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1",
        script, *map(str, arguments),
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": PATHS}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=250)


def script(folder: Path, text: str) -> str:
    path = folder / "script.py"
    path.write_text("import sys\nfrom pathlib import Path\n" + text)
    return str(path)


def test_one_process_alone_needs_nothing(monkeypatch) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    with joined(torch.device("cpu")) as processes:
        assert processes == Processes(0, 1)
        assert processes.writes
        assert processes.mean([1.0, 2.0]) == [1.0, 2.0]
        processes.wait()


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6])
def test_every_image_is_seen_once_and_batches_stay_what_they_are(count) -> None:
    order = torch.stack([shuffled(120, 12, seed, 0) for seed in range(2)])  # (R, steps, B)
    shares = [Processes(rank, count).share(order) for rank in range(count)]
    assert all(share.shape == (2, 10, 12 // count) for share in shares)
    together = torch.cat(shares, 2)
    assert torch.equal(together.sort(2).values, order.sort(2).values)  # batch by batch
    assert torch.equal(together[0].flatten().sort().values, torch.arange(120))


def test_a_batch_that_does_not_divide() -> None:
    with pytest.raises(
        ValueError, match=r"a batch of 16 cannot be divided among 3 processes; change training\.batch"
    ):
        Processes(0, 3).share(torch.zeros(1, 4, 16, dtype=torch.long))


def test_batch_norms_are_exchanged_and_put_back_with_their_weights() -> None:
    network = build_network(tiny().resolve())
    before = network.state_dict()
    with_global_batch_norm(network)
    kinds = [type(module) for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    assert kinds == [GlobalBatchNorm] * 4
    without_global_batch_norm(network)
    kinds = [type(module) for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    assert kinds == [nn.BatchNorm2d] * 4
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


NORM = """
import torch, torch.distributed as dist
from torch import nn
from scalechannels.training.distributed import joined, with_global_batch_norm
torch.set_default_dtype(torch.float64)
torch.Tensor.float = torch.Tensor.double
device = torch.device(sys.argv[2])
draw = torch.Generator().manual_seed(0)
maps = torch.randn(6, 3, 5, 5, generator=draw) * 2 + 1
pull = torch.randn(6, 3, 5, 5, generator=draw)
def norm():
    made = nn.BatchNorm2d(3)
    with torch.no_grad():
        made.weight.copy_(torch.tensor([0.5, 1.0, 2.0])); made.bias.copy_(torch.tensor([1.0, 0.0, -1.0]))
    return made.to(device)
with joined(device) as processes:
    assert dist.get_backend() == ("nccl" if device.type == "cuda" else "gloo")
    maps, pull, share = maps.to(device), pull.to(device), slice(processes.rank, None, processes.count)
    one, whole = norm(), maps.clone().requires_grad_()
    (one(whole) * pull).sum().backward()
    part, mine = with_global_batch_norm(norm()), maps[share].clone().requires_grad_()
    (part(mine) * pull[share]).sum().backward()
    for parameter in part.parameters():
        dist.all_reduce(parameter.grad)
    torch.testing.assert_close(mine.grad, whole.grad[share])
    for name in ("weight", "bias"):
        torch.testing.assert_close(getattr(part, name).grad, getattr(one, name).grad)
    for name, value in one.state_dict().items():
        torch.testing.assert_close(part.state_dict()[name], value)
    torch.testing.assert_close(part.eval()(mine), one.eval()(whole)[share])
    assert processes.mean([float(processes.rank)]) == [(processes.count - 1) / 2]
    processes.wait()
    (Path(sys.argv[1]) / f"good-{processes.rank}").touch()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "device"),
    [
        (2, "cpu"),
        pytest.param(1, "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")),
    ],
)
def test_batch_norm_over_processes_is_that_of_the_whole_batch(tmp_path, count, device) -> None:
    """Outputs, gradients and statistics, in float64 to rounding; gloo on CPUs, NCCL on GPUs."""
    done = torchrun(count, script(tmp_path, NORM), tmp_path, device)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("good-*"))) == count


TRAIN = """
import json, os, torch
options = json.loads(sys.argv[2])
if options.get("exact"):  # before anybody looks at them
    torch.float32, torch.Tensor.float = torch.float64, torch.Tensor.double
    torch.set_default_dtype(torch.float64)
from helpers import tiny_runs
from scalechannels import files
from scalechannels.training import runs
from scalechannels.training.fit import fit
written = []
atomic_path = files.atomic_path
runs.atomic_path = files.atomic_path = lambda path: written.append(Path(path).name) or atomic_path(path)
configs = [tiny_runs.tiny(**given) for given in options["runs"]]
fit(configs, sys.argv[1], device="cpu", sizes=tiny_runs.SIZES, together=options.get("together"))
(Path(sys.argv[1]) / f"written-{os.environ.get('RANK', 0)}").write_text(json.dumps(written))
"""


def both_ways(folder: Path, config: dict, **options: object) -> list[Run]:
    """The run of one process and that of two."""
    runs = []
    for count in (1, 2):
        place = folder / str(count)
        place.mkdir()
        done = torchrun(count, script(place, TRAIN), place, json.dumps({"runs": [config], **options}))
        assert done.returncode == 0, done.stderr
        runs.append(Run.open(place, tiny(**config).resolve()))
        assert runs[-1].result()["environment"]["processes"] == count
    return runs


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fovavg", "cnn"])
def test_two_processes_compute_what_one_computes(tmp_path, name) -> None:
    """Without dropout, in float64: after two epochs all weights and statistics agree to 1e-6.

    Adam makes full steps even of gradients that are rounding noise, as those of a bias before batch norm
    are: these are left out. In float32 that noise is visible in all weights; see the bound below.
    """
    config = {"name": name, "dropout": 0.0, "rate": 1e-3}
    alone, shared = (weights(run) for run in both_ways(tmp_path, config, exact=True))
    assert alone["backbone.dense.weight"].dtype == torch.float64
    assert alone.keys() == shared.keys()
    for key, value in alone.items():
        if not re.search(r"convolutions\.\d\.0\.bias|running_mean", key):
            torch.testing.assert_close(shared[key], value, rtol=1e-6, atol=1e-6, msg=key)


@pytest.mark.slow
def test_two_processes_learn_what_one_learns(tmp_path) -> None:
    """As users run it, in float32 and with dropout: losses to 5 %, of 50 images right within 3."""
    config = {"name": "fovavg", "samples": 400, "epochs": 8}
    one, two = (run.result() for run in both_ways(tmp_path, config))
    assert two["history"][-1]["loss"] == pytest.approx(one["history"][-1]["loss"], rel=0.05, abs=0.05)
    for first, second in zip(one["evaluation"]["sizes"], two["evaluation"]["sizes"], strict=True):
        assert first["accuracy"] > 50  # something was learnt
        assert abs(first["accuracy"] - second["accuracy"]) <= 6


@pytest.mark.slow
def test_only_the_first_process_writes_and_a_second_start_finds_all_done(tmp_path) -> None:
    """Two runs in a list, asked to be trained together: several processes take them one by one."""
    options = json.dumps({"runs": [{"seed": 0}, {"seed": 1}], "together": True})
    done = torchrun(2, script(tmp_path, TRAIN), tmp_path, options)
    assert done.returncode == 0, done.stderr
    first, second = (json.loads((tmp_path / f"written-{rank}").read_text()) for rank in (0, 1))
    assert second == []
    assert first.count("config.toml") == first.count("result.json") == 2
    assert first.count("checkpoint.safetensors") == 4
    done = torchrun(2, script(tmp_path, TRAIN), tmp_path, options)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "written-0").read_text()) == []


@pytest.mark.slow
def test_a_run_begun_by_one_process_is_continued_by_two(tmp_path) -> None:
    """An interrupted run may go on with another number of processes."""
    config = {"dropout": 0.0, "rate": 1e-3, "epochs": 2}
    interrupted = TRAIN.replace(
        "configs =",
        """
from scalechannels.training.trainer import Trainer
original, done = Trainer.epoch, []
def epoch(*arguments):
    if done:
        raise SystemExit("interrupted")
    done.append(1)
    return original(*arguments)
Trainer.epoch = epoch
configs =""",
    )
    options = json.dumps({"runs": [config]})
    done = torchrun(1, script(tmp_path, interrupted), tmp_path, options)
    assert "interrupted" in done.stderr
    run = Run.open(tmp_path, tiny(**config).resolve())
    assert run.checkpoints()[0].epoch == 1
    done = torchrun(2, script(tmp_path, TRAIN), tmp_path, options)
    assert done.returncode == 0, done.stderr
    assert [entry["epoch"] for entry in run.result()["history"]] == [1, 2]
    assert json.loads((tmp_path / "written-0").read_text()).count("checkpoint.safetensors") == 1


@pytest.mark.slow
def test_a_batch_that_does_not_divide_is_told_before_any_work(tmp_path) -> None:
    options = json.dumps({"runs": [{"batch": 25}]})
    done = torchrun(2, script(tmp_path, TRAIN), tmp_path, options)
    assert done.returncode != 0
    assert "a batch of 25 cannot be divided among 2 processes; change training.batch" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]
