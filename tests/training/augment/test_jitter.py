"""Shifted windows are those about another centre."""

import pytest
import torch
from helpers.tiny_runs import SIZES, tiny, trained, weights

from scalechannels import ScaleGrid
from scalechannels.sampling import Foveate
from scalechannels.training.augment.jitter import Jitter
from scalechannels.training.augment.visible import Visible
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig
from scalechannels.training.fit import fit
from scalechannels.training.inputs import widened
from scalechannels.training.trainer import Trainer

GRID = ScaleGrid.of(0.5, 1, 3)
FOVEATE = Foveate(GRID, 8)
MARGIN = 2


def images(count: int = 4) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(count, 2, 40, 40, generator=generator, dtype=torch.float64)


def wider(shown: torch.Tensor) -> torch.Tensor:
    """(1, B, S, C, n + 2 m, n + 2 m)"""
    return widened(FOVEATE, MARGIN)(shown)[None]


def drawn(count: int = 4) -> torch.Tensor:
    return torch.randint(-MARGIN, MARGIN + 1, (1, count, 3, 2), generator=torch.Generator().manual_seed(1))


def about(shown: torch.Tensor, shift: torch.Tensor, middle: float) -> torch.Tensor:
    """Each channel about a centre that is σ · shift image pixels from the middle."""
    result = []
    for channel, sigma in enumerate(GRID):
        centres = middle + sigma * shift[0, :, channel].double()  # (B, 2)
        result.append(Foveate(ScaleGrid.of(sigma), 8)(shown, centres))
    return torch.cat(result, 1)[None]


def test_they_are_windows_about_another_centre() -> None:
    jitter = Jitter([MARGIN])
    windows = wider(images()).movedim(3, -1)
    expected = about(images(), drawn(), 19.5)
    made = jitter.shifted(windows, drawn()).movedim(-1, 3)
    torch.testing.assert_close(made, expected)
    unshifted = FOVEATE(images())[None]
    assert not torch.allclose(made, unshifted)
    still = jitter.shifted(windows, torch.zeros(1, 4, 3, 2, dtype=torch.long))
    torch.testing.assert_close(still.movedim(-1, 3), unshifted)


def test_what_is_cropped_before_is_seen_off_the_centre_of_the_cropped_picture() -> None:
    grid, side = ScaleGrid.of(1), 10
    shown, shift = images(), drawn()[:, :, :1]
    windows = widened(Foveate(grid, 8), MARGIN)(shown)[None]
    visible = Visible(Foveate(grid, 8), torch.full((1, 4), 8.0), [0.5])
    seen = visible.cropped(windows.movedim(3, -1), torch.full((1, 4), float(side)))
    made = Jitter([MARGIN]).shifted(seen, shift)
    cropped = shown[:, :, 15:25, 15:25]
    expected = Foveate(grid, 8)(cropped, 4.5 + shift[0, :, 0].double())[None]
    torch.testing.assert_close(made.movedim(-1, 3), expected)


def test_every_run_has_its_own_bound_and_every_shift_occurs() -> None:
    jitter = Jitter([0, 1, 2])
    torch.manual_seed(0)
    shift = jitter.drawn(torch.zeros(3, 200, 5, 12, 12, 1))
    assert shift.shape == (3, 200, 5, 2)
    for run, most in enumerate((0, 1, 2)):
        assert shift[run].unique().tolist() == list(range(-most, most + 1))
    pairs = {tuple(pair) for pair in shift[1].flatten(0, 1).tolist()}
    assert len(pairs) == 9  # rows and columns are drawn apart
    assert (shift[1, :, 0] != shift[1, :, 1]).any()  # and channels, too


def test_negative_shifts_are_an_error() -> None:
    with pytest.raises(ValueError, match="zero or more pixels"):
        Jitter([1, -1])


# Whole runs


@pytest.mark.parametrize("together", [True, False])
def test_a_run_learns_from_windows_of_the_networks_size_that_move(together, tmp_path, monkeypatch) -> None:
    seen, learn = [], Trainer.learn

    def spy(self, inputs, labels):
        seen.append(inputs.clone())
        return learn(self, inputs, labels)

    monkeypatch.setattr(Trainer, "learn", spy)
    # Of twenty images in one batch, each epoch shows the same ones in another order.
    options = {"samples": 20, "dropout": 0.0}
    trained(tiny("fovlse", jitter=1, **options), tmp_path, together=together)
    shifted = sorted(float(image) for image in seen[0].flatten(2).sum(2).flatten())
    assert seen[0].numel() == 20 * 3 * 28 * 28
    seen.clear()
    trained(tiny("fovlse", **options), tmp_path, together=together)
    assert seen[0].numel() == 20 * 3 * 28 * 28
    assert shifted != sorted(float(image) for image in seen[0].flatten(2).sum(2).flatten())


def test_runs_that_are_shifted_and_others_learn_together(double, tmp_path) -> None:
    still, moved = tiny("fovlse", dropout=0.0), tiny("fovlse", dropout=0.0, jitter=2, visible=0.5, detail=0.5)
    assert still.shape == moved.shape
    both = fit([still, moved], tmp_path / "both", device="cpu", sizes=SIZES, together=True)
    alone = trained(still, tmp_path / "alone", together=True)
    torch.testing.assert_close(weights(both[0]), weights(alone))
    assert not torch.equal(
        weights(both[0])["backbone.dense.weight"], weights(both[1])["backbone.dense.weight"]
    )


@pytest.mark.parametrize(
    "config",
    [
        tiny("cnn", jitter=1),
        tiny("swmax", jitter=1),
        RunConfig(DataConfig("cifar10"), NetworkConfig("fovlse"), TrainingConfig(jitter=1)),
    ],
    ids=lambda config: f"{config.network.name}, {config.data.name}",
)
def test_other_networks_and_data_are_refused(config) -> None:
    with pytest.raises(
        ValueError, match=r"training\.jitter works only with foveated networks, not with cifar10"
    ):
        config.resolve()
    with pytest.raises(ValueError, match=r"training\.jitter must be zero or more"):
        TrainingConfig(jitter=-1)
