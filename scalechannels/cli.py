"""The command line: its commands, the options that several of them share, and how every command ends.

A command is imported when it is called or listed, and itself imports torch, numpy and the rest only when it
runs: --help stays fast.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, NoReturn

from cyclopts import App, CycloptsError, Parameter
from cyclopts.validators import Number

from scalechannels import __version__

INTERRUPTED = 130  # as shells count a process that Ctrl-C ended
COMMANDS = (
    *("quickstart", "data", "train", "sweep", "evaluate", "predict", "detect", "export", "demo"),
    *("reproduce", "table", "figure", "report"),
)
RESUMED = ("quickstart", "train", "sweep", "reproduce")


def _each_once(_: object, sizes: Sequence[float] | None) -> None:
    if sizes is None:
        return
    if not all(0 < size < float("inf") for size in sizes):
        raise ValueError("Sizes are positive, such as 0.5 1 2.")
    if len(set(sizes)) < len(sizes):
        raise ValueError("Give each size once.")


NetworkFolder = Annotated[
    Path, Parameter(help="The folder of a run or of a saved network, or a shipped network's name.")
]
Device = Annotated[
    Literal["cpu", "cuda"] | None, Parameter(help="Where to compute; by default on the GPU if there is one.")
]
Root = Annotated[
    Path | None,
    Parameter(help="Folder of the raw data; by default $SCALECHANNELS_DATA, else the user's cache."),
]
Split = Annotated[
    Literal["validation", "test"],
    Parameter(help="Which split to test on. Use validation to choose, test to report."),
]
Out = Annotated[Path, Parameter(help="The folder for all runs; each gets a folder in it.")]
Sizes = Annotated[
    tuple[float, ...] | None,
    Parameter(
        help="The object sizes to test at, relative to size 1; by default all sizes of the data.",
        validator=_each_once,
    ),
]
ResultsFolder = Annotated[
    Path | None,
    Parameter(
        name="--results", help="The folder of the results; by default ./results, else the repository's."
    ),
]
Invert = Annotated[
    bool, Parameter(help="For dark objects on a light background: swaps black and white.", negative=())
]
ValueRange = Annotated[
    Literal["digits", "unit"] | None,
    Parameter(
        help="The grey values that the network takes: digits (−0.76 to 0.76) or unit (0 to 1). Default: as "
        "recorded in its folder."
    ),
]
MaxPixels = Annotated[
    int | None,
    Parameter(help="Files with more pixels are refused; 48 million by default.", validator=Number(gte=1)),
]

app = App(
    name="scalechannels",
    help="Networks that recognise objects at sizes they were never trained on.",
    version=__version__,
    default_parameter=Parameter(consume_multiple=True, negative_iterable=()),
)
for name in COMMANDS:
    app.command(f"scalechannels.commands.{name}:{name}")


def main(words: Sequence[str] | None = None) -> None:
    """Run one command. What a user can fix ends with one line and exit code 1; a fault shows its trace."""
    words = sys.argv[1:] if words is None else words
    if not words or words[0].startswith("-"):
        for name in COMMANDS:
            app[name]  # loads it: the list of commands shows what each one says of itself
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
            command, bound, _ = app.parse_args(words, print_error=False, exit_on_error=False)
            command(*bound.args, **bound.kwargs)
    except KeyboardInterrupt:
        resumed = words and words[0] in RESUMED
        print("\nstopped" + ("; run the same command again to resume" if resumed else ""), file=sys.stderr)
        sys.exit(INTERRUPTED)
    except (CycloptsError, OSError, ValueError, FloatingPointError, ImportError) as error:
        end(str(error))
    except MemoryError as error:
        end(f"out of memory: {error or 'the machine has no more'}; {KNOBS}")
    except RuntimeError as error:
        if not _out_of_memory(error):
            raise
        end(f"out of memory on the device; {KNOBS}")


KNOBS = "give a smaller --training.batch or --data.samples, or fewer channels by a larger --network.ratio"


def end(message: str) -> NoReturn:
    """Say what is in the way, and leave with exit code 1."""
    print(f"error: {message}", file=sys.stderr)
    sys.exit(1)


def _out_of_memory(error: RuntimeError) -> bool:
    import torch

    # The CPU's allocator has no class of its own.
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def require_device(device: str | None) -> str:
    """The device to compute on; a clear error where there is none of that kind."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("--device cuda: this machine has no CUDA device that PyTorch can use; use cpu")
    return device or ("cuda" if torch.cuda.is_available() else "cpu")


if __name__ == "__main__":
    main()
