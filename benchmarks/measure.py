"""What every benchmark shares: taking turns, medians, and a JSON report with what it was measured on."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from scalechannels.files import json_text
from scalechannels.training.runs import environment as run_environment


def seconds(work: Callable[[], Any], device: torch.device) -> float:
    """Wall-clock time of one call, all of its device work included."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def in_turns(
    works: dict[str, Callable[[], Any]], device: torch.device, repeats: int
) -> dict[str, dict[str, Any]]:
    """The median time of each after a warm-up, all of them measured in turns: noise hits all alike."""
    for work in works.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            times[name].append(seconds(work, device))
    return {
        name: {"seconds": statistics.median(taken), "all_seconds": taken} for name, taken in times.items()
    }


def environment(device: torch.device) -> dict[str, Any]:
    load = os.getloadavg() if hasattr(os, "getloadavg") else None
    return {**run_environment(device), "cores": os.cpu_count(), "load_average": load}


def usable_device(name: str) -> str:
    """A device that PyTorch can compute on here; what it says against any other becomes one line."""
    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0]
        raise argparse.ArgumentTypeError(f"{name} cannot be computed on here: {reason}") from error
    return name


def options(description: str | None, repeats: int = 5) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", type=usable_device)
    parser.add_argument("--repeats", type=int, default=repeats)
    parser.add_argument("--output", type=Path, help="also write the JSON there")
    return parser


def write(report: dict[str, Any], output: Path | None) -> None:
    text = json_text(report) + "\n"
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
