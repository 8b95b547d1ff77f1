"""`scalechannels sweep`: a list of runs, one after the other or on a Ray cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from scalechannels.commands.ending import clear_ending
from scalechannels.commands.train import Device, Out, Root, Sizes, Split, require_device, require_sizes
from scalechannels.training.config.run import RunConfig


def sweep(
    configs: Annotated[list[Path], Parameter(help="Config files, one for each run.")],
    /,
    *,
    ray: Annotated[
        bool, Parameter(help="One task for each run on a Ray cluster, or a local one.", negative=())
    ] = False,
    out: Out = Path("runs"),
    device: Device = None,
    root: Root = None,
    split: Split = "test",
    sizes: Sizes = None,
) -> None:
    """Do the runs of several config files. Runs that are done are left as they are, others go on.

    Runs that were tested on another --split or other --sizes are tested anew, and not trained again.

    On a GPU, runs that differ in their training sizes and seeds alone are trained together. With --ray, a
    task that dies is started again from its checkpoint.

    Example: scalechannels sweep seed0.toml seed1.toml --ray
    """
    with clear_ending("stopped; the same command goes on where it was"):
        from scalechannels.report.text import accuracies, accuracy_table
        from scalechannels.training.sweep import RunsFailedError
        from scalechannels.training.sweep import sweep as do_all

        require_sizes(sizes)
        wanted = [RunConfig.from_toml(path) for path in configs]
        # A cluster's machines find their own device.
        place = device if ray else require_device(device)
        try:
            runs = do_all(wanted, out, ray=ray, device=place, root=root, split=split, sizes=sizes)
        except RunsFailedError as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(1)
        for run in runs:
            print(f"\n{run.folder}")
            evaluation = run.result()["evaluation"]
            print(
                accuracy_table(
                    {run.config.network.name: accuracies(evaluation["sizes"])}, run.config.data.sizes
                )
            )
