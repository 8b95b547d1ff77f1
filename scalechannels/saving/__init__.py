"""A network as files: weights and a config that rebuilds it, the shipped ones, ONNX."""
