"""Blurred windows are those of an image that was made smaller."""

import math

import pytest
import torch
from helpers.tiny_runs import tiny, trained, weights
from torch._subclasses.fake_tensor import FakeTensorMode

from scalechannels import ScaleGrid
from scalechannels.backbones.residual import ResidualBackbone
from scalechannels.constructors import fovlse
from scalechannels.data.rescale import rescale
from scalechannels.sampling import Foveate
from scalechannels.training import build
from scalechannels.training.augment.detail import Detail, ImageDetail, coarser_shares
from scalechannels.training.augment.flips_and_crops import FlipsAndCrops
from scalechannels.training.augment.visible import Visible
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig
from scalechannels.training.fit import fit
from scalechannels.training.inputs import Alone
from scalechannels.training.trainer import Trainer

SCALES = (0.5, 2**-0.5, 1.0, 2**0.5, 2.0, 4.0)
SAMPLING = [{}, {"antialias": True}, {"blur": 0.5}, {"antialias": True, "blur": 0.5}]


def noise(count: int = 3, channels: int = 2, size: int = 64) -> torch.Tensor:
    return torch.rand(count, channels, size, size, generator=torch.Generator().manual_seed(0))


def pictures(count: int = 8) -> torch.Tensor:
    """Steps along both axes, as objects before a ground have them."""
    return noise(count, 2, 16).repeat_interleave(4, 2).repeat_interleave(4, 3)


def blobs(size: int, pixel: float) -> torch.Tensor:
    """Images (8, 2, size, size) of Gaussians about the centre; a pixel measures `pixel`."""
    generator = torch.Generator().manual_seed(0)
    place = (torch.arange(size, dtype=torch.float64) - (size - 1) / 2) * pixel
    centres = torch.rand(2, 8, 2, 30, generator=generator, dtype=torch.float64) * 50 - 25
    rows, columns = (
        torch.exp(-((place - c[..., None]) ** 2) / 2 / 1.6**2) for c in centres
    )  # (8, 2, 30, size)
    return torch.einsum("bcpy,bcpx->bcyx", rows, columns).float()


def made(sampling: dict | None = None, detail=(0.5,), scales=SCALES, smooth=False):
    foveate = Foveate(ScaleGrid.of(*scales), window=28, **(sampling or {}))
    return foveate, Detail([foveate] * len(detail), detail, smooth=smooth)


def last(windows: torch.Tensor) -> torch.Tensor:
    """Windows (…, C, n, n) as training has them, (…, n, n, C)."""
    return windows.movedim(-3, -1)


def gap_closed(blur: Detail, before: torch.Tensor, wanted: torch.Tensor, share: int) -> list[float]:
    """For each channel: by what share the blurred windows (B, S, C, n, n) are closer."""
    after = blur.blurred(last(before)[None], torch.full((1, len(before)), share))[0].movedim(-1, 2)
    errors = [(windows - wanted).pow(2).mean((0, 2, 3, 4)).sqrt() for windows in (before, after)]
    return (1 - errors[1] / errors[0]).tolist()


@pytest.mark.parametrize("sampling", SAMPLING, ids=str)
@pytest.mark.parametrize("share", [0.5, 2**-0.5, 0.35])
@pytest.mark.parametrize("smooth", [True, False])
def test_the_windows_are_those_of_the_smaller_image(sampling, share, smooth) -> None:
    foveate, blur = made(sampling, (share,), smooth=smooth)
    smaller = Foveate(ScaleGrid.of(*(share * sigma for sigma in SCALES)), window=28, **sampling)
    if smooth:
        whole, less = blobs(128, 1.0), blobs(128, 1 / share)
    else:
        whole = pictures()
        less = rescale(whole, share, continuation="border")
    closed = gap_closed(blur, foveate(whole), smaller(less), len(coarser_shares(share)))
    touched = [value for value, sigma in zip(closed, SCALES, strict=True) if sigma * share < 1 - 1e-9]
    assert min(touched) > (0.3 if "blur" in sampling else 0.55)  # blurred windows differ less to begin with
    assert sum(touched) / len(touched) > (0.55 if "blur" in sampling else 0.7)
    other = Detail([foveate], [share], smooth=not smooth)
    worse = gap_closed(other, foveate(whole), smaller(less), len(coarser_shares(share)))
    assert sum(worse) < sum(closed)  # which way smaller images are made matters
    assert closed[len(touched) :] == pytest.approx([0] * (len(SCALES) - len(touched)), abs=1e-6)


def test_the_matrices_are_those_of_how_windows_are_sampled() -> None:
    foveates = [Foveate(ScaleGrid.of(*SCALES), window=28, **sampling) for sampling in SAMPLING]
    together = Detail(foveates, [0.5, 0.4, 0.3, 0.5], smooth=True)
    for run, (foveate, detail) in enumerate(zip(foveates, (0.5, 0.4, 0.3, 0.5), strict=True)):
        alone = Detail([foveate], [detail], smooth=True)
        shares, channels = alone.matrices.shape[1:3]
        torch.testing.assert_close(
            together.matrices[run, :shares, :channels], alone.matrices[0], rtol=0, atol=1e-5
        )
    assert not torch.allclose(together.matrices[0], together.matrices[3], atol=1e-3)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float64])
def test_what_is_even_stays_even_and_what_keeps_all_pixels_stays_as_it_is(kind) -> None:
    foveate, blur = made(detail=(0.3,))
    even = torch.full((1, 8, len(SCALES), 28, 28, 2), -0.763).to(kind)
    shares = torch.arange(8)[None]
    torch.testing.assert_close(blur.blurred(even, shares), even, rtol=0, atol=1e-6)
    windows = foveate(noise(8)).movedim(2, -1)[None].to(kind)
    result = blur.blurred(windows, shares)
    assert result.dtype == kind
    changed = (result != windows).flatten(3).any(3)[0]  # (B, S)
    fewer = [[share * sigma < 1 - 1e-9 for sigma in SCALES] for share in coarser_shares(0.3)]
    assert changed.tolist() == [[False] * len(SCALES), *fewer]
    exact = blur.double().blurred(windows.double(), shares)
    assert float((result - exact).abs().max()) < (0.01 if kind == torch.bfloat16 else 1e-5)


def test_the_axes_are_treated_alike() -> None:
    foveate, blur = made()
    windows, shares = last(foveate(noise())[None]), torch.tensor([[0, 2, 4]])
    result = blur.blurred(windows, shares)
    torch.testing.assert_close(blur.blurred(windows.transpose(3, 4), shares).transpose(3, 4), result)
    torch.testing.assert_close(blur.blurred(windows.flip(4), shares).flip(4), result, rtol=0, atol=1e-4)
    torch.testing.assert_close(blur.blurred(windows.flip(5), shares).flip(5), result)


def test_shares_are_a_quarter_of_an_octave_apart_down_to_the_smallest() -> None:
    assert coarser_shares(1) == []
    assert coarser_shares(0.9) == [0.9]
    assert coarser_shares(2**-0.25) == [2**-0.25]
    assert coarser_shares(0.5) == pytest.approx([2 ** (-k / 4) for k in (1, 2, 3, 4)])
    assert coarser_shares(0.4) == pytest.approx([*(2 ** (-k / 4) for k in range(1, 6)), 0.4])


def test_each_run_has_its_own_shares_and_half_of_the_images_keep_all() -> None:
    _, blur = made(detail=(1.0, 0.5, 0.4, 0.9))
    torch.manual_seed(0)
    drawn = blur.drawn(torch.empty(4, 4000, 1))
    frequencies = [torch.bincount(run, minlength=7).double() / 4000 for run in drawn]
    expected = [
        [1.0] + [0.0] * 6,
        [1 / 2] + [1 / 8] * 4 + [0] * 2,
        [1 / 2] + [1 / 12] * 6,
        [1 / 2, 1 / 2] + [0] * 5,
    ]
    torch.testing.assert_close(
        torch.stack(frequencies), torch.tensor(expected, dtype=torch.float64), rtol=0, atol=0.03
    )
    assert torch.equal(torch.stack(frequencies) > 0, torch.tensor(expected) > 0)


def test_what_cannot_be_blurred_is_an_error() -> None:
    foveate = Foveate(ScaleGrid.of(1), window=28)
    for detail in (0.0, 1.5, math.nan):
        with pytest.raises(ValueError, match="share of pixels"):
            Detail([foveate], [detail], smooth=True)
    with pytest.raises(ValueError, match="one grid"):
        Detail([foveate, Foveate(ScaleGrid.of(2), window=28)], [0.5, 0.5], smooth=True)


@pytest.mark.parametrize("smooth", [True, False])
def test_an_image_is_made_smaller_and_enlarged_again(smooth) -> None:
    side, share = 64, 0.5
    place = torch.arange(side, dtype=torch.float32)
    wave = torch.cos(place / 6)[:, None] * torch.cos(place / 9 + 1)
    images = wave.expand(1, 2, 3, side, side).clone()
    blur = ImageDetail(side, [share], smooth=smooth)
    number = len(coarser_shares(share))
    blur.drawn = lambda windows: torch.tensor([[0, number]])
    made = blur(images)
    assert torch.equal(made[0, 0], images[0, 0])
    smaller = rescale(images[0, 1:], share, side // 2, continuation="border", antialias=not smooth)
    again = Foveate(ScaleGrid.of(share), side)(smaller)[0, 0]
    inner = slice(8, -8)
    torch.testing.assert_close(made[0, 1, :, inner, inner], again[:, inner, inner], rtol=0, atol=0.02)
    assert (made[0, 1] - images[0, 1]).abs().max() > 0.005


# The step of training


@pytest.mark.slow
def test_the_step_is_one_graph_and_computes_the_same_compiled() -> None:
    """A graph break or a look at a value would be an error here, and on a GPU in the captured step."""
    foveate, blur = made(detail=(0.5, 1.0))
    windows = foveate(noise(8)).movedim(2, -1).expand(2, -1, -1, -1, -1, -1).bfloat16()
    network = fovlse(ScaleGrid.of(0.5, 1, 2), data="cifar10", backbone=ResidualBackbone(2))
    inside = Detail([network.foveate], [0.5], smooth=False)
    alone = Alone(network, windows=False, detail=inside)
    canvas = FlipsAndCrops(network.foveate)(torch.rand(1, 4, 3, 32, 32))
    torch.compiler.reset()
    for module, inputs in ((blur, windows), (alone, canvas)):
        results = []
        for called in (module, torch.compile(module, fullgraph=True, backend="aot_eager")):
            torch.manual_seed(0)
            with torch.autocast("cpu", torch.bfloat16, enabled=module is alone):
                results.append(called(inputs))
        torch.testing.assert_close(*results)


def test_no_value_is_looked_at_and_autocast_does_not_round() -> None:
    """What waits for a value cannot be captured; tensors without values tell."""
    foveate, blur = made()
    windows = last(foveate(noise())[None])
    with torch.autocast("cpu", torch.bfloat16):
        torch.manual_seed(0)
        rounded = blur(windows)
    torch.manual_seed(0)
    assert torch.equal(blur(windows), rounded)
    assert not torch.equal(rounded, windows)
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert blur(torch.empty(windows.shape)).shape == windows.shape


def test_windows_made_in_the_step_are_blurred_in_training_alone(monkeypatch) -> None:
    network = fovlse(ScaleGrid.of(0.5, 2), data="cifar10", backbone=ResidualBackbone(2))
    blur = Detail([network.foveate], [0.5], smooth=False)
    monkeypatch.setattr(blur, "drawn", lambda windows: torch.full(windows.shape[:2], 4))
    alone = Alone(network, windows=False, detail=blur)
    assert not any("detail" in name for name in alone.state_dict())  # checkpoints need not hold it
    seen = []
    monkeypatch.setattr(network, "from_stack", lambda stack: seen.append(stack) or stack)
    shown = torch.rand(1, 8, 3, 40, 40)
    alone(shown)
    blurred = blur(last(network.foveate(shown[0]))[None])[0].movedim(-1, 2)
    torch.testing.assert_close(seen.pop(), blurred, rtol=0, atol=1e-4)
    torch.testing.assert_close(alone.eval()(shown)[0], network(shown[0]))
    assert not seen


# Whole runs


def blurring(trainer: Trainer) -> Detail | None:
    """What blurs windows that lie in memory."""
    return next((made for made in trainer.augmentations if isinstance(made, Detail)), None)


@pytest.fixture
def seen(monkeypatch):
    """The trainers that took a step, and what they learnt from."""
    steps, learn = [], Trainer.learn

    def spy(self, inputs, labels):
        steps.append((self, inputs))
        learn(self, inputs, labels)

    monkeypatch.setattr(Trainer, "learn", spy)
    return steps


def test_runs_lose_detail_each_in_its_own_measure_alone_and_together(tmp_path, seen) -> None:
    options = {"network": {"antialias": True}}
    configs = [tiny("fovlse"), tiny("fovlse", detail=0.5), tiny("fovlse", detail=0.4, **options)]
    plain, coarse, _ = (weights(trained(config, tmp_path)) for config in configs)
    assert any(not torch.equal(value, coarse[name]) for name, value in plain.items())
    assert [blurring(trainer) is None for trainer, _ in seen[::10]] == [True, False, False]
    seen.clear()
    fit(configs, tmp_path / "together", device="cpu", together=True, sizes=(1.0,))
    trainer, inputs = seen[0]
    assert len(inputs) == 3
    assert blurring(trainer).counts.flatten().tolist() == [0, 4, 6]
    for run, config in enumerate(configs[1:], start=1):
        foveate = build.build_network(config.resolve(), 1).foveate
        alone = Detail([foveate], [config.training.detail], smooth=True)
        mine = blurring(trainer).matrices[run, : alone.matrices.shape[1], : alone.touched]
        torch.testing.assert_close(mine, alone.matrices[0], rtol=0, atol=1e-5)


def test_windows_are_cropped_before_they_are_blurred(tmp_path, seen, monkeypatch) -> None:
    order = []

    def spy(name: str):
        return lambda self, windows, *rest: order.append((name, windows.shape[2])) or windows

    monkeypatch.setattr(Visible, "forward", spy("crop"))
    monkeypatch.setattr(Detail, "forward", spy("blur"))
    trained(tiny("fovlse", detail=0.5, visible=0.5), tmp_path)
    assert order[:2] == [("crop", 3), ("blur", 3)]
    trainer, inputs = seen[0]
    assert inputs.shape[2] == 3
    assert blurring(trainer).touched == 2  # of 1, √2 and 2: those below 2


@pytest.mark.parametrize("training", [{}, {"flips": True, "visible": 0.5}, {"crops": 2}], ids=str)
def test_cifar_is_blurred_where_its_windows_are_made(training, cifar, tmp_path, seen) -> None:
    config = RunConfig(
        DataConfig("cifar10"),
        NetworkConfig("fovavg", ratio=2, backbone="residual"),
        TrainingConfig(epochs=1, batch=10, detail=0.5, **training),
    )
    fit([config], tmp_path, device="cpu", sizes=(1.0,))
    trainer, inputs = seen[0]
    before, in_step = blurring(trainer), trainer.model.detail
    assert (before is None, in_step is None) == ((True, False) if training else (False, True))
    blur = in_step or before
    assert blur.touched == 2
    expected = Detail([trainer.model.network.foveate], [0.5], smooth=False)
    assert torch.equal(blur.matrices, expected.matrices)
    assert inputs.ndim == (5 if training else 6)
