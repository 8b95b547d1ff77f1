"""Dataclasses as options: what they may say, and how they are read from and written to TOML.

A library for configuration, msgspec or pydantic, would have to be installed wherever a network is trained,
and GPU machines often have PyTorch alone.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from scalechannels.files import require_utf8
from scalechannels.scales import SCALES

Config = TypeVar("Config")
_hints = cache(get_type_hints)
RETIRED = {"training": {"phases": 1, "beyond": 0}}
"""Options that are gone, with the values at which they did nothing: old files have them."""
LAST_WITH_RETIRED = "19eb71c"
UNPREFIXED = ("range", "pixel_size", "deploy_pixel_sizes", "skip_corrupt", "max_pixels")
"""Options of [data] for your own images, which the command line has without the prefix."""
WORDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    tuple[float, ...]: "a list of numbers",
}


class Range(NamedTuple):
    """What a number must be, in words and as a test."""

    words: str
    holds: Callable[[float], bool]


Positive = Annotated[float, Range("a positive number", lambda value: 0 < value < math.inf)]
NotNegative = Annotated[float, Range("zero or more", lambda value: 0 <= value < math.inf)]
Ratio = Annotated[float, Range("above 1", lambda value: 1 < value < math.inf)]
UpToOne = Annotated[float, Range("at least 0 and below 1", lambda value: 0 <= value < 1)]
Degrees = Annotated[float, Range("from 0 to 180", lambda value: 0 <= value <= 180)]
Share = Annotated[float, Range("above 0 and at most 1", lambda value: 0 < value <= 1)]
Detail = Annotated[Share, Range("at least 0.01", lambda value: value >= 0.01)]
AreaPower = Annotated[float, Range("from 0 to 8", lambda value: 0 <= value <= 8)]
Factor = Annotated[float, Range("from 1 to 16", lambda value: 1 <= value <= 16)]
Count = Annotated[int, Range("at least 1", lambda value: value >= 1)]
Width = Annotated[int, Range("from 1 to 16", lambda value: 1 <= value <= 16)]
Many = Annotated[Count, Range("at most 100 million", lambda value: value <= 100_000_000)]
Rate = Annotated[Positive, Range("at most 1e38", lambda value: value <= 1e38)]  # as weights have it
Variance = Annotated[Positive, Range("at most 10000", lambda value: value <= 10_000)]
Scale = Annotated[Positive, Range("from 0.0001 to 10000", lambda value: SCALES[0] <= value <= SCALES[1])]
ObjectSize = Annotated[Positive, Range("from 0.001 to 1000", lambda value: 0.001 <= value <= 1000)]
Side = Annotated[Positive, Range("at most 1000000", lambda value: value <= 1_000_000)]
Whole = Annotated[int, Range("zero or more", lambda value: value >= 0)]
Pixels = Annotated[Whole, Range("at most 256", lambda value: value <= 256)]
Seed = Annotated[int, Range("at least 0 and below 2^30", lambda value: 0 <= value < 2**30)]


def require_values(section: str, config: Any) -> None:
    """An error that names the first field outside its range or its choices; None is always allowed."""
    for name, choices, ranges in _limits(config.__class__):
        given = getattr(config, name)
        for value in given if isinstance(given, tuple) else () if given is None else (given,):
            if choices and value not in choices:
                wanted = f"one of {', '.join(choices)}; got {value!r}"
                raise ValueError(f"{option_name(section, name)} must be {wanted}")
            for one in ranges:
                if not one.holds(value):  # texts are made for faults alone: this is done very often
                    raise ValueError(f"{option_name(section, name)} must be {one.words}; got {value}")


@cache
def _limits(cls: Any) -> list[tuple[str, tuple[str, ...], tuple[Range, ...]]]:
    """The fields that have choices or ranges. Cached: a table makes thousands of configurations."""
    found = []
    for name, hint in get_type_hints(cls, include_extras=True).items():
        for option in _members(hint):
            inner = get_args(option)[0] if get_origin(option) is tuple else option
            choices, ranges = _choices(option), getattr(inner, "__metadata__", ())
            if choices or ranges:
                found.append((name, choices, ranges))
    return found


def option_name(section: str, name: str) -> str:
    """An option as errors name it: as in a config file, or without the prefix as on the command line."""
    return f"--{name.replace('_', '-')}" if name in UNPREFIXED else f"{section}.{name}"


def refuse(is_so: bool, message: str) -> None:
    if is_so:
        raise ValueError(message)


def changed(config: Any) -> dict[str, Any]:
    """The fields of a dataclass, and of those within it, that are not at their defaults and are compared.

    A field that a later version has added has the metadata "unnamed": at this value it is left out, too.
    """
    found = {}
    for entry in dataclasses.fields(config):
        value = getattr(config, entry.name)
        if entry.compare and value not in (entry.default, entry.metadata.get("unnamed", entry.default)):
            found[entry.name] = changed(value) if dataclasses.is_dataclass(value) else value
    return found


def filled(cls: type[Config], config: Any, **defaults: Any) -> Config:
    """The dataclass as `cls`, with these values where it has None."""
    values = {entry.name: getattr(config, entry.name) for entry in dataclasses.fields(config)}
    return cls(**values | {key: value for key, value in defaults.items() if values[key] is None})


def to_toml(sections: dict[str, dict[str, Any]]) -> str:
    """A table for each section; TOML has no None, so such options are left out.

    Law: a reader of TOML reads the same values back. Limit: text that UTF-8 cannot hold is an error.
    """
    tables = [
        f"[{section}]\n"
        + "".join(f"{key} = {_toml(value)}\n" for key, value in fields.items() if value is not None)
        for section, fields in sections.items()
    ]
    return "\n".join(tables)


def _toml(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, str):
        require_utf8(value)
    # The two agree but for this: TOML has no pairs of escapes for what lies beyond 16 bits, so characters are
    # written as they are, and "delete" only as an escape.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_toml(path: Path | str) -> dict[str, Any]:
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10
        import tomli as tomllib  # type: ignore
    if not Path(path).is_file():
        trouble = "is a folder" if Path(path).is_dir() else "does not exist"
        raise FileNotFoundError(f"'{path}' {trouble}; give a TOML file")
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except RecursionError:
        raise ValueError(f"'{path}' is not valid TOML: its tables are nested too deeply") from None
    except ValueError as error:
        reason: Any = "it is not text" if isinstance(error, UnicodeDecodeError) else error
        raise ValueError(f"'{path}' is not valid TOML: {reason}") from error


def from_dict(cls: Any, values: Any, place: str = "") -> Any:
    """The dataclass of a nested dictionary; unknown keys and wrong types are errors that name their place."""
    refuse(not isinstance(values, dict), f"[{place}] must be a table of options; got {values!r}")
    hints = _hints(cls)
    known = {key: value for key, value in values.items() if not _is_retired(place, key, value)}
    for key in sorted(set(known) - set(hints)):
        named = key if key.isprintable() else repr(key)
        what = f"option {place}.{named}; [{place}] accepts" if place else f"table [{named}]; a run has"
        if not place and not isinstance(known[key], dict):
            what = f"option {named} outside a table; a run has the tables"
        raise ValueError(f"unknown {what}: {', '.join(hints)}")
    for entry in dataclasses.fields(cls):
        needed = entry.default is entry.default_factory is dataclasses.MISSING
        refuse(
            needed and entry.name not in known,
            f"{place}.{entry.name} is missing; a trained run always has it",
        )
    return cls(
        **{key: _converted(hints[key], value, f"{place}.{key}".strip(".")) for key, value in known.items()}
    )


def _is_retired(place: str, key: str, value: Any) -> bool:
    if key not in RETIRED.get(place, {}):
        return False
    neutral = RETIRED[place][key]
    refuse(
        value != neutral,
        f"{place}.{key} = {value} is no longer supported, only {neutral}, which changes nothing; "
        f"the last commit with the code is {LAST_WITH_RETIRED}",
    )
    return True


def _converted(hint: Any, value: Any, place: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return from_dict(hint, value, place)
    for option in _members(hint):
        if (option is type(None) and value is None) or value in _choices(option):
            return value
        if get_origin(option) is tuple and isinstance(value, (list, tuple)):
            return tuple(_converted(get_args(option)[0], item, place) for item in value)
        if option is float and isinstance(value, (int, float)) and not isinstance(value, bool):
            if abs(value) > sys.float_info.max:  # a whole number may be too large to become one
                return math.inf if value > 0 else -math.inf
            return float(value)
        if option in (int, bool, str) and type(value) is option:
            return value
    accepted = next(option for option in _members(hint) if option is not type(None))
    words = f"one of {', '.join(_choices(accepted))}" if _choices(accepted) else WORDS[accepted]
    raise ValueError(f"{place} must be {words}; got {value!r}")


def _members(hint: Any) -> tuple[Any, ...]:
    """The types of a union, or the one type itself."""
    return (hint,) if get_origin(hint) in (None, tuple, Literal, Annotated) else get_args(hint)


def _choices(option: Any) -> tuple[str, ...]:
    return get_args(option) if get_origin(option) is Literal else ()
