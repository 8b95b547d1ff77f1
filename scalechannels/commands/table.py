"""`scalechannels table`: the paper's tables from results."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from cyclopts import Parameter

from scalechannels.cli import ResultsFolder


def table(
    id: Annotated[
        str,
        Parameter(
            help="A table of the paper, 1 to 5; beyond, scatter, evidence, evidence-mnist, evidence-cifar, "
            "evidence-cifar-paper, recommended, recommended-mnist, recommended-cifar, cifar-augmented, "
            "outside, anywhere or everywhere-mnist for ours; or a figure such as figure5 for its data."
        ),
    ],
    /,
    *,
    form: Annotated[
        Literal["text", "markdown", "json"], Parameter(name="--format", help="The output format.")
    ] = "text",
    results: ResultsFolder = None,
) -> None:
    """Print a table of the paper, with its values beside ours. A dash marks a missing value.

    For example:

    - scalechannels table 1
    - scalechannels table 1 --format json
    - scalechannels table figure7
    """
    from scalechannels.paper.results import known_results
    from scalechannels.paper.table_text import table_text

    known = known_results(results)
    print(table_text(known, f"table{id}" if id.isdecimal() else id, form))
    for fault in known.faults.values():
        print(f"not used: {fault}", file=sys.stderr)
