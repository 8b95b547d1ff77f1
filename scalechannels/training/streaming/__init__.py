"""Images that do not fit on the device: they stay in main memory or on disk, and workers bring batches.

A step then does to them what it would do to resident ones: windows are made and changed on the device.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from scalechannels.training.trainer import Trainer

WORKERS = max(2, min(8, os.cpu_count() or 2))
CONTEXT = "fork" if sys.platform == "linux" else None
"""How workers are started, where not as the system does it: forked ones share memory with each other."""


class StreamTrainer(Trainer):
    """Trains one run on a torch Dataset of (image, label), in the same order as resident data would be."""

    def __init__(
        self, model: nn.Module, dataset: Dataset[tuple[Tensor, ...]], *, device: torch.device, **options: Any
    ) -> None:
        nothing = torch.empty(1, 0, device=device)
        super().__init__(model, nothing, nothing, [0], **options)
        self.dataset, self.captures = dataset, False

    def _batches(self, order: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """Images (1, B, C, H, W) and labels (1, B) of each step."""
        loader = DataLoader(
            self.dataset,
            batch_sampler=order[0].tolist(),
            num_workers=WORKERS,
            pin_memory=self.on_gpu,
            multiprocessing_context=CONTEXT,
            generator=torch.Generator(),  # its own: the workers' seed must not take a number from the dropout
        )
        for chosen, batch in zip(order.to(self.device).unbind(1), loader, strict=True):
            inputs, labels = (part.to(self.device, non_blocking=True)[None] for part in batch)
            for augmentation in self.augmentations:
                inputs = augmentation(inputs, self.data_of, chosen)
            yield inputs, labels
