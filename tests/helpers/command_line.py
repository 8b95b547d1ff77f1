"""The command line, called as from a shell but in this process."""

from pathlib import Path

from scalechannels.cli import main

TINY = """
[data]
sizes = [1, 2]
samples = 64
[network]
low = 1
high = 2
ratio = 1.4142135623730951
[training]
epochs = 2
"""


def run(*words: object) -> int:
    """The exit code of `scalechannels WORDS`."""
    try:
        main([str(word) for word in words])
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def only(here: Path) -> Path:
    """The folder of the one run."""
    (folder,) = [path for path in (here / "runs").iterdir() if path.is_dir()]
    return folder
