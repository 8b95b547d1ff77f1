"""A finished run, tested again: on other sizes or another split than those of its result.

Law: the evaluation is what the run would have had if it had been asked for at once; nothing is trained, and
the old result stays until the new one is complete. Limit: the run's weights must lie in its folder.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from scalechannels.training.datasets import DataSets, EvaluationSplit, Size, open_data
from scalechannels.training.evaluate import evaluation
from scalechannels.training.runs import RESULT, Run, environment
from scalechannels.training.stacking import searched


def is_tested(run: Run, split: EvaluationSplit, sizes: Sequence[Size] | None) -> bool:
    """Whether the result of a finished run is on this split, and on all of these sizes or of the data's own.

    Further ones do no harm: what was tested is not thrown away.
    """
    tested_split, tested = run.tested_on
    if tested_split != split:
        return False
    asked = run.config.data.about.test_sizes if sizes is None else sizes
    return {_key(size) for size in asked} <= {_key(size) for size in tested}


def retest(
    run: Run,
    device: torch.device,
    split: EvaluationSplit,
    sizes: Sequence[Size] | None,
    root: Path | None = None,
    stream: bool = False,
) -> None:
    """Test a finished run again and replace its result; `stream` keeps the images in main memory."""
    from scalechannels.saving.saved_network import load

    result = run.result()
    asked: tuple[Size, ...] = run.config.data.about.test_sizes if sizes is None else tuple(sizes)
    data = open_data(run.config.data, "cpu" if stream else device, root)
    try:
        network: Any = load(run.folder, **_own_parts(run, result, data, asked, split)).to(device).eval()
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{run.folder} was tested on {_named(*run.tested_on)}; testing on {_named(split, asked)} needs "
            f"the weights, which cannot be loaded ({error}). Restore them, ask for what was tested, or "
            f"delete {run.folder / RESULT} to train again"
        ) from error
    started = time.perf_counter()
    if device.type == "cuda" and asked:
        network = searched(network, *data.testing(asked[0], split).images.shape[2:])
    found = evaluation(run.config.name, network, data, device, split, asked)
    run.finish(
        {
            **result,
            "seconds": {**result["seconds"], "evaluation": time.perf_counter() - started},
            "retested": environment(device),  # `environment` stays that of the training
            "evaluation": found,
        }
    )


def _own_parts(
    run: Run, result: dict[str, Any], data: DataSets, sizes: Sequence[Size], split: EvaluationSplit
) -> dict[str, Any]:
    """What `load` cannot build: a user's own module."""
    network = run.config.network
    if not (network.is_module and network.checksum and sizes):
        return {}
    from scalechannels.training.build import build_network

    channels = data.testing(sizes[0], split).images.shape[1]
    return {"backbone": build_network(run.config, channels, len(result["classes"])).backbone}


def _key(size: Size) -> tuple[float, ...]:
    """Equal for sizes that differ by rounding alone."""
    ends = size if isinstance(size, tuple) else (size,)
    return tuple(float(f"{end:.9g}") for end in ends)


def _named(split: str, sizes: Sequence[Size]) -> str:
    names = [
        f"{size[0]:.3g} to {size[1]:.3g}" if isinstance(size, tuple) else f"{size:.3g}" for size in sizes
    ]
    return f"the {split} split at the sizes {', '.join(names)}"
