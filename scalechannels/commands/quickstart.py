"""`scalechannels quickstart`: the point of the library in two minutes, on a CPU, as a table and a page."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from scalechannels.cli import FOLDER, Root
from scalechannels.data.sizes import MNIST_SIZES
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig

if TYPE_CHECKING:
    from scalechannels.training.datasets import DataSets
    from scalechannels.training.runs import Run

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
    out: Annotated[
        Path, Parameter(help="The folder for the report and the two runs.", validator=FOLDER)
    ] = Path("quickstart"),
    data: Annotated[
        Literal["strokes", "mnist"],
        Parameter(help="Built-in digits (strokes), or MNIST, which is fetched once."),
    ] = "strokes",
    root: Root = None,
    effort: Annotated[Effort | None, Parameter(parse=False)] = None,
) -> Path:
    """See what scale channels do, in two minutes: train at one size, test at seventeen.

    A scale-channel network and a plain CNN are trained on the same 3,000 digits of one size, on the CPU. Both
    are then tested on new digits from half that size to eight times that size, and a report compares them. If
    the command is stopped or killed, run it again to resume.

    Example: scalechannels quickstart --out quickstart
    """
    from scalechannels.data.sizes import accuracies, accuracy_table
    from scalechannels.files import atomic_path, require_writable_folder, write_text
    from scalechannels.report.curves import accuracy_curves
    from scalechannels.saving.saved_network import load
    from scalechannels.training.datasets import open_data

    require_writable_folder(out)
    effort = effort or Effort()
    started = time.perf_counter()
    wanted = zip(NAMES, configs(data, effort), strict=True)
    runs = {
        name: _trained(f"{number}/3  Training: {name}", config, out, root)
        for number, (name, config) in enumerate(wanted, start=1)
    }
    print(f"3/3  Testing both at {len(effort.sizes)} sizes, {effort.tested} new digits each …", flush=True)
    networks: dict[str, Any] = {name: load(run.folder) for name, run in runs.items()}
    digits = open_data(runs[NAMES[0]].config.data, "cpu", root)
    results = _tested(networks, digits, effort)
    result = {
        "data": data,
        "trained": SIZE,
        "seconds": time.perf_counter() - started,
        "runs": {name: run.result() for name, run in runs.items()},
        "evaluation": results,
    }
    columns = {name: accuracies(entries) for name, entries in results.items()}
    print(f"\n{accuracy_table(columns, [SIZE])}", flush=True)
    curves = accuracy_curves(columns, [SIZE], "Trained at one size, tested at seventeen")
    folders = [str(run.folder) for run in runs.values()]
    text = _page(result, columns, list(networks[NAMES[0]].grid), digits, folders)
    write_text(out / "result.json", json.dumps(result, indent=1) + "\n")
    with atomic_path(out / "accuracy.png") as path:
        curves.savefig(path, format="png", dpi=110)
    write_text(out / "report.html", text)
    print(f"\nThe report: {out / 'report.html'}")
    return out / "report.html"


def configs(data: Literal["strokes", "mnist"], effort: Effort) -> tuple[RunConfig, RunConfig]:
    """The two runs: the same digits, the same recipe, two networks."""
    digits = DataConfig(data, (SIZE,), samples=effort.samples)
    training = TrainingConfig(epochs=effort.epochs, schedule="cosine", period=effort.epochs)
    scales = NetworkConfig("fovlse", low=LOW, high=8.0, ratio=effort.ratio)
    return RunConfig(digits, scales, training), RunConfig(digits, NetworkConfig("cnn"), training)


def _trained(doing: str, config: RunConfig, out: Path, root: Path | None) -> Run:
    from scalechannels.training.fit import fit

    print(f"{doing}, {config.data.samples:,} digits of size {SIZE:g} …", flush=True)
    # Later both networks are tested at all sizes, on one set.
    (run,) = fit([config], out / "runs", device="cpu", root=root, sizes=[SIZE])
    result = run.result()
    seconds, found = result["seconds"]["training"], result["evaluation"]["sizes"][0]["accuracy"]
    print(f"     {seconds:.0f} s; {found:.1f} % accuracy on new digits of that size", flush=True)
    return run


def _tested(networks: dict[str, Any], digits: DataSets, effort: Effort) -> dict[str, list[Any]]:
    """The results of all networks at all sizes; each test set is made once."""
    from scalechannels.data.image_set import ImageSet
    from scalechannels.training.evaluate import evaluate_set
    from scalechannels.training.progress import Progress

    results: dict[str, list[Any]] = {name: [] for name in networks}
    with Progress("testing", True) as progress:
        for size in effort.sizes:
            made = digits.testing(size, "test")
            some = ImageSet(*(part[: effort.tested] for part in (made.images, made.labels, made.scales)))
            for name, network in networks.items():
                result = evaluate_set(network, some, size, len(digits.classes))
                results[name].append(asdict(result))
                progress.tested(result, count=len(effort.sizes) * len(networks))
    return results


def _page(
    result: dict[str, Any], columns: dict[str, Any], scales: list[float], digits: DataSets, folders: list[str]
) -> str:
    """The report; at every other size it shows three test digits, in one image (3·112, 112) from 0 to 1."""
    from scalechannels.data.pictures import as_shown
    from scalechannels.data.sizes import inside
    from scalechannels.report.curves import accuracy_curves, selection_picture
    from scalechannels.report.page import render

    channels, plain = NAMES
    sizes = sorted(columns[channels])
    expected = inside(sizes, 0.5, 4)
    selection = [entry["selection"] for entry in result["evaluation"][channels]]
    shown = ((digits.testing(size, "test").images[:3, 0], size) for size in MNIST_SIZES[::2])
    return render(
        "quickstart.html",
        result=result,
        channels=channels,
        plain=plain,
        scales=scales,
        sizes=sizes,
        columns=columns,
        worst=min(columns[channels][size] for size in expected),
        farthest=max(expected),
        curves=accuracy_curves(columns, [SIZE]),
        selection=selection_picture(sizes, scales, selection),
        examples=[(as_shown(images.flatten(0, 1)), size) for images, size in shown],
        folders=folders,
    )
