"""Modules by name: a rival, or a user's own class or function, in a file or in an installed package.

    riesz                          a name of `RIVALS`
    path/to/file.py:MyMethod       a class, or a function that builds one, in a single file
    my_package.nets:MyMethod       the same in a package that Python finds

What is called gets those of the following that it names: channels (colours of an image), classes, image (its
side in pixels) and grid (the `ScaleGrid` of the run), and gives a module (B, C, H, W) to (B, K).

Law: a run knows its module by the checksum of the file, and refuses another one. Limit: what that file
imports is not part of it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from scalechannels.rivals import RIVALS

OFFERED = ("channels", "classes", "image", "grid")


def is_module(name: str) -> bool:
    """Whether a network's name is that of a rival or of a user's own module."""
    return name in RIVALS or ":" in name


def split_path(name: str) -> tuple[str, str | None]:
    """A name without the folders of its file, and the file: "a/b.py:C" is "b.py:C" and "a/b.py"."""
    place, _, made = name.rpartition(":")
    return (f"{Path(place).name}:{made}", place) if place.endswith(".py") else (name, None)


def source_checksum(name: str, file: str | None) -> str | None:
    """Of a user's own file; None for the rivals, which are part of this package."""
    if name in RIVALS:
        return None
    return hashlib.sha256(_source(name, file).read_bytes()).hexdigest()[:16]


def build_module(name: str, file: str | None, **offered: Any) -> Any:
    """The module that this name stands for; `offered` has what `OFFERED` lists."""
    target = RIVALS.get(name, name)
    place, _, made = target.rpartition(":")
    home = _imported(target, file) if place.endswith(".py") else importlib.import_module(place)
    make = getattr(home, made, None)
    if not callable(make):
        names = sorted(
            one for one, value in vars(home).items() if callable(value) and not one.startswith("_")
        )
        raise ValueError(f"'{file or place}' has no class or function '{made}'; it has {', '.join(names)}")
    from torch import nn

    module = make(**_taken(make, target, offered))
    if not isinstance(module, nn.Module):
        raise ValueError(f"{target} must give a torch.nn.Module; got {type(module).__name__}")
    return module


def _taken(make: Any, target: str, offered: dict[str, Any]) -> dict[str, Any]:
    """Those of the offered arguments that a constructor names; an error for others that it needs."""
    parameters = inspect.signature(make).parameters.values()
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [one.name for one in parameters if one.default is one.empty and one.kind not in variable]
    unknown = [name for name in needed if name not in OFFERED]
    if unknown:
        raise ValueError(
            f"{target} needs {', '.join(unknown)}, which nobody gives it: give these a default. It may take "
            f"{', '.join(OFFERED)}"
        )
    named = {one.name for one in parameters}
    return {key: value for key, value in offered.items() if key in named}


def _source(name: str, file: str | None) -> Path:
    """The file that a user's own module is in."""
    place = name.rpartition(":")[0]
    if not place.endswith(".py"):
        try:
            found = importlib.util.find_spec(place)
        except (ModuleNotFoundError, ValueError):
            found = None
        if found is None or found.origin is None:
            raise ValueError(f"network.name '{name}': Python finds no module '{place}'")
        return Path(found.origin)
    path = Path(file or place)
    if not path.is_file():
        raise ValueError(
            f"network.name '{name}': there is no file '{path}'; give path/to/file.py:Class, or "
            f"package.module:Class, or a name such as {', '.join(sorted(RIVALS)[:3])}"
        )
    return path


def _imported(name: str, file: str | None) -> ModuleType:
    """The file as a module, read again where its content has changed."""
    path = _source(name, file)
    known = f"scalechannels_own_{path.stem}_{source_checksum(name, file)}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[known] = module  # classes that are looked up by their module, such as dataclasses
        try:
            spec.loader.exec_module(module)
        except BaseException as error:
            del sys.modules[known]
            if isinstance(error, SyntaxError):
                raise ValueError(f"'{path}' is not valid Python: {error}") from error
            raise
    return sys.modules[known]
