"""Scale-channel networks: recognise objects at sizes they were never trained on.

The way of an image: `sampling` → `backbones` → `pooling`, put together in `network`. Names load on first use,
so that importing the package costs nothing; `__init__.pyi` tells type checkers what they are.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0.dev0"

_HOMES = {
    "scales": "ScaleGrid",
    "sampling": "Foveate",
    "pooling": "MaxOverScales MeanOverScales LogMeanExpOverScales MeanProbabilityOverScales ConcatScales",
    "network": "ScaleChannelNetwork Explanation",
    "plain": "PlainNetwork averaged_over_scales cnn",
    "constructors": "fovavg fovmax fovlse fovconc swmax",
    "backbones.zoo": "LibraryBackbone",
    "dense": "DenseNetwork",
    "detection.detector": "Detector",
    "selection": "selected_scale scale_contributions expected_window evidence_centres",
    "invariance": "scale_invariance_error",
    "saving.saved_network": "load",
    "predictor": "Predictor",
    "estimator.classifier": "ScaleInvariantClassifier",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = [*_HOME_OF, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'scalechannels' has no attribute {name!r}")
    return getattr(import_module(f"scalechannels.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
