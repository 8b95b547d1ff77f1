"""What options may say: ranges of numbers, choices by name, and cases that are refused.

Plain dataclasses with a few checks. A library for configuration, msgspec or pydantic, would have to be
installed wherever a network is trained, and GPU machines often have PyTorch alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints


class Range(NamedTuple):
    """What a number has to be, in words and as a test."""

    words: str
    holds: Callable[[float], bool]


POSITIVE = Range("a positive number", lambda value: 0 < value < math.inf)
ZERO_OR_MORE = Range("zero or more", lambda value: 0 <= value < math.inf)
AT_LEAST_1 = Range("at least 1", lambda value: 1 <= value < math.inf)
ABOVE_1 = Range("above 1", lambda value: 1 < value < math.inf)
BELOW_1 = Range("in [0, 1)", lambda value: 0 <= value < 1)
SHARE = Range("a share in (0, 1]", lambda value: 0 < value <= 1)
SEED = Range("in [0, 2^30)", lambda value: 0 <= value < 2**30)  # what the built-in digits take


def require_values(section: str, config: Any, ranges: Mapping[str, Range]) -> None:
    """An error that names the first field outside its range or its choices; None is always allowed."""
    for name, choices in _choices(config.__class__).items():
        value = getattr(config, name)
        if value is not None and value not in choices:
            raise ValueError(f"{section}.{name} is one of {', '.join(choices)}, got {value!r}")
    for name, allowed in ranges.items():
        value = getattr(config, name)
        if value is not None and not allowed.holds(value):
            raise ValueError(f"{section}.{name} is {allowed.words}, got {value}")


def refuse(*cases: tuple[bool, str]) -> None:
    """An error with the message of the first case that is so."""
    for is_so, message in cases:
        if is_so:
            raise ValueError(message)


@cache
def _choices(cls: Any) -> dict[str, tuple[str, ...]]:
    """The fields of a dataclass that take one of a few names, by their types."""
    found = {}
    for name, hint in get_type_hints(cls).items():
        for option in (hint, *get_args(hint)):
            if get_origin(option) is Literal:
                found[name] = get_args(option)
    return found
