"""The paper's own numbers, from `published.toml`."""

from __future__ import annotations

from pathlib import Path

from scalechannels.data.sizes import RANGES
from scalechannels.training.config import NetworkName
from scalechannels.training.config.options import read_toml

_PUBLISHED = read_toml(Path(__file__).with_suffix(".toml"))
TABLE1: dict[tuple[str, str], dict[str, float]] = {
    (network, train): dict(zip(RANGES, row, strict=True))
    for network, rows in _PUBLISHED["table1"].items()
    for train, row in rows.items()
}
"""Network and training set → range of test sizes → accuracy; "mean" is over single training sizes."""
RANKINGS: dict[str, dict[NetworkName, float]] = _PUBLISHED["rankings"]
"""The four ranking tables, best first."""
