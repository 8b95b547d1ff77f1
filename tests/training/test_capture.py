"""A training step can be captured in a CUDA graph, as far as a machine without a GPU can tell.

Its forward and backward pass, that is: the optimiser and the averaging are left out.
"""

from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch
from helpers.tiny_runs import tiny
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig
from scalechannels.training.distributed import joined
from scalechannels.training.group import Group, How
from scalechannels.training.runs import Run
from scalechannels.training.trainer import Trainer


class NothingFromHost(TorchDispatchMode):
    """Refuses what brings values from main memory to the device, which a captured graph cannot do.

    One number may come along: it becomes an argument of the kernel.
    """

    def __torch_dispatch__(self, func: Callable, types, args=(), kwargs=None):
        given = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
        from_host = any(value.device.type == "cpu" and value.ndim for value in given)
        result = func(*args, **(kwargs or {}))
        made = [value for value in tree_leaves(result) if isinstance(value, Tensor)]
        on_device = any(value.device.type != "cpu" for value in (*given, *made))
        assert not (from_host and on_device), f"{func} takes values from the host"
        return result


@pytest.mark.parametrize(
    "copies",
    [
        lambda there, here: here.to("meta"),
        lambda there, here: there[here],
        lambda there, here: there.copy_(here),
        lambda there, here: torch.cat([there, here.to("meta")]),
        lambda there, here: torch.nn.functional.embedding(here, there[:, None]),
    ],
)
def test_copies_are_refused(copies) -> None:
    there, here = torch.zeros(2, device="meta"), torch.zeros(2, dtype=torch.long)
    with NothingFromHost(), pytest.raises((AssertionError, RuntimeError)):
        copies(there, here)


def test_what_stays_on_the_device_is_not_refused() -> None:
    there = torch.zeros(2, 3, device="meta")
    with NothingFromHost():
        assert (there[torch.arange(2, device="meta")] * 2 + torch.tensor(1.0)).shape == (2, 3)


def on_host(values, *, device=None, made=torch.tensor, **options) -> Tensor:
    """`torch.tensor`, whose copy to a device no one sees."""
    assert torch.device(device or "cpu").type == "cpu", "torch.tensor takes values from the host"
    return made(values, **options)


def without_device(trainer: Trainer, order: Tensor) -> Trainer:
    """All that a step touches as meta tensors, for those on a GPU: none of them can be read either."""
    for module in (trainer.model, trainer.called, *trainer.augmentations):
        module.to("meta")
    for name in ("inputs", "labels", "data_of", "place", "losses", "smoothing", "failed_at"):
        setattr(trainer, name, getattr(trainer, name).to("meta"))
    trainer.device, trainer.order = torch.device("meta"), order.to("meta")
    return trainer


def small(name: str, network: dict | None = None, **training) -> RunConfig:
    return RunConfig(
        DataConfig("cifar10"),
        NetworkConfig(name, ratio=2, **(network or {})),  # type: ignore[arg-type]
        TrainingConfig(epochs=1, batch=16, **training),
    )


ANTIALIAS = {"antialias": True}
AUGMENTED = {"flips": True, "crops": 4}
CONFIGS = {
    "fovavg": tiny(),
    "fovconc": tiny("fovconc"),
    "cnn": tiny("cnn"),
    "swmax": tiny("swmax"),
    "joint batch norm": tiny("swmax", network={"batch_norm": "joint"}),
    "batch norm each": tiny("swmax", network={"batch_norm": "each"}),
    "cropped, shifted and blurred": tiny("fovlse", network=ANTIALIAS, visible=0.5, jitter=1, detail=0.5),
    "cifar": small("fovmax"),
    "cifar, augmented": small("fovlse", visible=0.5, **AUGMENTED),
    "cifar, coarse": small("fovlse", ANTIALIAS, visible=0.5, detail=0.5, **AUGMENTED),
    "cifar, equal blur": small("fovlse", {"blur": 0.5}, **AUGMENTED),
    "residual": small("cnn", {"backbone": "residual"}, **AUGMENTED),
}


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_step_copies_nothing_from_the_host(config, together, cifar, tmp_path, monkeypatch) -> None:
    """Nor does it read a value back, which a meta tensor does not have."""
    cpu = torch.device("cpu")
    run = Run.open(tmp_path, config.resolve("cpu"))
    with joined(cpu) as processes:
        group = Group([run], cpu, processes, How(together=together, compiled=False))
    trainer = without_device(group.trainer, torch.zeros(1, 1, config.training.batch, dtype=torch.long))
    learnt: list[Tensor] = []

    def learn(inputs: Tensor, labels: Tensor) -> None:
        learnt.append(trainer.objective(inputs, labels))
        learnt[0].sum().backward()

    monkeypatch.setattr(trainer, "learn", learn)
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # there is none for meta tensors
    monkeypatch.setattr(torch, "tensor", on_host)
    with NothingFromHost():
        trainer._step()
    assert [losses.shape for losses in learnt] == [(1,)]
