"""Images seen through an index map: what a network sees in a canvas is what it sees in an image."""

from itertools import product

import numpy as np
import pytest
import torch
from helpers.tiny_runs import SIZES, tiny, weights
from torch import nn

import scalechannels
from scalechannels import ScaleGrid
from scalechannels.backbones.residual import ResidualBackbone
from scalechannels.constructors import fovlse
from scalechannels.sampling import Foveate
from scalechannels.training.augment import flips_and_crops as augmenting
from scalechannels.training.augment.flips_and_crops import FlipsAndCrops, canvas_side
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig
from scalechannels.training.fit import fit
from scalechannels.training.inputs import Alone
from scalechannels.training.trainer import Trainer

GRID = ScaleGrid(0.5, 2, ratio=2**0.5)
SAMPLING = [{}, {"antialias": True}, {"blur": 0.5}, {"antialias": True, "blur": 0.5}]


def images(count: int = 3, height: int = 32, width: int = 32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(1, count, 2, height, width, generator=generator, dtype=torch.float64)


def foveated(outside="reflect", **sampling) -> Foveate:
    return Foveate(GRID, 32, outside=outside, **sampling)


def continued(picture: np.ndarray, height: int, width: int) -> np.ndarray:
    """A picture (C, h, w) mirrored on to this size about its centre, or cropped to it."""
    wide = np.pad(picture, ((0, 0), (100, 100), (100, 100)), mode="reflect")
    top, left = (wide.shape[1] - height) // 2, (wide.shape[2] - width) // 2
    return wide[:, top : top + height, left : left + width]


@pytest.fixture
def shares(monkeypatch):
    """Sets what share of their sides images keep, in place of a drawn one."""

    def set_to(value: float) -> None:
        monkeypatch.setattr(augmenting, "drawn_shares", lambda _, shape: torch.full(tuple(shape), value))

    return set_to


@pytest.mark.parametrize("sampling", SAMPLING, ids=str)
@pytest.mark.parametrize("size", [(32, 32), (33, 36), (20, 15)], ids=str)
def test_a_canvas_without_changes_looks_like_its_image(sampling, size) -> None:
    foveate, shown = foveated(**sampling), images(2, *size)
    canvas = FlipsAndCrops(foveate)(shown)
    assert canvas.shape[3:] != shown.shape[3:]
    torch.testing.assert_close(foveate(canvas[0]), foveate(shown[0]), rtol=0, atol=1e-9)


@pytest.mark.parametrize(("sampling", "side"), [({}, 64), ({"antialias": True}, 66)], ids=str)
def test_the_canvas_is_no_larger_than_the_widest_window_needs(sampling, side) -> None:
    foveate, shown = foveated(**sampling), images()
    canvas = FlipsAndCrops(foveate)(shown)
    assert canvas.shape == (1, 3, 2, side, side)
    smaller = canvas[0, ..., 1:-1, 1:-1].clone()
    smaller[..., 0] = smaller[..., -1] = 9  # what lies at the edge of a smaller one is seen, too
    assert not torch.allclose(foveate(smaller), foveate(shown[0]))
    assert [canvas_side(*given) for given in ((32, 64), (33, 64), (32, 63), (32, 0), (64, 32))] == [
        *(64, 65, 64, 32, 64),
    ]


@pytest.mark.parametrize("sampling", SAMPLING, ids=str)
@pytest.mark.parametrize("kept", [1.0, 0.5])
def test_a_border_needs_a_canvas_for_the_shifted_image_alone(sampling, kept, shares, monkeypatch) -> None:
    """Wider windows see the last pixel again and again: as in a canvas that holds all of them."""
    foveate, shown = foveated("border", **sampling), images()
    shares(kept)
    augment = FlipsAndCrops(foveate, outside="border", flips=True, crops=3, visible=0.5)
    wide = FlipsAndCrops(foveate, outside="border", flips=True, crops=3, visible=0.5)
    monkeypatch.setattr(augmenting, "canvas_side", lambda size, _: canvas_side(size, wide.needed))
    torch.manual_seed(0)
    large = wide(shown)
    monkeypatch.undo()
    shares(kept)
    torch.manual_seed(0)
    small = augment(shown)
    assert (small.shape[-1], large.shape[-1] > 60) == (38, True)
    torch.testing.assert_close(foveate(small[0]), foveate(large[0]), rtol=0, atol=1e-9)


@pytest.mark.parametrize("outside", ["border", "reflect"])
@pytest.mark.parametrize("sampling", SAMPLING, ids=str)
@pytest.mark.parametrize("kept", [30, 16, 4, 2])
def test_a_cut_image_looks_like_the_cropped_one(sampling, kept, outside, shares) -> None:
    foveate, shown, lost = foveated(outside, **sampling), images(), (32 - kept) // 2
    shares(kept / 32)
    canvas = FlipsAndCrops(foveate, outside=outside, visible=0.05)(shown)
    cropped = shown[..., lost : 32 - lost, lost : 32 - lost]
    torch.testing.assert_close(foveate(canvas[0]), foveate(cropped[0]), rtol=0, atol=1e-9)
    assert not torch.allclose(foveate(canvas[0]), foveate(shown[0]))


@pytest.mark.parametrize("outside", ["border", "reflect"])
def test_what_is_visible_is_a_share_of_each_objects_frame(outside, shares) -> None:
    shares(0.5)
    shown, frames = images(3), torch.tensor([[8.0, 16.0, 99.0]])
    augment = FlipsAndCrops(None, outside=outside, visible=0.5, frames=frames)
    canvas = augment(shown, torch.zeros(1, 1, dtype=torch.long), torch.tensor([[1, 0, 2]]))
    for made, image, kept in zip(canvas[0], shown[0], (8, 4, 32), strict=True):
        middle = image[:, 16 - kept // 2 : 16 + kept // 2, 16 - kept // 2 : 16 + kept // 2].numpy()
        mode = {"border": "edge"}.get(outside, outside)
        wide = np.pad(middle, ((0, 0), *[((32 - kept) // 2, (32 - kept) // 2)] * 2), mode=mode)
        np.testing.assert_array_equal(made.numpy(), wide)


@pytest.mark.parametrize("size", [32, 33])
def test_whatever_the_share_a_picture_of_two_pixels_or_more_is_left(size, shares) -> None:
    shown = images(1, size, size)
    for share in (1e-6, 0.5, 0.99, 1.0, torch.inf):
        shares(share)
        canvas = FlipsAndCrops(None, visible=1e-6)(shown)
        kept = len(canvas[0, 0, 0].unique(dim=0))
        assert kept % 2 == size % 2  # the edge lies on a pixel
        assert abs(kept - min(max(share, 2 / size) * size, size)) <= 1
    assert torch.equal(canvas, shown)


def test_every_second_image_is_cut_down_to_the_smallest_share() -> None:
    torch.manual_seed(0)
    shown = images(1).expand(-1, 600, -1, -1, -1)
    canvas = FlipsAndCrops(None, visible=0.25)(shown)
    kept = torch.tensor([len(made[0].unique(dim=0)) for made in canvas[0]])
    assert 0.4 < (kept == 32).double().mean() < 0.65
    assert (int(kept.min()), int(kept.max())) == (8, 32)
    assert 0.2 < (kept <= 16).double().mean() < 0.3  # log-uniform: half of the cropped are below the middle


def test_without_windows_a_shift_is_a_random_crop_of_the_padded_image() -> None:
    torch.manual_seed(0)
    shown = images(1, 8, 9).expand(-1, 400, -1, -1, -1)
    canvas = FlipsAndCrops(None, crops=2)(shown)
    padded = nn.functional.pad(shown[0, :1], (2, 2, 2, 2), mode="reflect")[0]
    crops = {
        (down, right): padded[:, down : down + 8, right : right + 9]
        for down, right in product(range(5), repeat=2)
    }
    met = [[place for place, crop in crops.items() if torch.equal(crop, made)] for made in canvas[0]]
    assert all(len(places) == 1 for places in met)
    assert {places[0] for places in met} == set(crops)


def test_every_second_image_is_mirrored_left_to_right() -> None:
    torch.manual_seed(0)
    shown = images(400, 8, 8)
    canvas = FlipsAndCrops(None, flips=True)(shown)
    same = (canvas == shown).flatten(2).all(2)
    mirrored = (canvas == shown.flip(4)).flatten(2).all(2)
    assert bool((same ^ mirrored).all())
    assert 0.4 < mirrored.double().mean() < 0.6


def test_all_at_once_is_a_crop_of_the_shifted_and_mirrored_image_continued() -> None:
    torch.manual_seed(0)
    shown = images(60, 8, 8)
    foveate = Foveate(ScaleGrid.of(1, 2), 8, outside="reflect")
    canvas = FlipsAndCrops(foveate, flips=True, crops=1, visible=0.3)(shown).numpy()[0]
    assert canvas.shape[2:] == (16, 16)
    met = set()
    for image, made in zip(shown[0].numpy(), canvas, strict=True):
        found = [
            (flip, down, right, kept)
            for flip, down, right, kept in product((False, True), (-1, 0, 1), (-1, 0, 1), (2, 4, 6, 8, 16))
            if np.array_equal(made, _expected(image, flip, down, right, kept))
        ]
        assert found
        met.update(found)
    assert len(met) > 30
    assert {kept for _, down, right, kept in met if down and right} >= {4, 6, 16}  # 16: not cropped at all


def _expected(image: np.ndarray, flip: bool, down: int, right: int, kept: int) -> np.ndarray:
    plane = continued(image, 40, 40)
    shifted = np.roll(plane, (down, right), axis=(1, 2))[:, 8:-8, 8:-8]
    picture = continued(shifted[:, :, ::-1] if flip else shifted, 24, 24)
    edge = (24 - kept) // 2
    return continued(picture[:, edge : 24 - edge, edge : 24 - edge], 16, 16)


def test_windows_that_continue_the_image_in_another_way_are_refused() -> None:
    with pytest.raises(ValueError, match="outside='reflect' for windows with 'border'"):
        FlipsAndCrops(Foveate(GRID, 32), flips=True)
    with pytest.raises(ValueError, match="outside='constant'"):
        FlipsAndCrops(None, outside="constant", flips=True)


# The step of training


@pytest.mark.slow
@pytest.mark.parametrize("sampling", [{}, {"antialias": True}], ids=str)
def test_the_step_is_one_graph_and_computes_the_same_compiled(sampling) -> None:
    """A graph break or a look at a value would be an error here, and on a GPU in the captured step."""
    network = fovlse(GRID, data="cifar10", backbone=ResidualBackbone(2), **sampling)
    augment = FlipsAndCrops(network.foveate, flips=True, crops=4, visible=0.5)
    shown, labels = torch.rand(1, 8, 3, 32, 32), torch.arange(8)[None]
    trainer = Trainer(Alone(network, windows=False), shown, labels, [0], precision="float32")

    def gradient(make, objective) -> tuple[torch.Tensor, ...]:
        torch.manual_seed(0)
        return torch.autograd.grad(objective(make(shown), labels).sum(), network.parameters())

    torch.compiler.reset()
    compiled = (
        torch.compile(made, fullgraph=True, backend="aot_eager") for made in (augment, trainer._objective)
    )
    for mine, other in zip(gradient(augment, trainer._objective), gradient(*compiled), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-5)


# Whole runs


def run(name: str = "fovlse", network: dict | None = None, **training) -> RunConfig:
    return RunConfig(
        DataConfig("cifar10"),
        NetworkConfig(name, ratio=2, backbone="residual", **(network or {})),
        TrainingConfig(epochs=2, batch=10, **training),
    )


def trained(config: RunConfig, folder, **options):
    (made,) = fit([config], folder, device="cpu", sizes=(1.0,), **options)
    return made


@pytest.mark.parametrize(
    ("config", "canvas"),
    [
        (run(flips=True, crops=2), 64),
        (run("fovavg", {"antialias": True}, crops=2, visible=0.5, smoothing=0.1, average=0.9), 66),
        (run("fovconc", visible=0.5), 64),
        (run("fovmax", {"pretrained": 1.0}, flips=True), 32),
        (run("cnn", flips=True, crops=2, visible=0.5), 32),
    ],
    ids=lambda value: value.network.name if isinstance(value, RunConfig) else None,
)
def test_runs_see_canvases_made_of_the_images_in_memory(config, canvas, cifar, tmp_path, monkeypatch) -> None:
    seen, learn = [], Trainer.learn

    def spy(self, inputs, labels):
        seen.append((self.inputs.shape, inputs))
        training = config.resolve().training
        asked = (training.flips, training.crops, training.visible)
        (augment,) = self.augmentations
        assert (augment.flips, augment.crops, float(augment.visible)) == asked
        assert self.model.detail is None
        learn(self, inputs, labels)

    monkeypatch.setattr(Trainer, "learn", spy)
    done = trained(config, tmp_path)
    assert len(seen) == 4
    assert all(shape == (1, 20, 3, 32, 32) for shape, _ in seen)
    assert all(inputs.shape == (1, 10, 3, canvas, canvas) for _, inputs in seen)
    network = scalechannels.load(done.folder)
    assert isinstance(network.backbone, ResidualBackbone)
    assert network.backbone.features == 2
    assert network(torch.rand(1, 3, 32, 32)).shape == (1, 10)
    assert done.result()["config"]["network"]["backbone"] == "residual"


def test_a_run_draws_the_same_again_and_goes_on_as_if_it_had_not_stopped(
    cifar, tmp_path, monkeypatch
) -> None:
    config = run(flips=True, crops=2, visible=0.5)
    whole = weights(trained(config, tmp_path / "whole"))
    epoch, done = Trainer.epoch, []

    def stopped(self, *arguments):
        if done:
            raise KeyboardInterrupt
        done.append(True)
        return epoch(self, *arguments)

    monkeypatch.setattr(Trainer, "epoch", stopped)
    with pytest.raises(KeyboardInterrupt):
        trained(config, tmp_path / "stopped")
    monkeypatch.setattr(Trainer, "epoch", epoch)
    again = weights(trained(config, tmp_path / "stopped"))
    assert all(torch.equal(value, again[name]) for name, value in whole.items())


EVERY = {"flips": True, "crops": 2, "visible": 0.5, "detail": 0.5, "smoothing": 0.1, "average": 0.9}


@pytest.mark.parametrize("name", ["fovavg", "fovconc", "cnn", "swmax"])
def test_digits_are_augmented_for_every_network(name, tmp_path, monkeypatch) -> None:
    seen, learn = [], Trainer.learn
    monkeypatch.setattr(Trainer, "learn", lambda self, *batch: seen.append(batch[0]) or learn(self, *batch))
    config = tiny(name, samples=40, epochs=1, **EVERY)
    (done,) = fit([config], tmp_path, device="cpu", sizes=SIZES, together=True)  # never as a stack
    assert done.done
    assert all(inputs.ndim == 5 and inputs.isfinite().all() for inputs in seen)
    plain = weights(trained(tiny(name, samples=40, epochs=1), tmp_path))
    assert any(not torch.equal(value, plain[key]) for key, value in weights(done).items())


def test_streamed_images_are_changed_as_resident_ones_are(cifar, tmp_path) -> None:
    resident = weights(trained(run(flips=True, crops=2), tmp_path / "resident"))
    for name, value in weights(trained(run(flips=True, crops=2), tmp_path, stream=True)).items():
        torch.testing.assert_close(value, resident[name], atol=1e-5, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inductor itself uses what torch deprecates
@pytest.mark.parametrize("options", [{"crops": 4}, {"flips": True, "crops": 4}, {"visible": 0.5}], ids=str)
def test_a_plain_networks_images_can_be_compiled(options) -> None:
    """Places that are whole numbers must stay so for the compiler, which refuses others as an index."""
    augment, seen = FlipsAndCrops(None, **options), images()
    torch.compiler.reset()
    canvas = torch.compile(augment, fullgraph=True)(seen)
    assert canvas.shape == seen.shape
    assert torch.isin(canvas, seen).all()


def test_a_single_row_of_pixels_is_its_own_mirror() -> None:
    seen = images(height=1)
    for options in ({"crops": 2}, {"flips": True}, {"visible": 0.5}):
        assert torch.isin(FlipsAndCrops(None, **options)(seen), seen).all()
