"""scalechannels.load: a saved network of any class."""

from __future__ import annotations

import os
from typing import Any

from scalechannels.network import ScaleChannelNetwork
from scalechannels.plain import PlainNetwork
from scalechannels.saving.pretrained import Network, read_config
from scalechannels.saving.shipped import find_network

NETWORKS: tuple[type[Network], ...] = (ScaleChannelNetwork, PlainNetwork)


def load(folder: str | os.PathLike[str], **parts: Any) -> Network:
    """The network that `save_pretrained(folder)` wrote, or a shipped one by its name, in eval mode.

    `parts` are those that only the user can build, such as backbone=MyBackbone().
    """
    folder = find_network(folder)
    name = read_config(folder)["class"]
    for network in NETWORKS:
        if network.__name__ == name:
            return network.from_pretrained(os.fspath(folder), **parts)
    known = [network.__name__ for network in NETWORKS]
    raise ValueError(f"{folder} holds a network of the unknown class {name!r}; known are {known}")
