"""Scale-channel networks: recognise objects at sizes they were never trained on.

The way of an image: `foveate` → `backbones` → `pooling`, put together in `network`; `sliding` and `plain` are
the paper's alternatives; `dense` and `detection` look everywhere in an image. Names load on first use, so
that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from scalechannels.version import __version__

if TYPE_CHECKING:
    from scalechannels.backbones.zoo import LibraryBackbone
    from scalechannels.coarse_to_fine import CoarseToFine
    from scalechannels.dense import DenseNetwork
    from scalechannels.detection.detector import Detector
    from scalechannels.invariance import scale_invariance_error
    from scalechannels.network import ScaleChannelNetwork, fovavg, fovconc, fovlse, fovmax, swmax
    from scalechannels.plain import PlainNetwork, averaged_over_scales, cnn
    from scalechannels.pooling import (
        ConcatScales,
        LogMeanExpOverScales,
        MaxOverScales,
        MeanOverScales,
        MeanProbabilityOverScales,
    )
    from scalechannels.sampling import Foveate
    from scalechannels.saving.loading import load
    from scalechannels.scales import ScaleGrid
    from scalechannels.selection import scale_contributions, selected_scale

__all__ = [
    "CoarseToFine",
    "ConcatScales",
    "DenseNetwork",
    "Detector",
    "Foveate",
    "LibraryBackbone",
    "LogMeanExpOverScales",
    "MaxOverScales",
    "MeanOverScales",
    "MeanProbabilityOverScales",
    "PlainNetwork",
    "ScaleChannelNetwork",
    "ScaleGrid",
    "__version__",
    "averaged_over_scales",
    "cnn",
    "fovavg",
    "fovconc",
    "fovlse",
    "fovmax",
    "load",
    "scale_contributions",
    "scale_invariance_error",
    "selected_scale",
    "swmax",
]

_HOMES = {
    "scales": ("ScaleGrid",),
    "sampling": ("Foveate",),
    "pooling": (
        "ConcatScales",
        "LogMeanExpOverScales",
        "MaxOverScales",
        "MeanOverScales",
        "MeanProbabilityOverScales",
    ),
    "backbones.zoo": ("LibraryBackbone",),
    "network": ("ScaleChannelNetwork", "fovavg", "fovconc", "fovlse", "fovmax", "swmax"),
    "plain": ("PlainNetwork", "averaged_over_scales", "cnn"),
    "coarse_to_fine": ("CoarseToFine",),
    "dense": ("DenseNetwork",),
    "detection.detector": ("Detector",),
    "saving.loading": ("load",),
    "selection": ("scale_contributions", "selected_scale"),
    "invariance": ("scale_invariance_error",),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"scalechannels.{module}"), name)
    raise AttributeError(f"module 'scalechannels' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
