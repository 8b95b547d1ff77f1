"""More than one process: `torchrun --nproc-per-node N`, on GPUs with NCCL, on CPUs with gloo.

The global batch stays what the configuration says, whatever N: each process takes every N-th image of each
batch, so that every image is seen once an epoch. Batch norm is computed over the whole global batch, by
sums over the processes (torch's SyncBatchNorm refuses CPU tensors), so N processes compute what one does, up
to the order of summation and the numbers that dropout draws.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


@dataclass(frozen=True)
class Processes:
    """How many work together, and which one this is; rank 0 writes."""

    rank: int = 0
    count: int = 1

    @property
    def writes(self) -> bool:
        return self.rank == 0

    def require_batch(self, batch: int) -> None:
        """The global batch has to divide among the processes."""
        if batch % self.count:
            raise ValueError(
                f"a batch of {batch} cannot be divided among {self.count} processes; change training.batch"
            )

    def share(self, order: Tensor) -> Tensor:
        """This process's part (R, steps, B / count) of the order of an epoch (R, steps, B)."""
        self.require_batch(order.shape[2])
        return order[:, :, self.rank :: self.count]

    def mean(self, values: list[float]) -> list[float]:
        if self.count == 1:
            return values
        total = torch.tensor(values, dtype=torch.float64)
        if dist.get_backend() == "nccl":
            total = total.cuda()
        dist.all_reduce(total)
        return (total / self.count).tolist()

    def wait(self) -> None:
        if self.count > 1:
            dist.barrier()


@contextmanager
def joined(device: torch.device) -> Iterator[Processes]:
    """The processes that torchrun started, or this one alone."""
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        yield Processes()
        return
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Processes(dist.get_rank(), dist.get_world_size())
    finally:
        # A model in a cycle of references would hold on to the group until the interpreter shuts down, and
        # ending the group's threads there now and then aborts the process.
        gc.collect()
        dist.destroy_process_group()


class _Sum(torch.autograd.Function):
    """The sum over all processes. Each one's share acts on the losses of all, so gradients are summed too."""

    @staticmethod
    def forward(ctx: Any, share: Tensor) -> Tensor:
        total = share.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _Sum.apply(gradient)


class GlobalBatchNorm(nn.BatchNorm2d):
    """Batch norm over the batches of all processes, on any device."""

    def forward(self, maps: Tensor) -> Tensor:
        if not self.training:
            return super().forward(maps)
        exact = maps.float()
        count = exact.numel() / exact.shape[1] * dist.get_world_size()
        mean = _Sum.apply(exact.sum((0, 2, 3))) / count  # (C,)
        centred = exact - mean[:, None, None]
        variance = _Sum.apply(centred.square().sum((0, 2, 3))) / count
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        with torch.no_grad():
            self.num_batches_tracked += 1
            self.running_mean.lerp_(mean, self.momentum or 0.1)
            self.running_var.lerp_(variance * (count / (count - 1)), self.momentum or 0.1)
        scale = torch.rsqrt(variance + self.eps) * self.weight
        return torch.addcmul(self.bias[:, None, None], centred, scale[:, None, None]).to(maps.dtype)


def with_global_batch_norm(model: nn.Module) -> nn.Module:
    """The same model, its batch norms taken over all processes; the weights stay where they are."""
    for module in model.modules():
        if type(module) is nn.BatchNorm2d:
            module.__class__ = GlobalBatchNorm
    return model


def without_global_batch_norm(model: nn.Module) -> None:
    for module in model.modules():
        if type(module) is GlobalBatchNorm:
            module.__class__ = nn.BatchNorm2d  # type: ignore[assignment]
