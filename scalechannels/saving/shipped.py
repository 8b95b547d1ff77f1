"""The networks that come with the package: each a folder in weights/, found by its name without a download.

scalechannels/weights/fovlse-mnist/   model.safetensors, config.json and README.md, its model card
"""

from __future__ import annotations

import os
from pathlib import Path

WEIGHTS = Path(__file__).parents[1] / "weights"


def shipped_names() -> list[str]:
    """The names of the shipped networks, in alphabetical order."""
    return sorted(path.parent.name for path in WEIGHTS.glob("*/config.json"))


def find_network(place: str | os.PathLike[str]) -> Path:
    """The folder of a network: a path that exists as it is, else the shipped network of this name.

    Law: an own folder comes before a shipped network of the same name. Limit: what lies in the folder is not
    looked at here.
    """
    path = Path(place)
    if path.exists():
        return path
    names = shipped_names()
    if os.fspath(place) in names:  # a whole name, so that no path leads out of the package's folder
        return WEIGHTS / path
    raise FileNotFoundError(
        f"{place} is no saved network: there is no such folder, and "
        + (f"the shipped networks are {', '.join(names)}" if names else "no networks are shipped")
    )
