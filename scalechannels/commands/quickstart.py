"""`scalechannels quickstart`: the point of the library in two minutes, on a CPU, as a table and a page."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from scalechannels.cli import Root
from scalechannels.data.sizes import MNIST_SIZES
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig

if TYPE_CHECKING:
    from scalechannels.training.evaluate import SizeResult

SIZE = 1.0  # of the training digits; 2 was no better on the validation split
# The network is surest where a digit a little overfills the window, at σ of about 0.85 times its size. So the
# smallest size to be recognised, 1/2, needs channels below 1/2: two more, the margin of ScaleGrid.from_sizes.
LOW = 2**-1.5
NAMES = ("scale channels", "plain CNN")


@dataclass(frozen=True)
class Effort:
    """How much is trained on and tested: as little as shows the point."""

    samples: int = 3_000
    epochs: int = 4
    tested: int = 500
    """Images of each size."""
    sizes: tuple[float, ...] = MNIST_SIZES
    ratio: float = 2**0.25


def quickstart(
    *,
    out: Annotated[Path, Parameter(help="The folder for the report and the two runs.")] = Path("quickstart"),
    data: Annotated[
        Literal["strokes", "mnist"],
        Parameter(help="Built-in digits (strokes), or MNIST, which is fetched once."),
    ] = "strokes",
    root: Root = None,
) -> None:
    """See what scale channels do, in two minutes: train at one size, test at seventeen.

    A scale-channel network and a plain CNN are trained on the same 3,000 digits of one size, on the CPU. Both
    are then tested on new digits from half that size to eight times that size, and a report compares them. If
    the command is stopped or killed, run it again to resume.

    Example: scalechannels quickstart --out quickstart
    """
    print(f"\nThe report: {run_quickstart(out, data, root)}")


def run_quickstart(
    out: Path,
    data: Literal["strokes", "mnist"] = "strokes",
    root: Path | None = None,
    effort: Effort | None = None,
) -> Path:
    """Train, test and write the report; its path."""
    from scalechannels.files import atomic_path, write_text
    from scalechannels.report.text import accuracy_table

    effort = effort or Effort()
    started = time.perf_counter()
    runs = [
        _trained(number, name, config, out, root)
        for number, (name, config) in enumerate(zip(NAMES, configs(data, effort), strict=True), start=1)
    ]
    results = _tested(runs, effort, root)
    result = {
        "data": data,
        "trained": SIZE,
        "seconds": time.perf_counter() - started,
        "runs": {name: run.result() for name, run in zip(NAMES, runs, strict=True)},
        "evaluation": results,
    }
    columns = {
        name: {entry["size"]: entry["accuracy"] for entry in entries} for name, entries in results.items()
    }
    print(f"\n{accuracy_table(columns, [SIZE])}", flush=True)

    from scalechannels.report.curves import accuracy_curves
    from scalechannels.report.quickstart import quickstart_page
    from scalechannels.saving.saved_network import load

    curves = accuracy_curves(columns, [SIZE], "Trained at one size, tested at seventeen")
    network: Any = load(runs[0].folder)
    sheet = _examples(runs[0].config.data, root)
    text = quickstart_page(result, list(network.grid), sheet, [str(run.folder) for run in runs])
    write_text(out / "result.json", json.dumps(result, indent=1) + "\n")
    with atomic_path(out / "accuracy.png") as path:
        curves.savefig(path, format="png", dpi=110)
    write_text(out / "report.html", text)
    return out / "report.html"


def configs(data: Literal["strokes", "mnist"], effort: Effort) -> tuple[RunConfig, RunConfig]:
    """The two runs: the same digits, the same recipe, two networks."""
    digits = DataConfig(data, (SIZE,), samples=effort.samples)
    training = TrainingConfig(epochs=effort.epochs, schedule="cosine", period=effort.epochs)
    scales = NetworkConfig("fovlse", low=LOW, high=8.0, ratio=effort.ratio)
    return RunConfig(digits, scales, training), RunConfig(digits, NetworkConfig("cnn"), training)


def _trained(number: int, name: str, config: RunConfig, out: Path, root: Path | None) -> Any:
    from scalechannels.training.fit import fit

    print(f"{number}/3  Training: {name}, {config.data.samples:,} digits of size {SIZE:g} …", flush=True)
    # Here it is only tested at the training size; below both networks are tested at all sizes, on one set.
    (run,) = fit([config], out / "runs", device="cpu", root=root, sizes=[SIZE])
    result = run.result()
    found = result["evaluation"]["sizes"][0]["accuracy"]
    print(
        f"     {result['seconds']['training']:.0f} s; {found:.1f} % accuracy on new digits of that size",
        flush=True,
    )
    return run


def _tested(runs: Sequence[Any], effort: Effort, root: Path | None) -> dict[str, list[dict[str, Any]]]:
    """The results of all networks at all sizes; each test set is made once."""
    from dataclasses import asdict

    from scalechannels.data.image_set import ImageSet
    from scalechannels.saving.saved_network import load
    from scalechannels.training.datasets import open_data
    from scalechannels.training.evaluate import evaluate_set
    from scalechannels.training.progress import Progress

    print(f"3/3  Testing both at {len(effort.sizes)} sizes, {effort.tested} new digits each …", flush=True)
    data = open_data(runs[0].config.data, "cpu", root)
    networks = [load(run.folder) for run in runs]
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in NAMES}
    with Progress("testing", True) as progress:
        for size in effort.sizes:
            made = data.testing(size, "test")
            some = ImageSet(*(part[: effort.tested] for part in (made.images, made.labels, made.scales)))
            for name, network in zip(NAMES, networks, strict=True):
                result: SizeResult = evaluate_set(network, some, size, len(data.classes))
                results[name].append(asdict(result))
                progress.tested(result, count=len(effort.sizes) * len(networks))
    return results


def _examples(config: DataConfig, root: Path | None) -> list[tuple[Any, float]]:
    """For each power of two, three test digits in one image (3·112, 112) from 0 to 1."""
    from scalechannels.data.pictures import as_shown
    from scalechannels.training.datasets import open_data

    data = open_data(config, "cpu", root)
    examples = []
    for size in (2 ** (k / 2) for k in range(-2, 7)):
        images = data.testing(size, "test").images[:3, 0]  # (3, H, W)
        examples.append((as_shown(images.flatten(0, 1)), size))
    return examples
