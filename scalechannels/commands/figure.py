"""`scalechannels figure`: the paper's figures from results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from scalechannels.cli import ResultsFolder


def figure(
    ids: Annotated[
        list[str],
        Parameter(
            help="Numbers from 2 to 15; batch-norm, single-channel, pretrained and equal-blur from the "
            "paper's text; beyond-sizes, beyond-few, beyond-cifar and anywhere, which are ours; or all."
        ),
    ],
    /,
    *,
    out: Annotated[Path, Parameter(help="The folder for a PNG and an SVG of each figure.")] = Path("figures"),
    results: ResultsFolder = None,
) -> None:
    """Draw figures of the paper as PNG and SVG. Each picture names the results it lacks.

    For example:

    - scalechannels figure 5
    - scalechannels figure all --out figures
    """
    from scalechannels.files import require_writable_folder
    from scalechannels.paper.experiments import expanded
    from scalechannels.paper.figures.draw import draw, save, with_pictures
    from scalechannels.paper.results import known_results

    require_writable_folder(out)
    known = known_results(results)
    named = [f"figure{id}" if id.isdecimal() else id for id in ids]
    wanted = [one.id for one in with_pictures()] if "all" in named else expanded(named)
    for id in wanted:
        for path in save(draw(id, known), out / id):
            print(path)
    for fault in known.faults.values():
        print(f"not used: {fault}", file=sys.stderr)
