"""`scalechannels sweep`: a list of runs, one after the other or on a Ray cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from scalechannels.cli import Device, Out, Root, Sizes, Split, end, require_device
from scalechannels.training.config import RunConfig


def sweep(
    configs: Annotated[list[Path], Parameter(help="TOML config files, one for each run.")],
    /,
    *,
    ray: Annotated[
        bool,
        Parameter(help='Train each run as a Ray task. Needs pip install "scalechannels[ray]".', negative=()),
    ] = False,
    out: Out = Path("runs"),
    device: Device = None,
    root: Root = None,
    split: Split = "test",
    sizes: Sizes = None,
) -> None:
    """Train one run for each of several config files.

    Finished runs are not repeated; unfinished ones resume. A finished run that was tested on another --split
    or at other --sizes is tested again, but not trained again.

    On a GPU, runs that differ only in their training sizes and seeds are trained together. With --ray, runs
    are spread over a Ray cluster, and one whose process dies resumes from its checkpoint.

    Example: scalechannels sweep seed0.toml seed1.toml --ray
    """
    from scalechannels.data.sizes import accuracies, accuracy_table
    from scalechannels.files import require_writable_folder
    from scalechannels.training import sweep as sweeps

    wanted = [RunConfig.from_toml(path) for path in configs]
    # A cluster's machines find their own device.
    place = device if ray else require_device(device)
    require_writable_folder(out)
    try:
        runs = sweeps.sweep(wanted, out, ray=ray, device=place, root=root, split=split, sizes=sizes)
    except sweeps.RunsFailedError as error:
        end(str(error))
    for run in runs:
        found = accuracies(run.result()["evaluation"]["sizes"])
        print(f"\n{run.folder}\n{accuracy_table({run.config.network.name: found}, run.config.data.sizes)}")
