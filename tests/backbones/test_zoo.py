"""Models of torchvision and timm as backbones, by stand-ins of the same interface; and docs/backbones.md."""

import copy
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from helpers.libraries import TORCHVISION, weights_of
from torch import nn

import scalechannels
from scalechannels import LibraryBackbone, MaxOverScales, PlainNetwork, ScaleChannelNetwork, ScaleGrid
from scalechannels.backbones import zoo as library_backbone
from scalechannels.backbones.zoo import import_library

DOCS = (Path(__file__).parents[2] / "docs" / "backbones.md").read_text(encoding="utf-8")
GRID = ScaleGrid.of(0.5, 1, 2)


def cannot_import(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def import_module(name: str) -> object:
        raise error

    monkeypatch.setattr(library_backbone.importlib, "import_module", import_module)


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize(("library", "name"), [("torchvision", "resnet18"), ("timm", "convnext_atto")])
def test_a_model_by_name_is_wrapped_saved_and_rebuilt(tmp_path: Path, library: str, name: str) -> None:
    backbone = LibraryBackbone(library, name, classes=5)  # type: ignore[arg-type]
    network = ScaleChannelNetwork(backbone, GRID, MaxOverScales(), window=16).eval()
    images = torch.rand(2, 3, 40, 50)
    assert network(images).shape == (2, 5)
    network.save_pretrained(tmp_path / "net")
    again = scalechannels.load(tmp_path / "net")
    assert torch.equal(again(images), network(images))
    assert again.backbone.arguments() == backbone.arguments()
    with pytest.raises(ValueError, match="this network takes RGB images; got grey images"):
        network(torch.rand(1, 1, 40, 40))


@pytest.mark.usefixtures("libraries")
def test_windows_are_normalised_as_the_library_expects() -> None:
    backbone = LibraryBackbone("torchvision", "resnet18", classes=2).eval()
    windows = torch.rand(2, 3, 16, 16)
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    wanted = backbone.model((windows - mean[:, None, None]) / std[:, None, None])
    assert torch.allclose(backbone(windows), wanted)
    assert not torch.allclose(backbone(windows), backbone.model(windows))
    plain = LibraryBackbone("timm", "convnext_atto", classes=2, channels=1).eval()
    grey = torch.rand(2, 1, 16, 16)
    assert torch.equal(plain(grey), plain.model(grey))
    own = LibraryBackbone("timm", "convnext_atto", classes=2, channels=1, mean=[0.5], std=[2.0]).eval()
    assert torch.equal(own(grey), own.model((grey - 0.5) / 2))


@pytest.mark.usefixtures("libraries")
@torch.no_grad()
def test_windows_are_normalised_wherever_the_backbone_moves(tmp_path: Path) -> None:
    """The means are not among the weights: `to_empty` and half precision must not spoil them."""
    network = PlainNetwork(LibraryBackbone("torchvision", "resnet18", classes=2)).eval()
    images = torch.rand(2, 3, 16, 16)
    expected = network(images)
    emptied = copy.deepcopy(network).to("meta").to_empty(device="cpu")
    for moved in (emptied, copy.deepcopy(network).bfloat16().float()):
        moved.load_state_dict(network.state_dict())
        assert torch.equal(moved(images), expected)
    network.bfloat16().save_pretrained(tmp_path)
    assert torch.equal(scalechannels.load(tmp_path)(images.bfloat16()), network(images.bfloat16()))


@pytest.mark.usefixtures("libraries")
def test_pretrained_weights_come_without_a_last_layer_that_does_not_fit() -> None:
    for classes, fits in ((5, False), (1000, True)):
        backbone = LibraryBackbone("torchvision", "resnet18", classes=classes, weights="pretrained")
        found, wanted = backbone.model.state_dict(), weights_of()
        assert torch.equal(found["conv.weight"], wanted["conv.weight"])
        assert (found["fc.weight"].shape == wanted["fc.weight"].shape) == fits
        assert not fits or torch.equal(found["fc.weight"], wanted["fc.weight"])
    fresh = LibraryBackbone("torchvision", "resnet18", classes=5).model.state_dict()
    assert not torch.equal(fresh["conv.weight"], weights_of()["conv.weight"])


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: LibraryBackbone("torch", "resnet18", classes=2), "torchvision, timm; got 'torch'"),
        (lambda: LibraryBackbone("torchvision", "resnet", classes=2), "torchvision has no model 'resnet'"),
        (lambda: LibraryBackbone("timm", "resnet", classes=2), "timm has no model 'resnet'"),
        (
            lambda: LibraryBackbone("torchvision", "resnet18", classes=2, channels=1),
            "must be 3 for torchvision's models; got 1",
        ),
        (lambda: LibraryBackbone("timm", "x", classes=2, weights="imagenet"), "fresh.*got 'imagenet'"),
        (
            lambda: LibraryBackbone("timm", "x", classes=2, mean=[1.0]),
            "mean must hold one value for each of 3 channels",
        ),
    ],
)
def test_what_cannot_be_made_is_told(make: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize("name", [name for name in TORCHVISION if name != "resnet18"])
def test_models_that_do_not_classify_images_are_refused_before_they_are_made(
    tmp_path: Path, name: str
) -> None:
    """By the user's own call, and from a config, which would make loading contact a network."""
    says = f"torchvision has no model '{name}' that classifies images"
    with pytest.raises(ValueError, match=says):
        LibraryBackbone("torchvision", name, classes=5)
    backbone = LibraryBackbone("torchvision", "resnet18", classes=5)
    ScaleChannelNetwork(backbone, GRID, MaxOverScales(), window=16).save_pretrained(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace("resnet18", name))
    with pytest.raises(ValueError, match=rf"the config of .* does not fit LibraryBackbone: {says}"):
        scalechannels.load(tmp_path)


@pytest.mark.usefixtures("libraries")
def test_models_that_give_no_logits_are_told() -> None:
    backbone = LibraryBackbone("torchvision", "resnet18", classes=2)
    backbone.model = nn.Sequential(nn.Identity())
    backbone.model.forward = lambda windows: (windows, windows)  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="resnet18 gives tuple, not logits"):
        backbone(torch.rand(1, 3, 8, 8))

    def refuse(windows: torch.Tensor) -> torch.Tensor:
        raise AssertionError("Wrong image height! Expected 224 but got 8!")

    backbone.model.forward = refuse  # type: ignore[method-assign]
    with pytest.raises(ValueError, match=r"does not take windows of 8 pixels: .* Expected 224"):
        backbone(torch.rand(1, 3, 8, 8))


def test_a_library_that_is_missing_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = ModuleNotFoundError("No module named 'torchvision'", name="torchvision")
    cannot_import(monkeypatch, missing)
    with pytest.raises(ImportError, match=r'^torchvision is not installed: pip install "scalechannels\['):
        LibraryBackbone("torchvision", "resnet18", classes=2)
    with pytest.raises(ImportError, match=r"^timm needs torchvision, and torchvision is not installed"):
        import_library("timm")


def test_a_torchvision_of_another_torch_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = RuntimeError("operator torchvision::nms does not exist")
    cannot_import(monkeypatch, broken)
    with pytest.raises(ImportError) as caught:
        LibraryBackbone("timm", "convnext_atto", classes=2)
    said = str(caught.value)
    assert f"cannot be imported with torch {torch.__version__}" in said
    assert "operator torchvision::nms does not exist" in said
    assert "Install torchvision from where this torch came from" in said


def test_a_saved_network_says_what_is_missing_to_load_it(
    tmp_path: Path, libraries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    backbone = LibraryBackbone("torchvision", "resnet18", classes=2)
    ScaleChannelNetwork(backbone, GRID, MaxOverScales(), window=16).save_pretrained(tmp_path)
    missing = ModuleNotFoundError("No module named 'torchvision'", name="torchvision")
    cannot_import(monkeypatch, missing)
    with pytest.raises(ImportError, match="torchvision is not installed"):
        ScaleChannelNetwork.from_pretrained(tmp_path)


def test_the_code_of_the_document_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, libraries: None
) -> None:
    monkeypatch.chdir(tmp_path)
    own, library, pretrained = re.findall(r"```python\n(.*?)```", DOCS, flags=re.DOTALL)
    names: dict = {}
    exec(own, names)
    images = names["images"]
    assert torch.allclose(names["again"](images), names["network"](images))
    with pytest.raises(ValueError, match=r"your own backbone.*pass from_pretrained\(…, backbone="):
        ScaleChannelNetwork.from_pretrained("mine")
    exec(library, names)
    assert names["network"](torch.rand(1, 3, 300, 400)).shape == (1, 4)
    exec(pretrained, names)
    (timm,) = re.findall(r"`(LibraryBackbone\(\"timm\".*?\))`", DOCS)
    assert eval(timm, names)(torch.rand(1, 1, 20, 20)).shape == (1, 4)
