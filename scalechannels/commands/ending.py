"""How a command ends when something is in its way: one line that says what to do, and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from scalechannels.commands.data import expected_errors

INTERRUPTED = 130  # as shells count a process that Ctrl-C ended


@contextmanager
def clear_ending(on_interrupt: str = "stopped") -> Iterator[None]:
    """What a user can mend ends with one line and exit code 1; all else is a fault and shows its trace.

    `on_interrupt` is said after Ctrl-C, which ends with exit code 130.
    """
    try:
        with expected_errors():
            yield
    except KeyboardInterrupt:
        print(f"\n{on_interrupt}", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except (FloatingPointError, ImportError) as error:
        _end(str(error))
    except MemoryError as error:
        _end(f"out of memory: {error or 'the machine has no more'}; {KNOBS}")
    except RuntimeError as error:
        if not _out_of_memory(error):
            raise
        _end(f"out of memory on the device; {KNOBS}")


KNOBS = "give a smaller --training.batch or --data.samples, or fewer channels by a larger --network.ratio"


def _out_of_memory(error: RuntimeError) -> bool:
    import torch

    # The CPU's allocator has no class of its own.
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def _end(message: str) -> None:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(1)
