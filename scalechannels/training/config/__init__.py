"""What a run is, as options: data, network, training."""
