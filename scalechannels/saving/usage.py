"""How a network is used: its classes, the values and sizes it takes, the rules of a detector.

It is part of a saved network's config; of the first edition's networks it stands beside it, in the files of
the run or the detector. Law: whatever a file says is checked here before it is used; what cannot be is an
error that names the file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scalechannels.backbones.inference import stated

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CONFIG, WEIGHTS, DETECTOR = "config.json", "model.safetensors", "detector.json"
RUN, RESULT = "config.toml", "result.json"
LONGEST_FILE = 2**26
"""Bytes of a file of options or results; those of thousands of epochs have some megabytes."""


def _is_name(given: Any) -> bool:
    """Whether it can be the name of a class: text that a file can hold, or a number."""
    if isinstance(given, str):
        return not any("\ud800" <= character <= "\udfff" for character in given)
    return isinstance(given, int | float)


def _is_rules(given: Any) -> bool:
    """Whether it can be the rules of a detector; what says boxes says how large its objects are, too."""
    if not isinstance(given, dict) or set(given) != {*RULES, "regressed"}:
        return False
    if type(given["regressed"]) is not bool:
        return False
    if given["pixels"] is None and not given["regressed"]:
        given = {**given, "pixels": 1.0}  # as long as the window
    return all(type(given[key]) in (int, float) and 0 <= given[key] <= most for key, most in RULES.items())


USAGE: dict[str, Callable[[Any], bool]] = {
    "classes": lambda given: given is None or (isinstance(given, list) and all(map(_is_name, given))),
    "background": lambda given: given is None or (type(given) is int and given >= 0),
    "values": lambda given: given in ("digits", "unit"),
    "reduce": lambda given: type(given) is int and 1 <= given <= 2**20,
    "detector": lambda given: given is None or _is_rules(given),
}
"""What is needed to use a network, and what each may be; see `SavedNetwork`."""
RULES = {"threshold": 1.0, "pixels": 1e6, "iou": 1.0, "inside": 1.0}
"""The numbers among a detector's rules, and what they stay below or equal; see `detection.detector.Rules`."""
BOX_OUTPUTS = 4
"""Outputs that say the box, of a detector that was trained on boxes."""


def _is_positive(given: Any) -> bool:
    return type(given) in (int, float) and 0 < given < 1e30


MEASURED: dict[str, Callable[[Any], bool]] = {
    "temperature": _is_positive,
    "object_size": _is_positive,
    "own_scale": _is_positive,
}
"""What the usage of a network may say besides, where it was measured."""


def values_of(network: Any) -> str:
    """What a network is taken to have been trained on where nobody says it: grey images are of digits."""
    return "digits" if getattr(network.backbone, "channels", 3) == 1 else "unit"


def used(network: Any) -> dict[str, Any]:
    """How a network is used, as it says itself, or what is taken for granted where nobody has said it."""
    said: dict[str, Any] | None = getattr(network, "usage", None)
    if said is not None:
        return said
    unsaid = {"classes": None, "background": None, "values": values_of(network), "reduce": 1}
    return {**unsaid, "detector": None}


def _logits(network: Any) -> int | None:
    """K of a network whose parts are all of this library; None of others."""
    if getattr(network, "head", None) is not None:
        return None
    return getattr(getattr(network, "pool", None), "outputs", None) or stated(network.backbone, "classes")


def usage_of(folder: Path, config: dict[str, Any], network: Any) -> dict[str, Any] | None:
    """How the network of a folder is used, as its config says it or, before it did, the files beside it."""
    source, usage = CONFIG, config.get("usage")
    if usage is None:
        run, result, detector = (read_table(folder / name) for name in (RUN, RESULT, DETECTOR))
        if not (run or result or detector):
            return None
        data = data_of(folder)
        of_pictures = data.get("name") in ("cifar10", "folder")
        source = RESULT
        usage = {
            "classes": result.get("classes"),
            "background": None,
            "values": ("unit" if of_pictures else "digits") if run else values_of(network),
            "reduce": data.get("reduce") or 1,
        }
        if detector:
            source, usage = DETECTOR, {"reduce": usage["reduce"], **detector}
    if isinstance(usage, dict):
        usage = {"detector": None, **usage}  # others have none, and need not say it
    if lacking := [key for key in USAGE if not isinstance(usage, dict) or key not in usage]:
        raise ValueError(f"'{folder / source}' is damaged: it lacks {', '.join(lacking)}")
    for key, holds in USAGE.items():
        if not holds(usage[key]):
            raise ValueError(f"'{folder / source}' is damaged: its {key} cannot be {usage[key]!r:.80}")
    measured = {key: usage[key] for key in MEASURED if usage.get(key) is not None}
    for key, value in measured.items():
        if not MEASURED[key](value):
            raise ValueError(f"'{folder / source}' is damaged: its {key} cannot be {value!r:.80}")
    names = usage["classes"] and [str(name) for name in usage["classes"]]
    count = _logits(network)
    if count is not None:
        background = usage["background"] is not None
        count -= BOX_OUTPUTS if (usage["detector"] or {}).get("regressed") else 0
        if names is not None and len(names) + background != count:
            raise ValueError(
                f"'{folder / source}' is damaged: it names {len(names)} classes"
                f"{' and a background' if background else ''}, but the network has {count}"
            )
        if background and usage["background"] >= count:
            raise ValueError(
                f"'{folder / source}' is damaged: its background must be one of the network's {count} "
                f"classes, from 0 to {count - 1}; got {usage['background']}"
            )
    return {**{key: usage[key] for key in USAGE}, "classes": names, **measured}


def data_of(folder: Path) -> dict[str, Any]:
    """What a run's config says of its data; empty without a run."""
    data = read_table(folder / RUN).get("data", {})
    if not isinstance(data, dict):
        raise ValueError(f"'{folder / RUN}' is damaged: [data] must be a table; got {data!r:.80}")
    return data


def numbers_of(folder: Path, data: dict[str, Any], key: str) -> tuple[float, ...] | None:
    """A list of positive numbers of a run's data; None where there is none."""
    given = data.get(key)
    if given is None:
        return None
    if not (isinstance(given, list) and all(type(one) in (int, float) and 0 < one < 1e30 for one in given)):
        raise ValueError(
            f"'{folder / RUN}' is damaged: data.{key} must be positive numbers; got {given!r:.80}"
        )
    return tuple(given)


def read_table(path: Path) -> dict[str, Any]:
    """A JSON or TOML file; empty where there is none."""
    if not path.exists():
        return {}
    if not path.is_file() or path.stat().st_size > LONGEST_FILE:
        raise ValueError(f"'{path}' is damaged: it is not a file, or too large for one of options")
    try:
        if path.suffix == ".json":
            values = json.loads(path.read_bytes())
        else:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError(f"'{path}' is damaged: its tables are nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"'{path}' is damaged: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"'{path}' does not describe a network of scalechannels: it is not a table")
    return values
