"""Whether a part of a network is still what its arguments make: only then do they bring it back."""

from __future__ import annotations

import re
from typing import Any

import torch

NO_ANSWER = re.compile(r", momentum=[^,)]*|inplace=True|(Sync|Global)(?=BatchNorm)|(?<=BatchNorm)\dd")
"""What may differ between two modules that answer alike in eval mode, as they are printed."""


def was_changed(part: Any) -> bool:
    """Whether a module of this library has other layers than its arguments make, such as another activation.

    Limit: hooks and replaced methods do not show, and are not saved.
    """
    # A library's models may look at numbers while they are made, which "meta" does not have.
    light = type(part).__name__ != "LibraryBackbone"
    with torch.random.fork_rng(devices=()), torch.device("meta" if light else "cpu"):
        again = type(part)(**part.arguments())
    return NO_ANSWER.sub("", repr(again)) != NO_ANSWER.sub("", repr(part))
