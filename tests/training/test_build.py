"""Networks as a configuration asks for them, trained and tested."""

import dataclasses
from pathlib import Path

import pytest
import torch
from helpers.own_folder import chosen, write
from helpers.tiny_runs import tiny, trained

import scalechannels
from scalechannels.backbones import efficientnet_lite
from scalechannels.backbones.sized import multiplications
from scalechannels.data import emoji
from scalechannels.data.emoji_drawings import open_drawings
from scalechannels.training import build, group
from scalechannels.training.build import build_network
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig


def test_initialisations_differ_and_have_their_spread() -> None:
    def first(how: str) -> torch.nn.Module:
        network = group.build_network(tiny("fovlse", network={"initialisation": how}).resolve())
        return network.backbone.dense.requires_grad_(False)

    inputs, outputs = 512, 100
    assert float(first("he").weight.std()) == pytest.approx((2 / inputs) ** 0.5, rel=0.02)
    glorot = (6 / (inputs + outputs)) ** 0.5
    assert float(first("glorot").weight.abs().max()) == pytest.approx(glorot, rel=0.02)
    assert float(first("torch").weight.abs().max()) == pytest.approx(inputs**-0.5, rel=0.02)
    assert not first("he").bias.any()
    assert not first("glorot").bias.any()


def test_a_network_that_looks_everywhere_begins_with_the_middle_of_its_window() -> None:
    def weights(**network: object) -> torch.Tensor:
        config = tiny("fovlse", network={"look": "everywhere", **network}).resolve()
        return build_network(config).backbone.dense.weight.detach().view(100, 32, 4, 4)

    faded, even = weights(), weights(initialisation="torch")
    assert faded.square().mean() == pytest.approx(float(even.square().mean()), rel=0.05)
    size = (faded / even).mean((0, 1))  # (4, 4)
    torch.testing.assert_close(size, size.flip(0), rtol=1e-4, atol=0)
    torch.testing.assert_close(size, size.T, rtol=1e-4, atol=0)
    assert size[1, 1] > 3 * size[0, 1] > 9 * size[0, 0]
    other = NetworkConfig(initialisation="central", backbone="residual")
    config = RunConfig(DataConfig("cifar10"), other).resolve()
    with pytest.raises(ValueError, match="central is for the paper's backbone; got ResidualBackbone"):
        build_network(config)


def test_everywhere_one_window_of_each_channel_lies_at_the_centre() -> None:
    for given, centred in (({}, True), ({"centred": False}, False)):
        config = tiny("fovlse", network={"look": "everywhere", **given}).resolve()
        assert build_network(config).everywhere.centred is centred  # type: ignore[union-attr]


def test_a_cnn_is_tested_as_an_average_over_scales(tmp_path) -> None:
    plain, averaged = (
        trained(tiny("cnn", samples=40, network={"average_scales": on}), tmp_path) for on in (False, True)
    )
    network = scalechannels.load(averaged.folder)
    assert isinstance(network.pool, scalechannels.MeanProbabilityOverScales)
    assert len(network.grid) == 3
    images = torch.rand(2, 1, 112, 112)
    cnn = scalechannels.load(plain.folder)
    expected = scalechannels.averaged_over_scales(cnn, network.grid, 1.0)
    torch.testing.assert_close(network.eval()(images), expected.eval()(images))
    config = tiny("cnn", network={"average_scales": True})
    config = dataclasses.replace(config, data=dataclasses.replace(config.data, sizes=(1.0, 2.0)))
    with pytest.raises(ValueError, match="trained on one size"):
        config.resolve()


def test_a_cnn_of_cifar_is_averaged_over_reflected_images(cifar, tmp_path) -> None:
    network = NetworkConfig("cnn", ratio=2, average_scales=True)
    config = RunConfig(DataConfig("cifar10"), network, TrainingConfig(epochs=1, batch=10))
    averaged = scalechannels.load(trained(config, tmp_path).folder)
    assert list(averaged.grid) == [0.5, 1, 2]
    assert (averaged.foveate.window, averaged.foveate.outside) == (32, "reflect")


def test_the_plain_cnn_costs_what_the_channels_cost(tmp_path: Path) -> None:
    for side, mode in ((28, "L"), (90, "RGB")):
        root = write(tmp_path / mode, [(side, side)] * 4, mode)
        channels, plain = (build_network(chosen(root, NetworkConfig(n)), None, 7) for n in ("fovlse", "cnn"))
        cost = len(channels.grid) * multiplications(channels.backbone)
        assert multiplications(plain.backbone) == pytest.approx(cost, rel=0.06)
        assert list(plain.grid) == pytest.approx([side / channels.foveate.window])
        assert plain.foveate.window == 4 * channels.foveate.window
        assert plain.foveate.antialias
        assert plain(torch.rand(2, 1 if mode == "L" else 3, 50, 70)).shape == (2, 7)


def test_any_pooling_is_trained_looking_everywhere_and_tested_so(tmp_path: Path) -> None:
    options = {"look": "everywhere", "places": "logmeanexp", "batch_norm": "joint", "antialias": True}
    network = scalechannels.load(trained(tiny("fovlse", samples=40, network=options), tmp_path).folder)
    assert isinstance(network, scalechannels.ScaleChannelNetwork)
    assert isinstance(network.pool, scalechannels.LogMeanExpOverScales)
    looking = network.everywhere
    assert (network.look, looking.places, looking.norm) == ("everywhere", "logmeanexp", "joint")
    assert network.foveate.antialias
    said = network.explain(torch.rand(2, 1, 50, 60))
    assert said.places is not None
    assert said.places.shape == (2, 2)


def test_own_images_can_be_looked_at_everywhere(tmp_path: Path) -> None:
    root = write(tmp_path, [(28, 28)] * 4, "RGB")
    network = build_network(chosen(root, NetworkConfig("fovmax", look="everywhere")), None, 5)
    assert (network.look, network.foveate.antialias) == ("everywhere", True)
    assert network(torch.rand(2, 3, 70, 40)).shape == (2, 5)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": "cnn", "look": "everywhere"}, "not for cnn"),
        ({"name": "swmax", "look": "everywhere"}, "not for swmax"),
        ({"places": "mean"}, "needs --network.look everywhere"),
        ({"look": "everywhere", "shifts": 1}, "need windows at the centre"),
        ({"look": "everywhere", "pretrained": 1.0}, "need windows at the centre"),
        ({"look": "everywhere", "batch_norm": "each"}, "works only with swmax"),
    ],
)
def test_what_looking_everywhere_cannot_do_is_refused(options, says) -> None:
    with pytest.raises(ValueError, match=says):
        NetworkConfig(**options)


@pytest.mark.parametrize("backbone", ["paper", "residual"])
def test_a_backbone_that_pads_is_refused_everywhere(backbone) -> None:
    config = RunConfig(DataConfig("cifar10"), NetworkConfig(look="everywhere", backbone=backbone))
    with pytest.raises(ValueError, match="needs a backbone without padding"):
        build_network(config.resolve())


LITE = NetworkConfig("fovlse", low=1, high=2, ratio=2, backbone="efficientnet-lite0")


def test_efficientnet_takes_its_weights_from_the_folder_of_data_or_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALECHANNELS_DATA", str(tmp_path))
    assert build._imagenet_weights() == "imagenet"
    file = tmp_path / efficientnet_lite.FILE
    file.write_bytes(b"no weights")
    with pytest.raises(ValueError, match="its checksum differs"):
        build_network(RunConfig(DataConfig("emoji"), LITE).resolve(), 3, 4)
    monkeypatch.setattr(build, "_imagenet_weights", lambda: None)
    network = build_network(RunConfig(DataConfig("emoji"), LITE).resolve(), 3, 4)
    assert (network.backbone.classes, network.backbone.dropout, network.foveate.window) == (4, 0.2, 64)
    with pytest.raises(ValueError, match="efficientnet-lite0 takes colour images"):
        build_network(RunConfig(DataConfig("emoji"), LITE).resolve(), 1, 4)


@pytest.mark.parametrize(
    ("network", "training", "says"),
    [
        ({"width": 2}, {}, "network.width is not for efficientnet-lite0"),
        ({"initialisation": "he"}, {}, "would overwrite the weights from ImageNet"),
        ({"backbone": "residual"}, {"pretrained_share": 0.5}, "needs --network.backbone efficientnet-lite0"),
    ],
)
def test_what_does_not_go_with_pretrained_weights_is_refused(network, training, says) -> None:
    config = RunConfig(DataConfig("emoji"), dataclasses.replace(LITE, **network), TrainingConfig(**training))
    with pytest.raises(ValueError, match=says):
        config.resolve()


@pytest.mark.slow
@pytest.mark.usefixtures("few_textures")
def test_a_pretrained_backbone_is_fine_tuned_inside_the_channels(
    emoji_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All weights move, those that count as pretrained by less; the run is saved and loaded."""
    monkeypatch.setattr(emoji, "open_drawings", lambda root, classes: open_drawings(root, 4))
    monkeypatch.setattr(build, "_imagenet_weights", lambda: None)
    config = RunConfig(
        DataConfig("emoji", redraw=True), LITE, TrainingConfig(epochs=1, batch=32, pretrained_share=0.01)
    )
    before = build_network(config.resolve(), 3, 4).backbone
    run = trained(config, tmp_path, root=emoji_root)
    after = scalechannels.load(run.folder).backbone
    pairs = zip(after.parameters(), before.parameters(), strict=True)
    moved = [float((a - b).detach().abs().max()) for a, b in pairs]
    assert 0 < max(moved[:-2]) < 0.02 * min(moved[-2:])
