"""training.patience: training ends when it has not helped validation images for some epochs.

After each epoch the network is judged that would be kept if training ended there: with its averaged weights
and recomputed statistics, where the run has them. The measure is the surprise about the validation images at
their own size, the mean over the classes; accuracy would be too coarse for few images. The network of the
best epoch is kept, whether training ends early or not.

Law: a run that is killed and resumed stops at the same epoch with the same network; all that decides lies in
its checkpoint. Limit: the images that decide are used for a choice, so that they say nothing of how good it
is: report on others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from scalechannels.data.image_set import ImageSet
from scalechannels.training.trainer import Trainer, balancing

MEASURE = "validation_loss"
"""Its name in a run's history."""
KEPT = "kept."
"""How the tensors of the best epoch begin in a checkpoint."""

History = Sequence[dict[str, float]]


class Stopping:
    """Judges the epochs of one run and keeps the best network."""

    def __init__(self, patience: int, trainer: Trainer, network: Any, images: ImageSet, classes: int) -> None:
        self.patience, self.trainer, self.network, self.images = patience, trainer, network, images
        self.weights = balancing(images.labels, classes)
        self.kept: dict[str, Tensor] = {}

    def judge(
        self, order: Tensor, history: History, agreed: Callable[[list[float]], list[float]]
    ) -> dict[str, float]:
        """What the history says of an epoch that took the images in this order; the best network is kept.

        agreed     what several processes take for the mean of a number that each has
        """
        model = self.trainer.model
        before = {name: value.clone() for name, value in model.state_dict().items()}
        self.trainer.take_average()
        if self.trainer.corrects:
            self.trainer.recompute_statistics(order)
        (found,) = agreed([self._surprise()])
        model.train()
        if not self.kept or found < min((entry[MEASURE] for entry in history), default=math.inf):
            self.kept = {name: value.clone() for name, value in model.state_dict().items()}
        model.load_state_dict(before)
        return {MEASURE: found}

    def is_over(self, history: History) -> bool:
        return bool(history) and len(history) - self.best_epoch(history) >= self.patience

    @staticmethod
    def best_epoch(history: History) -> int:
        """The first epoch with the least surprise, counted from 1."""
        return 1 + min(range(len(history)), key=lambda place: history[place][MEASURE])

    def put_back(self) -> None:
        """Give the model the weights of the best epoch, at the end of training."""
        self.trainer.model.load_state_dict(self.kept)

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint holds beside the trainer's own."""
        state = self.kept or self.trainer.model.state_dict()
        return {KEPT + name: value for name, value in state.items()}

    def load_tensors(self, saved: dict[str, Tensor]) -> None:
        """Put back what `tensors` gave."""
        device = self.trainer.device
        self.kept = {name.removeprefix(KEPT): value.to(device) for name, value in saved.items()}

    @torch.inference_mode()
    def _surprise(self) -> float:
        logits = self.network.explain(self.images.images).logits.float()
        return float(F.cross_entropy(logits, self.images.labels, self.weights))
