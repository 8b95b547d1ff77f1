"""What a config.json may say, checked as a whole before anything is built from it.

A config may come from elsewhere. Law: what passes names only parts of this library, with arguments of the
kinds that their constructors state; numbers are finite and not absurd, lists are short, and nothing in it
makes loading contact a network. Limit: whether the arguments suit each other, the constructors say.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Collection, Sequence
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from torch import nn

from scalechannels.scales import SCALES, ScaleGrid

LARGEST = 2**20
"""Of whole numbers: channels, classes, features and pixels are far fewer."""
LONGEST = 2**10
"""Of lists: scales of a grid, features of layers, means of colours."""
BOUNDS = {"factors": SCALES, "window": (1, 4096)}
"""Of arguments whose size decides how much memory an answer takes, and not how many weights there are."""
LIBRARY_NAME = re.compile(r"[\w.-]+")
"""Of a model of torchvision or timm. Others, such as timm's "hf-hub:…", would be looked for on a network."""
WORDS = {int: f"a whole number up to {LARGEST}", float: "a number", bool: "true or false", str: "text"}

ClassOf = Callable[[str], Any]
"""The class of this name that a config may have, else None."""


def require_arguments(kind: Any, arguments: Any, class_of: ClassOf, given: Collection[str] = ()) -> None:
    """An error unless a constructor takes these arguments; those that the user gives are not looked at."""
    accepted, unfit = arguments_of(kind), f"does not fit {kind.__name__}:"
    if not isinstance(arguments, dict):
        raise ValueError(f"{unfit} its arguments must be a table; got {arguments!r:.80}")
    if unknown := sorted(set(arguments) - set(accepted)):
        takes = ", ".join(accepted) or "no arguments"
        raise ValueError(f"{unfit} it takes {takes}; got {', '.join(map(repr, unknown))}")
    if missing := [name for name, one in accepted.items() if one.needed and name not in arguments]:
        raise ValueError(f"{unfit} it lacks {', '.join(missing)}")
    for name, value in arguments.items():
        if name not in given:
            require_value(f"{unfit} {name}", accepted[name].hint, value, class_of)
            require_bounds(f"{unfit} {name}", name, value)
    if kind.__name__ == "LibraryBackbone" and not LIBRARY_NAME.fullmatch(arguments["name"]):
        raise ValueError(
            f"{unfit} name must be that of a model in the installed {arguments['library']}; got "
            f"{arguments['name']!r:.80}. To have it looked for elsewhere, build the backbone yourself and "
            "give it: load(…, backbone=LibraryBackbone(…))"
        )


class Argument:
    """One argument of a constructor, as a config may have it."""

    def __init__(self, hint: Any, needed: bool) -> None:
        self.hint, self.needed = hint, needed


def arguments_of(kind: Any) -> dict[str, Argument]:
    """What the constructor of a part takes; weights are never fetched for a config."""
    if kind is ScaleGrid:
        return {"factors": Argument(tuple[float, ...], needed=True)}
    hints = get_type_hints(kind.__init__)
    return {
        name: Argument(hints.get(name, Any), one.default is inspect.Parameter.empty)
        for name, one in inspect.signature(kind).parameters.items()
        if name != "weights" and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    }


def require_value(place: str, hint: Any, value: Any, class_of: ClassOf) -> None:
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if any(_is(option, value, class_of) for option in options):
        return
    words = (f"one of {', '.join(map(repr, get_args(one)))}" for one in options if get_origin(one) is Literal)
    kinds = (WORDS[one] for one in options if one in WORDS)
    listed = (f"up to {LONGEST} numbers" for one in options if get_origin(one) in (tuple, Sequence))
    nothing = ("null" for one in options if one is type(None))
    wanted = " or ".join((*words, *kinds, *listed, *nothing)) or "a part"
    raise ValueError(f"{place} must be {wanted}; got {value!r:.80}")


def require_bounds(place: str, name: str, value: Any) -> None:
    low, high = BOUNDS.get(name, (-math.inf, math.inf))
    numbers = value if isinstance(value, list) else [value]
    if not all(low <= number <= high for number in numbers if type(number) in (int, float)):
        raise ValueError(f"{place} must be from {low:g} to {high:g}; got {value!r:.80}")


def _is(option: Any, value: Any, class_of: ClassOf) -> bool:
    """Whether a value of a config is of one kind; an error names what is wrong inside a part."""
    if option is Any:  # a constructor that does not say what it takes
        return True
    if option is type(None):
        return value is None
    if get_origin(option) is Literal:
        return isinstance(value, str) and value in get_args(option)
    if get_origin(option) in (tuple, Sequence):
        kind = get_args(option)[0]
        return (
            isinstance(value, list)
            and 0 < len(value) <= LONGEST
            and all(_is(kind, item, class_of) for item in value)
        )
    if option is int:
        return type(value) is int and abs(value) <= LARGEST
    if option is float:
        return type(value) in (int, float) and abs(value) <= 1e30  # so neither NaN nor infinite
    if option in (bool, str):
        return type(value) is option
    return _is_part(option, value, class_of)


def _is_part(option: Any, value: Any, class_of: ClassOf) -> bool:
    name = value.get("class") if isinstance(value, dict) else None
    if not (isinstance(name, str) and name.isprintable()):
        return False
    if value.get("foreign"):
        return True  # only the user can build it, which the error of who builds it says
    kind = class_of(name)
    if kind is None:
        return True  # likewise: it lists those that there are
    if not issubclass(kind, option if option is ScaleGrid else nn.Module):
        return False
    require_arguments(kind, value.get("arguments", {}), class_of)
    return True
