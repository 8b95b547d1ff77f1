"""The command line, called as from a shell but in this process."""

from scalechannels.cli import main


def run(*words: object) -> int:
    """The exit code of `scalechannels WORDS`."""
    try:
        main([str(word) for word in words])
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0
