"""What figures of images are drawn from: samples of the data, and one network's output code.

They are made once, from downloaded data and a trained network, and kept as small files with the results, so
that the figures can be drawn anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalechannels.data.sizes import CIFAR_SIZES, MNIST_SIZES
from scalechannels.files import atomic_path
from scalechannels.paper.experiments import Experiment

if TYPE_CHECKING:
    from torch import Tensor

MNIST_FILE, CIFAR_FILE, CODE_FILE = "mnist.png", "cifar10.png", "code.json"
FILES = {"figure2": MNIST_FILE, "figure4": MNIST_FILE, "figure14": CIFAR_FILE, "figure3": CODE_FILE}
"""What each figure of images is drawn from."""
DIGIT = 1
"""Which test digit is shown: the second one, a 2, as in the paper's illustration."""
CIFAR_SHOWN = ("frog", "truck")


def make_pictures(
    experiments: Sequence[Experiment],
    runs: Path,
    folder: Path,
    device: str,
    options: dict[str, Any],
    say: Callable[[str], None],
) -> None:
    """Make what these experiments show and is not there yet."""
    from scalechannels.data.pictures import as_shown

    for experiment in experiments:
        if experiment.id not in FILES or (path := folder / FILES[experiment.id]).exists():
            continue
        if path.name == MNIST_FILE:
            write_strip(path, as_shown(mnist_samples(options.get("root"))))
        elif path.name == CIFAR_FILE:
            write_strip(path, cifar_samples(options.get("root")))
        else:
            write_code(path, experiment, runs, device, options)
        say(f"  {path}")


def mnist_samples(root: Path | None) -> Tensor:
    """One digit at all 17 sizes: (1, 17, 1, 112, 112)."""
    import torch

    from scalechannels.data.mnist_large_scale import large_scale
    from scalechannels.data.sources import load_mnist

    digit = load_mnist(root).test_images[DIGIT : DIGIT + 1]
    return torch.stack([large_scale(digit, size) for size in MNIST_SIZES], 1)


def cifar_samples(root: Path | None) -> Tensor:
    """A frog and a truck at nine factors: (2, 9, 3, 32, 32), 0 to 1."""
    import torch

    from scalechannels.data.rescaled_cifar10 import CLASSES, rescale_cifar10
    from scalechannels.data.sources import load_cifar10

    data = load_cifar10(root)
    first = [int((data.test_labels == CLASSES.index(name)).nonzero()[0]) for name in CIFAR_SHOWN]
    return torch.stack([rescale_cifar10(data.test_images[first], factor) for factor in CIFAR_SIZES], 1)


def write_strip(path: Path, images: Tensor) -> None:
    """Images (rows, columns, C, H, W), 0 to 1, side by side in one PNG, pixel for pixel."""
    from PIL import Image

    R, N, C, H, W = images.shape
    pixels = images.permute(0, 3, 1, 4, 2).reshape(R * H, N * W, C)
    bytes_ = (pixels.clamp(0, 1) * 255).round().byte().numpy()
    with atomic_path(path) as temporary:
        Image.fromarray(bytes_[..., 0] if C == 1 else bytes_).save(temporary, format="PNG", optimize=True)


def read_strip(path: Path, side: int) -> Tensor:
    """The images (rows, columns, C, side, side) of such a PNG, 0 to 1."""
    import numpy as np
    import torch
    from PIL import Image

    with Image.open(path) as image:
        pixels = np.asarray(image)
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    H, W, C = pixels.shape
    tiles = torch.from_numpy(pixels.copy()).view(H // side, side, W // side, side, C)
    return tiles.permute(0, 2, 4, 1, 3).float() / 255


def write_code(path: Path, experiment: Experiment, runs: Path, device: str, options: dict[str, Any]) -> None:
    """Every channel's logits of one digit at several sizes, by the experiment's network."""
    import torch

    from scalechannels.saving.saved_network import load
    from scalechannels.training.fit import fit

    (config,) = experiment.runs(1)
    (run,) = fit([config], runs, device=device, **options)
    network: Any = load(run.folder)
    (images,) = mnist_samples(options.get("root"))  # (17, 1, 112, 112)
    with torch.inference_mode():
        found = network.explain(images)
    assert found.channels is not None  # (17, S, K)
    result = {
        "run": run.config.name,
        "scales": list(network.grid),
        "sizes": list(MNIST_SIZES),
        "winner": found.logits.argmax(1).tolist(),
        "logits": [[[round(v, 4) for v in row] for row in image] for image in found.channels.tolist()],
    }
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(result) + "\n", encoding="utf-8")
