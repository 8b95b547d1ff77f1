"""The networks that the paper tells about without a figure: batch norm in SWMax, and a pretrained channel."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import scalechannels
from scalechannels import MaxOverScales, ScaleGrid, swmax
from scalechannels.backbones.paper import mnist_backbone
from scalechannels.network import ScaleChannelNetwork
from scalechannels.paper.experiments import experiment
from scalechannels.paper.recipes import main, mnist
from scalechannels.training import build, datasets
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig
from scalechannels.training.fit import fit
from scalechannels.training.stacking.stacked import can_stack

GRID = ScaleGrid.of(0.5, 1.0, 2.0)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def first_layer(network: ScaleChannelNetwork, images: torch.Tensor) -> list[torch.Tensor]:
    """What the first convolution gives in every channel, before any batch norm."""
    convolution = network.backbone.convolutions[0][0]
    return [convolution(network.everywhere._rescaled(images, sigma)) for sigma in network.grid]


def test_joint_batch_norm_has_the_statistics_of_all_channels_together() -> None:
    network = swmax(GRID, norm="joint")
    images = torch.randn(4, 1, 40, 40, generator=torch.Generator().manual_seed(0))
    values = torch.cat([m.movedim(1, -1).reshape(-1, 16) for m in first_layer(network, images)])
    network(images)  # in training mode: the running mean takes a tenth of the batch's
    norm = network.backbone.convolutions[0][1]
    assert torch.allclose(norm.running_mean, 0.1 * values.mean(0), atol=1e-6)
    assert torch.allclose(norm.running_var, 0.9 + 0.1 * values.var(0), atol=1e-5)


def test_each_channels_batch_norm_has_the_statistics_of_its_own_maps() -> None:
    network = swmax(GRID, norm="each")
    images = torch.randn(4, 1, 40, 40, generator=torch.Generator().manual_seed(0))
    maps = first_layer(network, images)
    network(images)
    means = [norms[0].running_mean for norms in network.norms]
    for mean, own in zip(means, maps, strict=True):
        assert torch.allclose(mean, 0.1 * own.mean((0, 2, 3)), atol=1e-6)
    assert not torch.allclose(means[0], means[2], atol=1e-4)
    per_channel = 2 * (16 + 16 + 32 + 32)
    plain = sum(p.numel() for p in swmax(GRID).parameters())
    assert sum(p.numel() for p in network.parameters()) == plain + 3 * per_channel


def test_in_eval_mode_joint_batch_norm_is_that_of_the_backbone() -> None:
    """Fixed statistics are the same operation in every channel, whichever way it is computed."""
    network = swmax(GRID, norm="joint")
    images = torch.randn(3, 1, 40, 40, generator=torch.Generator().manual_seed(1))
    network(images)
    plain = ScaleChannelNetwork(network.backbone, GRID, MaxOverScales(), look="everywhere").eval()
    assert torch.allclose(network.eval()(images), plain(images), atol=1e-5)


@pytest.mark.parametrize("norm", ["joint", "each"])
def test_it_is_saved_and_loaded_and_not_stacked(norm, tmp_path: Path) -> None:
    network = swmax(GRID, norm=norm)
    images = torch.randn(2, 1, 40, 40)
    network(images)
    network.eval().save_pretrained(tmp_path)
    with torch.no_grad():
        assert torch.allclose(scalechannels.load(tmp_path)(images), network(images), atol=1e-5)
    assert not can_stack(network)
    assert can_stack(swmax(GRID))
    assert not can_stack(swmax(GRID, outside="reflect"))  # a canvas repeats the border


def test_a_norm_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"norm must be None, 'joint' or 'each'; got 'both'"):
        swmax(GRID, norm="both")  # type: ignore[arg-type]
    for norm, wrong in (("joint", False), ("each", True)):
        backbone = mnist_backbone(batch_norm=wrong)
        with pytest.raises(ValueError, match='"joint" needs a backbone with batch norm'):
            ScaleChannelNetwork(backbone, GRID, MaxOverScales(), look="everywhere", norm=norm)
    with pytest.raises(ValueError, match="batch_norm works only with swmax"):
        NetworkConfig("fovmax", batch_norm="joint")
    with pytest.raises(ValueError, match=r"pretrained needs a pooling without weights"):
        NetworkConfig("cnn", pretrained=2.0)
    with pytest.raises(ValueError, match="pretrained must be a positive"):
        NetworkConfig("fovmax", pretrained=-1.0)


def test_new_options_leave_the_names_of_other_runs() -> None:
    assert main("fovavg", "tr2").resolve("cuda").name == "fovavg-mnist-tr2-seed0-561110c6"
    _, *normed = experiment("batch-norm").runs()
    names = [run.resolve("cuda").name for run in (main("swmax", "tr2"), *normed)]
    assert len(set(names)) == 3


def test_a_pretrained_channel_is_trained_alone_and_gives_its_weights_to_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "STROKES_TEST", 20)
    config = RunConfig(
        DataConfig(samples=60),
        NetworkConfig("fovmax", low=1, high=4, ratio=2, pretrained=2.0),
        TrainingConfig(epochs=1, batch=20),
    )
    (run,) = fit([config], tmp_path, device="cpu", sizes=(1.0, (1.0, 2.0)))
    network = scalechannels.load(run.folder)
    assert list(network.grid) == [1.0, 2.0, 4.0]
    entries = run.result()["evaluation"]["sizes"]
    assert [entry["size"] for entry in entries] == [1.0, [1.0, 2.0]]
    assert [len(entry["selection"]) for entry in entries] == [3, 3]
    single = replace(config, network=replace(config.network, low=2.0, high=2.0, pretrained=None))
    (alone,) = fit([single], tmp_path, device="cpu", sizes=(1.0,))
    for name, value in scalechannels.load(alone.folder).state_dict().items():
        assert torch.equal(value, network.state_dict()[name]), name


@pytest.mark.parametrize("name", ["fovavg", "swmax"])
def test_every_channel_has_the_weights_that_were_trained(name) -> None:
    config = mnist(name, "tr2", pretrained=2.0)
    trained = build.build_network(config)
    assert list(trained.grid) == [2.0]
    for parameter in trained.parameters():
        nn.init.normal_(parameter)
    whole = build.tested_network(config, trained).eval()
    assert len(whole.grid) == 17
    images = torch.randn(2, 1, 56, 56)
    with torch.no_grad():
        one = whole.channel_logits(images)[:, list(whole.grid).index(2.0)]
        assert torch.allclose(one, trained.eval()(images), rtol=1e-4, atol=1e-2)
    assert build.tested_network(main(name, "tr2"), whole) is whole
