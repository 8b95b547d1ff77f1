"""Tensors of a module that follow from its arguments: neither learnt nor saved."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from typing_extensions import Self


class WithConstants(nn.Module):
    """A module with such tensors; a subclass says them in `constants` and calls `keep_constants`.

    Law: wherever the module moves, through `to_empty` too, and whatever precision it takes, they have their
    values in float32. Who computes with them converts them to the type of what they meet.
    """

    def constants(self) -> dict[str, Tensor]:
        """Their values, on the CPU even where modules are made on "meta"."""
        raise NotImplementedError

    def keep_constants(self) -> None:
        here = torch.empty(0).device
        for name, value in self.constants().items():
            self.register_buffer(name, value.to(here), persistent=False)

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        for name, value in self.constants().items():
            moved = self._buffers[name]
            assert moved is not None
            self._buffers[name] = value.to(moved.device)
        return self
