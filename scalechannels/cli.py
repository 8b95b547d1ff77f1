"""The command line. Thin: the modules of the commands import torch, numpy and the rest only when they are
called, so that --help stays fast and reads each command's own docstring."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cyclopts import App, Parameter

from scalechannels.commands.data import app as data
from scalechannels.commands.demo import demo
from scalechannels.commands.detect import detect
from scalechannels.commands.evaluate import evaluate
from scalechannels.commands.export import export
from scalechannels.commands.figure import figure
from scalechannels.commands.predict import predict
from scalechannels.commands.quickstart import quickstart
from scalechannels.commands.report import report
from scalechannels.commands.reproduce import reproduce
from scalechannels.commands.sweep import sweep
from scalechannels.commands.table import table
from scalechannels.commands.train import app as train
from scalechannels.version import __version__

app = App(
    name="scalechannels",
    help="Networks that recognise objects at sizes they were never trained on.",
    version=__version__,
    default_parameter=Parameter(consume_multiple=True, negative_iterable=()),
)
app.command(quickstart)
app.command(data)
app.command(train)
app.command(sweep)
app.command(evaluate)
app.command(predict)
app.command(detect)
app.command(export)
app.command(demo)
app.command(reproduce)
app.command(table)
app.command(figure)
app.command(report)


def main(words: Sequence[str] | None = None) -> None:
    try:
        command, bound, _ = app.parse_args(words)
    except ValueError as error:  # from a configuration that refuses its values
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    command(*bound.args, **bound.kwargs)


if __name__ == "__main__":
    main()
