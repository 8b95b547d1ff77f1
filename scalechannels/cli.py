"""The command line: its commands, the options that several of them share, and how every command ends.

A command is imported when it is called or listed, and itself imports torch, numpy and the rest only when it
runs: --help stays fast.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, get_args

import cyclopts
from cyclopts import App, CycloptsError, Parameter

from scalechannels import __version__

INTERRUPTED = 130  # as shells count a process that Ctrl-C ended
COMMANDS = (
    *("quickstart", "data", "train", "sweep", "evaluate", "predict", "detect", "export", "demo"),
    *("reproduce", "table", "figure", "report", "compare"),
)
RESUMED = ("quickstart", "train", "sweep", "reproduce", "compare")
KNOBS = "give a smaller --training.batch or --data.samples, or fewer channels by a larger --network.ratio"
OPTION = re.compile(r"(?<![\w.-])(data|network|training)\.[a-z_]+")
"""An option as configurations name it."""
TYPES: dict[Any, str] = {int: "a whole number", float: "a number", bool: "true or false"}
TROUBLE = {
    FileNotFoundError: "does not exist",
    FileExistsError: "already exists and is not a folder",
    NotADirectoryError: "is not a folder",
    IsADirectoryError: "is a folder, not a file",
    PermissionError: "cannot be used: permission denied",
}
"""What the operating system reports of a path, as the end of a sentence."""


def must(holds: Callable[[Any], bool], be: str) -> Callable[[object, Any], None]:
    """A check of an option that was given: the error says what it must be, and `refusal` what it is."""

    def check(_: object, value: Any) -> None:
        if value is not None and not holds(value):
            raise ValueError(f"must {be}")

    return check


def ending(*suffixes: str) -> list[Callable[[object, Any], None]]:
    """Checks that a path can be that of a file of one of these kinds."""
    return [
        must(lambda path: path.suffix.lower() in suffixes, f"end in {' or '.join(suffixes)}"),
        must(lambda path: not path.is_dir(), "be a file, not a folder"),
    ]


AT_LEAST_ONE = must(lambda count: count >= 1, "be at least 1")
FOLDER = must(lambda path: not path.is_file(), "be a folder, not a file")
NetworkFolder = Annotated[
    Path, Parameter(help="The folder of a run or of a saved network, or the name of a shipped network.")
]
DEVICE = must(
    lambda device: bool(re.fullmatch(r"cpu|cuda(:\d+)?", device)),
    "be cpu, cuda, or a GPU by its number such as cuda:1",
)
Device = Annotated[
    str | None,
    Parameter(
        help="Where to compute: cpu, cuda, or cuda:1 for the second GPU. By default on the GPU if there is "
        "one.",
        validator=DEVICE,
    ),
]
Root = Annotated[
    Path | None,
    Parameter(
        help="Folder for downloaded data. It is searched first, then the user's cache. Default: "
        "$SCALECHANNELS_DATA if it is set, else the cache.",
        validator=FOLDER,
    ),
]
Split = Annotated[
    Literal["validation", "test"],
    Parameter(
        help="The images to test on: validation to compare options, test for the final result. Reports on "
        "your own images always use both."
    ),
]
Out = Annotated[Path, Parameter(help="The folder for runs; each run gets a subfolder.")]
Sizes = Annotated[
    tuple[float, ...] | None,
    Parameter(
        help="The object sizes to test at; 1 is the size in the original images. Default: 17 sizes from 1/2 "
        "to 8 for digits, 9 from 1/2 to 2 for CIFAR-10, 17 from 1/4 to 4 for your own images (in reports two "
        "for each octave of --range).",
        validator=[
            must(lambda sizes: all(0 < size < float("inf") for size in sizes), "be positive numbers"),
            must(lambda sizes: all(0.001 <= size <= 1000 for size in sizes), "be from 0.001 to 1000"),
            must(lambda sizes: len(set(sizes)) == len(sizes), "name each size only once"),
        ],
    ),
]
ResultsFolder = Annotated[
    Path | None,
    Parameter(
        name="--results",
        help="The folder of results; by default ./results, or else the repository's.",
    ),
]
MaxPixels = Annotated[
    int | None,
    Parameter(
        help="Refuse files with more pixels than this; 48 million by default.",
        validator=AT_LEAST_ONE,
    ),
]


@Parameter(name="*")
@dataclass(frozen=True)
class LookingOptions:
    """How commands look at a user's images."""

    invert: Annotated[
        bool, Parameter(help="Swap black and white, for dark objects on a light background.", negative=())
    ] = False
    values: Annotated[
        Literal["digits", "unit"] | None,
        Parameter(
            help="The range of grey values that the network takes: digits (−0.76 to 0.76) or unit (0 to 1). "
            "By default the one recorded in its folder."
        ),
    ] = None
    max_pixels: MaxPixels = None
    device: Device = None


LOOKING = LookingOptions()
app = App(
    name="scalechannels",
    help="Networks that recognise objects at sizes they were never trained on.",
    version=__version__,
    default_parameter=Parameter(consume_multiple=1, negative_iterable=()),
)
for name in COMMANDS:
    app.command(f"scalechannels.commands.{name}:{name}")


def main(words: Sequence[str] | None = None) -> None:
    """Run one command. What a user can fix ends with one line and exit code 1; a fault shows its trace."""
    words = sys.argv[1:] if words is None else words
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Terminals and pipes that are not UTF-8 show σ as a code, so that nothing is lost.
            stream.reconfigure(errors="backslashreplace")
    require_words(words)
    if not words or words[0].startswith("-"):
        for name in COMMANDS:
            app[name.replace("_", "-")]  # loads it: the list of commands shows what each one says of itself
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
            command, bound, _ = app.parse_args(words, print_error=False, exit_on_error=False)
            command(*bound.args, **bound.kwargs)
            sys.stdout.flush()
    except KeyboardInterrupt:
        resumed = words and words[0] in RESUMED
        print("\nstopped" + ("; run the same command again to resume" if resumed else ""), file=sys.stderr)
        sys.exit(INTERRUPTED)
    except CycloptsError as error:
        end(refusal(error))
    except BrokenPipeError:  # who reads the output has seen enough, as in `table 1 | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        trouble = TROUBLE.get(type(error), f"cannot be used: {error.strerror}")
        end(str(error) if error.filename is None else f"'{error.filename}' {trouble}")
    except (ValueError, FloatingPointError, ImportError) as error:
        end(as_typed(str(error)))
    except MemoryError as error:
        end(f"out of memory: {error or 'the machine has no more'}; {KNOBS}")
    except RuntimeError as error:
        import torch

        # The CPU's allocator has no class of its own.
        if not isinstance(error, torch.OutOfMemoryError) and "can't allocate memory" not in str(error):
            raise
        end(f"out of memory on the device; {KNOBS}")


def require_words(words: Sequence[str]) -> None:
    """Refuse an empty argument, which as a path would be the current folder."""
    for before, word in zip(("", *words), words, strict=False):
        option, given, value = word.partition("=")
        if word == "" or (option.startswith("--") and given and not value):
            name = option or (before if before.startswith("--") else "an argument")
            end(f"{name} must not be empty; got ''")


def as_typed(message: str) -> str:
    """The message with options as one types them; one about a config file keeps the names of the file."""
    if ".toml'" in message:
        return message
    return OPTION.sub(lambda found: f"--{found[0].replace('_', '-')}", message)


def refusal(error: CycloptsError) -> str:
    """What the parser refuses, in the words of our own errors: X must be …; got …."""
    command = " ".join(("scalechannels", *(error.command_chain or ())))
    word, argument = (error.unused_tokens or [""])[0], error.argument
    if isinstance(error, cyclopts.UnknownCommandError):
        return _unknown(word, error.app or (), command)
    if isinstance(error, cyclopts.UnknownOptionError):
        known = (name for argument in error.argument_collection for name in argument.names)
        return _unknown(error.token.keyword or error.token.value, known, command)
    if isinstance(error, cyclopts.UnusedCliTokensError):
        return f"unexpected argument '{word}'; see {command} --help"
    if argument is None or error.msg is not None:
        return str(error)
    name = argument.name.lstrip("-").upper() if argument.field_info.is_positional else argument.name
    if isinstance(error, cyclopts.MissingArgumentError):
        count = argument.token_count()[0]
        if count > 1:
            return f"{name} needs {count} values; got {len(error.tokens_so_far)}"
        return f"{name} needs a value" if error.keyword else f"{command} needs {name}; see {command} --help"
    if isinstance(error, cyclopts.ValidationError):
        return f"{name} {error.exception_message}; got '{' '.join(token.value for token in argument.tokens)}'"
    if isinstance(error, cyclopts.CoercionError) and error.token is not None:
        *choices, last = get_args(error.target_type) or (TYPES.get(error.target_type, "of another kind"),)
        wanted = f"{', '.join(choices)} or {last}" if choices else last
        return f"{name} must be {wanted}; got '{error.token.value}'"
    return str(error)


def _unknown(word: str, known: Iterable[str], command: str) -> str:
    near = get_close_matches(word, known, n=1, cutoff=0.75)
    advice = f"did you mean {near[0]}?" if near else f"see {command} --help"
    return f"there is no {'option' if word.startswith('-') else 'command'} '{word}'; {advice}"


def end(message: str) -> NoReturn:
    """Say what is in the way, and leave with exit code 1."""
    print(f"error: {message}", file=sys.stderr)
    sys.exit(1)


def require_device(device: str | None) -> str:
    """cpu or cuda; a clear error where there is none of that kind.

    A GPU by its number becomes the one that cuda means from now on.
    """
    import torch

    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, number = device.partition(":")
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"--device must be cpu, since PyTorch finds no CUDA device here; got '{device}'")
    if number:
        count = torch.cuda.device_count()
        if int(number) >= count:
            raise ValueError(f"--device must be cuda:0 to cuda:{count - 1}, the GPUs here; got '{device}'")
        if "RANK" in os.environ:
            raise ValueError(
                f"--device must be cuda, as torchrun gives each process its own GPU; got '{device}'"
            )
        torch.cuda.set_device(int(number))
    return kind


if __name__ == "__main__":
    main()
