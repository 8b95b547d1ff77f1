"""The shipped networks for torch.hub: torch.hub.load("owner/scalechannels", "fovlse_mnist").

From a clone: torch.hub.load("path/to/clone", "fovlse_mnist", source="local"). The package is imported from
there. torch.hub installs nothing: `dependencies` have to be there already.
"""

from typing import Any

dependencies = ["torch", "numpy", "safetensors", "huggingface_hub"]


def fovlse_mnist(device: str = "cpu") -> Any:
    """Digits of sizes from 1/2 to 8, learnt at one size: images (B, 1, H, W) to logits (B, 10).

    The digit lies at the centre; the background is -0.76, ink 0.76.
    """
    return _load("fovlse-mnist").to(device)


def fovlse_mnist_wide(device: str = "cpu") -> Any:
    """The most accurate network of that kind, at twelve times the cost."""
    return _load("fovlse-mnist-wide").to(device)


def cnn_mnist(device: str = "cpu") -> Any:
    """A plain CNN for digits of one size, to compare with: images (B, 1, 112, 112) to logits (B, 10)."""
    return _load("cnn-mnist").to(device)


def digit_detector(device: str = "cpu") -> Any:
    """A detector of digits of many sizes anywhere: an image (1, H, W) to a list of what was found."""
    from scalechannels import Detector

    return Detector.from_pretrained("digit-detector").to(device)


def _load(name: str) -> Any:
    import scalechannels

    return scalechannels.load(name)
