"""Stand-ins for torchvision and timm, of the same interface and with a small model each."""

import sys
import types

import pytest
import torch
from torch import nn


class Small(nn.Module):
    """What torchvision's resnet18 is to its users: (N, C, n, n) to (N, classes), with an fc at the end."""

    def __init__(self, classes: int, channels: int = 3) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 4, 3, stride=2)
        self.bn = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.fc(self.bn(self.conv(images)).relu().mean((2, 3)))


def weights_of(classes: int = 1000) -> dict[str, torch.Tensor]:
    torch.manual_seed(7)
    return Small(classes).state_dict()


TORCHVISION = {
    "resnet18": "torchvision.models",
    "fcn_resnet50": "torchvision.models.segmentation",
    "fasterrcnn_resnet50_fpn": "torchvision.models.detection",
    "raft_small": "torchvision.models.optical_flow",
    "r3d_18": "torchvision.models.video",
    "quantized_resnet18": "torchvision.models.quantization",
}
"""Models of torchvision 0.26 and the modules that have them: one of each kind."""


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    models = types.ModuleType("torchvision.models")

    def list_models(module: types.ModuleType | None = None) -> list[str]:
        return [name for name, home in TORCHVISION.items() if module is None or home == module.__name__]

    def get_model(name: str, weights: object = None, num_classes: int = 1000) -> nn.Module:
        if name not in TORCHVISION:
            raise ValueError(f"Unknown model {name}")
        assert weights is None
        if name != "resnet18":  # as torchvision does for what it segments and detects with
            pytest.fail("it fetches the weights of its backbone, which nobody asked for")
        return Small(num_classes)

    fetched = types.SimpleNamespace(get_state_dict=lambda progress: weights_of())
    models.list_models = list_models  # type: ignore[attr-defined]
    models.get_model = get_model  # type: ignore[attr-defined]
    models.get_model_weights = lambda name: types.SimpleNamespace(DEFAULT=fetched)  # type: ignore
    torchvision = types.ModuleType("torchvision")
    torchvision.models = models  # type: ignore[attr-defined]
    timm = types.ModuleType("timm")

    def create_model(name: str, pretrained: bool, num_classes: int, in_chans: int) -> nn.Module:
        if name != "convnext_atto":
            raise RuntimeError(f"Unknown model ({name})")
        return Small(num_classes, in_chans)

    timm.create_model = create_model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchvision", torchvision)
    monkeypatch.setitem(sys.modules, "timm", timm)
