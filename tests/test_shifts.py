"""Windows that are also seen a pixel away: five looks of each channel, pooled as the channels are."""

from __future__ import annotations

import pytest
import torch

import scalechannels
from scalechannels import (
    DenseNetwork,
    ScaleChannelNetwork,
    ScaleGrid,
    fovavg,
    fovconc,
    fovlse,
    fovmax,
)
from scalechannels.training.build import build_network
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig

GRID = ScaleGrid(0.5, 4, ratio=2)


def pair(make=fovlse, shifts: int = 1, **options) -> tuple[ScaleChannelNetwork, ScaleChannelNetwork]:
    """A network and the same with shifts."""
    torch.manual_seed(0)
    plain = make(GRID, **options)
    shifted = make(GRID, shifts=shifts, **options)
    shifted.load_state_dict(plain.state_dict())
    return plain.eval(), shifted.eval()


@pytest.fixture
def images() -> torch.Tensor:
    return torch.rand(3, 1, 60, 50, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("make", "pooled"), [(fovmax, "amax"), (fovavg, "mean")])
@pytest.mark.parametrize("shifts", [1, 2])
def test_a_channel_pools_what_five_windows_say(make, pooled: str, shifts: int, images: torch.Tensor) -> None:
    plain, shifted = pair(make, shifts)
    steps = [(0, 0), (shifts, 0), (-shifts, 0), (0, shifts), (0, -shifts)]
    middle = (torch.tensor(images.shape[2:]) - 1) / 2
    for place, sigma in enumerate(GRID):
        looks = [
            plain.channel_logits(images, (middle + sigma * torch.tensor(step)).expand(3, 2))[:, place]
            for step in steps
        ]  # a window pixel is σ image pixels
        expected = getattr(torch.stack(looks), pooled)(0)
        torch.testing.assert_close(shifted.channel_logits(images)[:, place], expected, atol=1e-5, rtol=1e-5)


def test_log_mean_exp_over_all_looks_and_channels(images: torch.Tensor) -> None:
    _, shifted = pair()
    wide = shifted.wider(images)
    looks = [
        shifted.backbone(wide[:, :, :, y : y + 28, x : x + 28].flatten(0, 1)).view(3, len(GRID), -1)
        for y, x in ((1, 1), (0, 1), (2, 1), (1, 0), (1, 2))
    ]
    together = torch.cat(looks, 1)  # (3, 5 S, K)
    torch.testing.assert_close(shifted(images), shifted.pool(together), atol=1e-5, rtol=1e-5)


def test_training_does_not_see_the_shifts(images: torch.Tensor) -> None:
    plain, shifted = (network.train() for network in pair())
    for network in (plain, shifted):
        network.backbone.drop.p = 0.0
    torch.testing.assert_close(shifted(images), plain(images))


def test_it_is_saved_and_loaded(images: torch.Tensor, tmp_path) -> None:
    plain, shifted = pair()
    shifted.save_pretrained(tmp_path)
    again = scalechannels.load(tmp_path)
    assert again.shifts == 1
    torch.testing.assert_close(again(images), shifted(images))
    assert not torch.allclose(plain(images), shifted(images), atol=1e-3)
    assert "shifts" not in plain.arguments()  # what was saved before stays as it was


def test_pieces_do_not_matter() -> None:
    _, shifted = pair()
    images = torch.rand(40, 1, 28, 28)
    with torch.inference_mode():
        whole = shifted(images)
        one_by_one = torch.cat([shifted(image[None]) for image in images])
    torch.testing.assert_close(whole, one_by_one, atol=1e-5, rtol=1e-5)


def test_what_cannot_be_shifted_is_told() -> None:
    with pytest.raises(ValueError, match="which ConcatScales cannot do"):
        fovconc(GRID, shifts=1)
    with pytest.raises(ValueError, match=r"shifts must be a whole number .*; got -1"):
        fovlse(GRID, shifts=-1)
    with pytest.raises(ValueError, match="use a network with shifts=0"):
        DenseNetwork(pair()[1])
    with pytest.raises(ValueError, match=r"network\.shifts must be 0 for fovconc, swmax and cnn"):
        NetworkConfig("cnn", shifts=1)


def test_a_run_has_it_and_is_trained_with_those_that_have_not() -> None:
    with_shifts, without = (
        RunConfig(DataConfig("mnist"), NetworkConfig("fovlse", shifts=shifts)).resolve() for shifts in (1, 0)
    )
    assert build_network(with_shifts).shifts == 1
    assert with_shifts.shape == without.shape
    assert with_shifts.name != without.name
