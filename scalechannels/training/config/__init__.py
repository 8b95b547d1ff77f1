"""What a run is, as options: data, network, training; these names are for others."""

# ruff: noqa: F401

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
