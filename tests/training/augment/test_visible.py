"""Visible windows are those of a cropped image."""

import pytest
import torch
from helpers.tiny_runs import tiny, trained, weights

from scalechannels import ScaleGrid
from scalechannels.sampling import Foveate
from scalechannels.training.augment.visible import Visible
from scalechannels.training.fit import fit

SIDE = 22  # its edge lies on a pixel of the windows of scale 1 and 3


def images(count: int = 3) -> torch.Tensor:
    return torch.rand(count, 2, 64, 64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("outside", ["border", "reflect"])
def test_the_windows_are_those_of_the_cropped_image(outside) -> None:
    foveate = Foveate(ScaleGrid.of(1, 3), window=28, outside=outside)
    windows = foveate(images())[None]  # (1, B, S, C, n, n)
    cropped = foveate(images()[:, :, 21:43, 21:43])[None]
    assert not torch.allclose(windows, cropped)
    visible = Visible(foveate, torch.full((1, 3), 28), [0.5])
    side = torch.full((1, 3), float(SIDE))
    torch.testing.assert_close(visible.cropped(windows.movedim(3, -1), side).movedim(-1, 3), cropped)
    torch.testing.assert_close(visible.cropped(windows.movedim(3, -1), side + 1e9).movedim(-1, 3), windows)


def test_each_run_is_cropped_in_its_own_measure_and_half_of_the_images_are_whole() -> None:
    foveate = Foveate(ScaleGrid.of(1), window=28)
    many = foveate(images(400))
    windows = torch.stack([many, many]).movedim(3, -1)  # (2, B, S, n, n, C)
    visible = Visible(foveate, torch.full((1, 400), 28), [1.0, 0.5])
    torch.manual_seed(0)
    made = visible(windows, torch.zeros(2, 1, dtype=torch.long), torch.arange(400).expand(2, -1))
    assert torch.equal(made[0], windows[0])
    changed = (made[1] != windows[1]).flatten(1).any(1)
    assert 0.35 < changed.float().mean() < 0.6
    middle = made[1][:, :, 7:21, 7:21]  # half of the frame is always seen
    assert torch.equal(middle, windows[1][:, :, 7:21, 7:21])
    narrow = (made[1][:, 0, 13, 0] == made[1][:, 0, 13, 5]).all(1)  # cropped by 5 pixels or more on each side
    assert 0.1 < narrow.float().mean() < 0.4


def test_what_cannot_be_cropped_is_an_error() -> None:
    grid = ScaleGrid.of(1)
    with pytest.raises(ValueError, match="object size is known"):
        Visible(Foveate(grid, window=28), torch.full((1, 3), torch.nan), [0.5])
    with pytest.raises(ValueError, match="constant"):
        Visible(Foveate(grid, window=28, outside="constant"), torch.ones(1, 3), [0.5])


def test_cropped_images_change_what_is_learnt(tmp_path) -> None:
    plain, cut = (weights(trained(tiny("fovlse", visible=share), tmp_path)) for share in (1.0, 0.3))
    assert any(not torch.equal(plain[name], cut[name]) for name in plain)
    both = fit([tiny("fovlse"), tiny("fovlse", visible=0.3)], tmp_path / "two", device="cpu", together=True)
    assert both[0].result()["seconds"]["runs_together"] == 2
