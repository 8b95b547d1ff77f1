"""Dataclasses as options: from dictionaries and TOML and back, and what of them is not at its default."""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

Config = TypeVar("Config")

RETIRED = {"training": {"phases": 1, "beyond": 0}}
"""Options that are gone, with the values at which they did nothing: old files have them."""
LAST_WITH_RETIRED = "19eb71c"


def without_retired(values: Any) -> Any:
    """Nested options without those that are gone; an error for a value that did something."""
    if not isinstance(values, dict):
        return values
    kept = dict(values)
    for section, options in RETIRED.items():
        given = values.get(section)
        if not isinstance(given, dict):
            continue
        for option, neutral in options.items():
            if given.get(option, neutral) != neutral:
                raise ValueError(
                    f"{section}.{option} = {given[option]} is no longer supported, only {neutral}, which "
                    f"changes nothing; the last commit with the code is {LAST_WITH_RETIRED}"
                )
        kept[section] = {key: value for key, value in given.items() if key not in options}
    return kept


def changed(config: Any) -> dict[str, Any]:
    """The fields of a dataclass, and of those within it, that are not at their defaults and are compared."""
    found = {}
    for entry in dataclasses.fields(config):
        value = getattr(config, entry.name)
        if entry.compare and value != entry.default:
            found[entry.name] = changed(value) if dataclasses.is_dataclass(value) else value
    return found


def filled(cls: type[Config], config: Any, **defaults: Any) -> Config:
    """The dataclass as `cls`, with these values where it has None."""
    values = {entry.name: getattr(config, entry.name) for entry in dataclasses.fields(config)}
    return cls(**values | {key: value for key, value in defaults.items() if values[key] is None})


def to_toml(sections: dict[str, dict[str, Any]]) -> str:
    """A table for each section; TOML has no None, so such options are left out."""
    tables = [
        f"[{section}]\n"
        + "".join(f"{key} = {_toml(value)}\n" for key, value in fields.items() if value is not None)
        for section, fields in sections.items()
    ]
    return "\n".join(tables)


def read_toml(path: Path | str) -> dict[str, Any]:
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10
        import tomli as tomllib  # type: ignore
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is no valid TOML: {error}") from error


def _toml(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(value)  # the two agree on strings, numbers and booleans


def from_dict(cls: Any, values: Any, place: str) -> Any:
    """The dataclass of a nested dictionary; unknown keys and wrong types are errors that name their place."""
    if not isinstance(values, dict):
        raise ValueError(f"[{place}] is a table of options, got {values!r}")
    hints = _hints(cls)
    unknown = sorted(set(values) - set(hints))
    if unknown:
        named = ", ".join(f"{place}.{key}" if place else key for key in unknown)
        raise ValueError(f"unknown option {named}; known in {place or 'a run'}: {', '.join(hints)}")
    for entry in dataclasses.fields(cls):
        if entry.name not in values and entry.default is entry.default_factory is dataclasses.MISSING:
            raise ValueError(f"{place}.{entry.name} is missing, which every trained run has".lstrip("."))
    return cls(
        **{key: _converted(hints[key], value, f"{place}.{key}".strip(".")) for key, value in values.items()}
    )


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


def _converted(hint: Any, value: Any, place: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return from_dict(hint, value, place)
    options = (
        get_args(hint) if get_origin(hint) not in (None, tuple, Literal) else (hint,)
    )  # a union's members
    for option in options:
        if option is type(None) and value is None:
            return None
        if get_origin(option) is Literal and value in get_args(option):
            return value
        if get_origin(option) is tuple and isinstance(value, (list, tuple)):
            return tuple(_converted(get_args(option)[0], item, place) for item in value)
        if option is float and isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        if option in (int, bool, str) and type(value) is option:
            return value
    accepted = " or ".join(
        str(get_args(o) if get_origin(o) is Literal else getattr(o, "__name__", o)) for o in options
    )
    raise ValueError(f"{place} takes {accepted}, got {value!r}")
