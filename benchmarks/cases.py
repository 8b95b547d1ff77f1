"""Measurements of many cases, one after another: what is done is not done again, and nothing is lost."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.measure import usable_device
from scalechannels.files import append_line, json_lines

Case = dict[str, Any]
"""What tells one measurement from another; its result has the same entries, and others."""


def case_options(description: str | None, root: Path | None = None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", type=Path, default=root)
    parser.add_argument("--device", type=usable_device, default="cpu")
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--table", action="store_true", help="only print the table of what is there")
    return parser


def measure_cases(
    cases: Iterable[Case],
    path: Path,
    minutes: float,
    measured: Callable[[Case, Path], dict[str, Any]],
    shown: Callable[[dict[str, Any]], Any],
) -> None:
    """Measure what the file at `path` lacks, a line for each case; begin none after so many minutes.

    measured   of a case and a folder for scratch files, which is removed, its result
    shown      what is printed of a result
    """
    known, until = json_lines(path), time.monotonic() + 60 * minutes
    for case in cases:
        if any(case.items() <= result.items() for result in known):
            continue
        if time.monotonic() > until:
            break
        with tempfile.TemporaryDirectory() as scratch:
            result = measured(case, Path(scratch))
        append_line(path, result)
        print(*case.values(), shown(result), flush=True)
