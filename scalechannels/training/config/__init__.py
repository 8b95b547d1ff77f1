"""What a run is, as options: data, network, training."""

from scalechannels.training.config.data import DataConfig, DataName
from scalechannels.training.config.network import Initialisation, NetworkConfig, NetworkName
from scalechannels.training.config.run import ResolvedRun, RunConfig
from scalechannels.training.config.training import Precision, TrainingConfig

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
