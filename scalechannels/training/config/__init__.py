"""What a run is, as options: data, network, training."""

from scalechannels.training.config.run import ResolvedRun, RunConfig
from scalechannels.training.config.sections import (
    DataConfig,
    DataName,
    Initialisation,
    NetworkConfig,
    NetworkName,
    Precision,
    TrainingConfig,
)

__all__ = [
    "DataConfig",
    "DataName",
    "Initialisation",
    "NetworkConfig",
    "NetworkName",
    "Precision",
    "ResolvedRun",
    "RunConfig",
    "TrainingConfig",
]
