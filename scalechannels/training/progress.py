"""Progress on a terminal: loss, learning rate, images per second, time left. Silent anywhere else."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any


class Progress(ExitStack):
    """A context in which an epoch's steps, or a list of test sets, are counted."""

    def __init__(self, label: str, shown: bool) -> None:
        super().__init__()
        self.label = label
        self.bar: Any = None
        self.task: Any = None
        self.loss = "–"  # until an epoch has one
        self.batch, self.started, self.before = 0, 0.0, 0
        if shown and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self.bar = Bar(
                TextColumn("[bold]{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[detail]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self.enter_context(self.bar)

    def epoch(self, epoch: int, epochs: int, steps: int, batch: int, rate: float) -> None:
        """A new epoch begins; the bar is over all epochs, so that the time left is that of the run."""
        self.batch, self.rate, self.place = batch, rate, f"epoch {epoch + 1}/{epochs}"
        self.before = epoch * steps
        self._begin(total=epochs * steps, completed=self.before)
        self.started = time.perf_counter()

    def step(self, done: int) -> None:
        if self.bar is not None:
            speed = done * self.batch / max(time.perf_counter() - self.started, 1e-9)
            detail = f"{self.place}  loss {self.loss}  rate {self.rate:.1e}  {speed:,.0f} images/s"
            self.bar.update(self.task, completed=self.before + done, detail=detail)

    def finished(self, losses: list[float]) -> None:
        self.loss = f"{sum(losses) / len(losses):.4f}"

    def tested(self, result: Any, count: int) -> None:
        """One of `count` test sets is done, with this SizeResult."""
        sizes = result.size if isinstance(result.size, tuple) else (result.size,)
        named = " to ".join(f"{size:.3g}" for size in sizes)
        self.advance(f"size {named}: {result.accuracy:.2f} %", count)

    def begins(self, detail: str, count: int) -> None:
        """The next of `count` equal parts of the work begins; those before it are done."""
        if self.bar is not None:
            if self.task is None:
                self._begin(total=count, completed=0)
            else:
                self.bar.update(self.task, advance=1)
            self.bar.update(self.task, detail=detail)

    def advance(self, detail: str, count: int) -> None:
        """One of `count` equal parts of the work is done."""
        self._begin(total=count, completed=0)
        if self.bar is not None:
            self.bar.update(self.task, advance=1, detail=detail)

    def _begin(self, total: int, completed: int) -> None:
        if self.bar is not None and self.task is None:
            self.task = self.bar.add_task(self.label, total=total, completed=completed, detail="")


def log_entry(folder: Path, entry: dict[str, float]) -> None:
    """Add an epoch of a run's history to its TensorBoard events."""
    with tensorboard_writer()(str(folder / "tensorboard")) as writer:
        for name in ("loss", "rate"):
            writer.add_scalar(name, entry[name], int(entry["epoch"]))


def tensorboard_writer() -> Any:
    """TensorBoard's SummaryWriter, or what to install for it."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ImportError('TensorBoard is not installed: pip install "scalechannels[log]"') from error
    return SummaryWriter
