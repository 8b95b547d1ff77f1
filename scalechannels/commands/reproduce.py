"""`scalechannels reproduce`: the runs of the paper's tables and figures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from scalechannels.cli import AT_LEAST_ONE, Device, Out, ResultsFolder, Root, require_device

PaperNetwork = Literal["fovavg", "fovmax", "fovconc", "swmax", "cnn", "fovlse"]


def reproduce(
    ids: Annotated[
        list[str],
        Parameter(
            help="table1 to table5, figure2 to figure15; batch-norm, single-channel, pretrained and "
            "equal-blur from the paper's text; beyond, beyond-sizes, beyond-few, beyond-cifar, scatter, "
            "evidence, evidence-mnist, evidence-cifar, evidence-cifar-paper, recommended, "
            "recommended-mnist, recommended-cifar, cifar-augmented, anywhere, anywhere-translated, "
            "anywhere-centred and everywhere-mnist, which are ours; or all."
        ),
    ],
    /,
    *,
    seeds: Annotated[
        int | None,
        Parameter(
            help="Number of seeds; by default 3 for tables and 1 for most figures.", validator=AT_LEAST_ONE
        ),
    ] = None,
    only: Annotated[
        tuple[PaperNetwork, ...], Parameter(help="Train only these networks, such as fovavg fovmax.")
    ] = (),
    show: Annotated[
        bool,
        Parameter(
            name="--list",
            help="List the missing runs, each with the tables and figures that need it; train nothing.",
            negative=(),
        ),
    ] = False,
    out: Out = Path("runs"),
    results: ResultsFolder = None,
    device: Device = None,
    root: Root = None,
) -> None:
    """Train the runs that a table or figure still lacks.

    Finished runs are not repeated, and their results are kept as JSON. If the command is stopped or killed,
    run it again to resume. A result that is damaged or does not match its name is reported and recomputed. On
    a GPU, runs of equally large networks are trained together.

    For example:

    - scalechannels reproduce table1 --only cnn
    - scalechannels reproduce all --list
    """
    from scalechannels.files import require_writable_folder
    from scalechannels.paper import reproduce as runs
    from scalechannels.paper.experiments import chosen
    from scalechannels.paper.results import results_folder

    place = results_folder(results)
    if show:
        lacking = runs.missing(ids, place, seeds=seeds, only=only)
        asking = {one.id: set(one.runs(seeds)) for one in chosen(ids)}
        for run in lacking:
            print(run.resolve("cuda").name, *(id for id, wanted in asking.items() if run in wanted))
        print(f"missing runs: {len(lacking)}", file=sys.stderr)
        return
    for folder in (out, place):
        require_writable_folder(folder)
    left = runs.reproduce(ids, out, place, seeds=seeds, only=only, device=require_device(device), root=root)
    print("nothing is missing" if not left else f"runs that are still missing: {len(left)}")
