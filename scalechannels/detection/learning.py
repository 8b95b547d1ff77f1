"""The one loop in which detectors learn, whatever their windows come from: seeded, reported, resumable.

Law: a training that was killed and started again ends with the weights of one that was not. The state is
written whole, with that of the random numbers, every `KEPT` steps. Limit: on the same device, with the same
version of PyTorch.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from scalechannels.files import atomic_path

KEPT = 250
"""Steps between two states on disk."""
EVERY = 5.0
"""Seconds between two lines of progress."""


class Batch(NamedTuple):
    """Windows, or whole images, and what a network should say of them."""

    images: Tensor  # (B, C, n, n)
    targets: Tensor  # (B, K) probabilities
    boxes: Tensor | None = None  # (B, 4), said by the four outputs after the logits
    fits: Tensor | None = None  # (B,) 1 where the box counts

    def to(self, device: torch.device) -> Batch:
        boxes, fits = (None if part is None else part.to(device) for part in (self.boxes, self.fits))
        return Batch(self.images.to(device), self.targets.to(device), boxes, fits)


def loss_of(outputs: Tensor, batch: Batch) -> Tensor:
    """Cross entropy of the logits, and of boxes the distance to what they should be."""
    if batch.boxes is None or batch.fits is None:
        return F.cross_entropy(outputs, batch.targets)
    count = batch.boxes.shape[1]
    logits, said = outputs[:, :-count], outputs[:, -count:]
    far = F.smooth_l1_loss(said, batch.boxes, reduction="none", beta=0.05).sum(1)
    return F.cross_entropy(logits, batch.targets) + (far * batch.fits).sum() / batch.fits.sum().clamp_min(1)


def loss_of_windows(model: nn.Module, batch: Batch) -> Tensor:
    return loss_of(model(batch.images), batch)


def learn(
    model: nn.Module,
    batch_of: Callable[[int, torch.Generator], Any],
    *,
    loss_on: Callable[[Any, Any], Tensor] = loss_of_windows,
    steps: int,
    rate: float,
    seed: int = 0,
    state: Path | None = None,
    report: Callable[[str], None] | None = None,
    generator: torch.Generator | None = None,
    more: dict[str, Any] | None = None,
) -> list[float]:
    """Train in place with Adam and one cycle of the rate; the mean loss of every `KEPT` steps.

    batch_of   the batch of a step, from a generator whose state is part of the training's
    loss_on    the model's loss on a batch
    state      the file to resume from and to write to; None: nothing is kept
    more       what else is kept there and brought back, by name: anything with a state_dict
    """
    device = next(model.parameters()).device
    generator = generator or torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)  # dropout
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps, pct_start=0.1)
    parts: dict[str, Any] = {"model": model, "optimiser": optimiser, "schedule": schedule, **(more or {})}
    first = 0
    losses: list[float] = []
    if state is not None and state.exists():
        first, losses = _resume(state, parts, generator, device)
    model.train()
    said = progress(report, first, steps)
    running = torch.zeros((), device=device)
    for step in range(first, steps):
        batch = batch_of(step, generator).to(device)
        optimiser.zero_grad(set_to_none=True)
        loss = loss_on(model, batch)
        loss.backward()
        optimiser.step()
        schedule.step()
        running += loss.detach()
        said(step + 1, loss.detach())
        if (step + 1) % KEPT == 0 or step + 1 == steps:
            losses.append(float(running) / ((step % KEPT) + 1))
            running.zero_()
            if not math.isfinite(losses[-1]):  # what was kept before can still be looked into
                raise FloatingPointError(
                    f"the loss was not a number before step {step + 1} of {steps}, at a learning rate of "
                    f"{rate:g}; try another seed"
                )
            if state is not None:
                _keep(state, parts, generator, step + 1, losses)
    return losses


def progress(report: Callable[[str], None] | None, first: int, steps: int) -> Callable[[int, Tensor], None]:
    """Says now and then how far a training is and how long it takes."""
    begun = last = time.monotonic()

    def said(step: int, loss: Tensor) -> None:
        nonlocal last
        now = time.monotonic()
        if report is not None and (now - last > EVERY or step == steps):
            left = (now - begun) / (step - first) * (steps - step)
            report(f"step {step} of {steps}: loss {float(loss):.4f}, about {left:.0f} s left")
            last = now

    return said


def to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _keep(state: Path, parts: dict[str, Any], generator: torch.Generator, step: int, losses: Any) -> None:
    kept = {name: part.state_dict() for name, part in parts.items()}
    kept |= {
        "step": step,
        "losses": losses,
        "generator": generator.get_state(),
        "torch": torch.get_rng_state(),
        **({"cuda": torch.cuda.get_rng_state()} if torch.cuda.is_available() else {}),  # dropout, on a GPU
    }
    with atomic_path(state) as temporary:
        torch.save(kept, temporary)


def _resume(
    state: Path, parts: dict[str, Any], generator: torch.Generator, device: torch.device
) -> tuple[int, list[float]]:
    try:
        kept = torch.load(state, map_location=device, weights_only=True)
        for name, part in parts.items():
            part.load_state_dict(kept[name])
    except Exception as error:  # what a damaged file raises is anybody's guess
        raise ValueError(f"'{state}' is damaged; delete it, and the training begins again") from error
    generator.set_state(kept["generator"].cpu())
    torch.set_rng_state(kept["torch"].cpu())
    if "cuda" in kept and torch.cuda.is_available():
        torch.cuda.set_rng_state(kept["cuda"].cpu())
    return kept["step"], kept["losses"]
