"""`scalechannels report`: the paper's tables and figures, its values and ours, as one page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from scalechannels.cli import ResultsFolder, ending


def report(
    *,
    out: Annotated[Path, Parameter(help="The HTML file to write.", validator=ending(".html"))] = Path(
        "report.html"
    ),
    document: Annotated[
        Path | None, Parameter(help="Instead, update this Markdown file between its two marker lines.")
    ] = None,
    results: ResultsFolder = None,
) -> None:
    """Write one page with all tables, figures and claims, the paper's values beside ours.

    The page is a single file. It is built from stored results, without a GPU, in under a minute.

    For example:

    - scalechannels report --out report.html
    - scalechannels report --document docs/reproduce.md
    """
    from scalechannels.files import require_writable, write_text
    from scalechannels.paper.results import known_results

    require_writable(document or out)
    known = known_results(results)
    if document is not None:
        from scalechannels.paper.document import updated

        path, text = document, updated(document.read_text(encoding="utf-8"), known)
    else:
        from scalechannels.paper.report import report_page

        path, text = out, report_page(known)
    write_text(path, text)
    print(path)
    for fault in known.faults.values():
        print(f"not used: {fault}", file=sys.stderr)
