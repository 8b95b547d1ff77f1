"""What a run is, as options: data, network, training; these names are for others."""

# ruff: noqa: F401

from scalechannels.training.config.data import DataConfig
from scalechannels.training.config.data_sets import DataName
from scalechannels.training.config.network import Initialisation, NetworkConfig, NetworkName
from scalechannels.training.config.run import ResolvedRun, RunConfig
from scalechannels.training.config.training import Precision, TrainingConfig
