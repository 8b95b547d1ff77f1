"""The generator against a slow, obvious one, and each open choice against its alternative."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest
import torch
from scipy.special import ive
from torch.utils.data import DataLoader

from scalechannels.data.mnist_large_scale import (
    BACKGROUND,
    TRAINING_SCALES,
    MnistLargeScale,
    _fill,
    balanced_subset,
    large_scale,
    smoothing_matrices,
)
from scalechannels.data.rescale import rescaling_matrices
from scalechannels.data.sizes import MNIST_SIZES
from scalechannels.data.sources import TrainAndTest
from scalechannels.scale_space import discrete_gaussian_kernel


def digits(count: int, seed: int = 0) -> torch.Tensor:
    """Images like MNIST's: a few bright strokes in the middle 20 x 20 pixels of 28 x 28, zero around them."""
    random = np.random.default_rng(seed)
    row, column = np.mgrid[0:28, 0:28]
    images = np.zeros((count, 28, 28))
    for image in images:
        for _ in range(3):
            start, end = random.uniform(5, 22, (2, 2))
            for part in np.linspace(0, 1, 30):
                r, c = start + part * (end - start)
                image[:] = np.maximum(image, 330 * np.exp(-((row - r) ** 2 + (column - c) ** 2) / 2) - 40)
    return torch.from_numpy(images.clip(0, 255).astype(np.uint8))


def small_mnist(train: int = 60, test: int = 20) -> TrainAndTest:
    labels = torch.randint(0, 10, (train + test,), generator=torch.Generator().manual_seed(1))
    images = digits(train + test)
    return TrainAndTest(images[:train], labels[:train], images[train:], labels[train:])


def keys(x: float) -> float:
    x = abs(x)
    if x < 1:
        return 1.5 * x**3 - 2.5 * x**2 + 1
    return -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0.0


def slow(
    digit: np.ndarray,
    scale: float,
    size: int = 112,
    *,
    antialias: bool = True,
    border: Literal["mirror", "zero"] = "mirror",
    sampled: bool = False,
) -> np.ndarray:
    """One image by the recipe, as explicit sums over kernel weights."""
    width = max(1.0, 1 / scale) if antialias else 1.0
    weights = np.zeros((size, 28))
    for j in range(size):
        u = 13.5 + (j - (size - 1) / 2) / scale
        taps = range(math.floor(u - 2 * width) - 1, math.ceil(u + 2 * width) + 2)
        total = sum(keys((u - tap) / width) for tap in taps)
        for tap in taps:
            if 0 <= tap < 28:
                weights[j, tap] = keys((u - tap) / width) / total
    image = np.zeros((size, size))
    for i in range(size):
        for j in range(size):
            image[i, j] = (weights[i][:, None] * digit * weights[j][None, :]).sum()
    image = np.clip(image, 0, 256)

    variance = (7 / 8 * scale) ** 2
    radius = math.ceil(8 * math.sqrt(variance)) + 5
    n = np.arange(-radius, radius + 1)
    kernel = np.exp(-(n**2) / (2 * variance)) if sampled else ive(np.abs(n), variance)
    kernel = kernel / kernel.sum()
    mode = {"mirror": "reflect", "zero": "constant"}[border]
    for axis in (0, 1):
        padding = [(radius, radius) if axis == other else (0, 0) for other in (0, 1)]
        padded = np.pad(image, padding, mode=mode)
        image = np.zeros((size, size))
        for shift, weight in enumerate(kernel):
            image += weight * np.take(padded, range(shift, shift + size), axis)

    image = (image - image.min()) / (image.max() - image.min()) * 255
    return 2 / math.pi * np.arctan(0.02 * (image - 128))


@pytest.mark.parametrize("scale", [0.5, 1, 2**0.25, 2, 4, 8])
def test_equals_the_slow_and_obvious_generator(scale: float) -> None:
    images = digits(2)
    made = large_scale(images, scale)
    assert made.shape == (2, 1, 112, 112)
    assert made.dtype == torch.float32
    for digit, image in zip(images.numpy(), made[:, 0].numpy(), strict=True):
        np.testing.assert_allclose(image, slow(digit, scale), atol=1e-3)


@pytest.mark.parametrize(("scale", "size"), [(0.3, 40), (1.5, 57), (12, 28), (20, 64)])
def test_other_scales_and_sizes(scale: float, size: int) -> None:
    digit = digits(1, seed=5)
    np.testing.assert_allclose(
        large_scale(digit, scale, size)[0, 0].numpy(), slow(digit[0].numpy(), scale, size), atol=1e-3
    )


@pytest.mark.parametrize("scale", [0.5, 1.0, 8.0])
def test_images_that_are_bright_up_to_their_edge(scale: float) -> None:
    """MNIST has none. What smoothing spreads beyond the edge stays; each image has its own darkest pixel."""
    bright = torch.randint(
        80, 256, (1, 28, 28), generator=torch.Generator().manual_seed(0), dtype=torch.uint8
    )
    images = torch.cat([bright, digits(1)])
    for digit, image in zip(images.numpy(), large_scale(images, scale)[:, 0].numpy(), strict=True):
        np.testing.assert_allclose(image, slow(digit, scale), atol=1e-3)


@pytest.mark.parametrize("scale", [0.5, 1, 2**0.25, 2, 3.36, 3.9, 4, 2**2.25, 8])
def test_what_is_left_out_changes_less_than_a_ten_thousandth(scale: float) -> None:
    """Weights below 1e-6, what smoothing carries beyond the frame, and from about 3.9 on every second row."""
    noise = torch.randint(0, 256, (4, 28, 28), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    images, factor = torch.cat([noise, digits(4)]), torch.tensor([scale], dtype=torch.float64)
    rescaling = rescaling_matrices(factor, 28, 112)
    smoothing = smoothing_matrices((7 / 8 * factor) ** 2, 112)
    whole = smoothing @ (rescaling @ images.double() @ rescaling.mT).clamp(0, 256) @ smoothing.mT
    darkest, brightest = whole.amin((1, 2), keepdim=True), whole.amax((1, 2), keepdim=True)
    expected = 2 / math.pi * torch.atan(0.02 * (255 * (whole - darkest) / (brightest - darkest) - 128))
    torch.testing.assert_close(large_scale(images, scale)[:, 0].double(), expected, atol=1e-4, rtol=0)


def test_values_run_from_background_to_its_opposite() -> None:
    for scale in MNIST_SIZES:
        made = large_scale(digits(3), scale)
        torch.testing.assert_close(made.amin((1, 2, 3)), torch.full((3,), BACKGROUND))
        torch.testing.assert_close(
            made.amax((1, 2, 3)), torch.full((3,), 2 / math.pi * math.atan(0.02 * 127)), atol=1e-4, rtol=0
        )
    assert pytest.approx(-0.763, abs=1e-3) == BACKGROUND


def test_antialiasing_changes_small_sizes_only() -> None:
    digit = digits(1, seed=2)[0].numpy()
    assert np.abs(slow(digit, 0.5) - slow(digit, 0.5, antialias=False)).max() > 0.05
    np.testing.assert_array_equal(slow(digit, 1.0), slow(digit, 1.0, antialias=False))


def test_the_stretch_is_per_image() -> None:
    """A faint digit comes out as its bright self; a stretch of the whole set would leave it faint."""
    bright = (digits(1).int() // 4 * 4).to(torch.uint8)
    faint = bright // 4
    alone, together = large_scale(bright, 2.0), large_scale(torch.cat([bright, faint]), 2.0)
    torch.testing.assert_close(together[0], alone[0])
    # Not quite: overshoot is clipped at 256, which the faint digit does not reach.
    torch.testing.assert_close(together[1], alone[0], atol=0.02, rtol=0)


def test_the_border_draws_no_dark_frame() -> None:
    """A bar that leaves the image stays as bright; with zeros outside it would fade within 7/8·s pixels."""
    bar = torch.zeros(1, 28, 28, dtype=torch.uint8)
    bar[:, :, 12:16] = 255
    made = large_scale(bar, 8.0)[0, 0].numpy()
    np.testing.assert_allclose(made[0], made[56], atol=1e-3)
    dark = slow(bar[0].numpy(), 8.0, border="zero")
    assert dark[56, 56] - dark[0, 56] > 0.5
    inside = digits(1)[0].numpy()
    np.testing.assert_allclose(slow(inside, 2.0, border="zero"), slow(inside, 2.0), atol=1e-6)


def test_the_gaussian_is_the_discrete_one() -> None:
    digit = digits(1)
    assert np.abs(slow(digit[0].numpy(), 0.5, sampled=True) - slow(digit[0].numpy(), 0.5)).max() > 0.01
    for variance in (0.19, 0.77, 12.0, 49.0):
        kernel = discrete_gaussian_kernel(variance)
        radius = len(kernel) // 2
        expected = np.zeros((60, 60))
        for pixel in range(60):
            impulse = np.zeros(60)
            impulse[pixel] = 1
            expected[:, pixel] = np.convolve(np.pad(impulse, radius, mode="reflect"), kernel.numpy(), "valid")
        made = smoothing_matrices(torch.tensor([variance], dtype=torch.float64), 60)
        np.testing.assert_allclose(made[0].numpy(), expected, atol=1e-8)
    assert smoothing_matrices(torch.tensor([4.0]), 1).item() == 1


def test_one_scale_each_equals_one_at_a_time_in_any_chunk() -> None:
    images = digits(7)
    scales = torch.tensor([4, 0.5, 1, 8, 1.7, 0.9, 2], dtype=torch.float64)
    alone = torch.cat(
        [large_scale(image[None], scale) for image, scale in zip(images, scales.tolist(), strict=True)]
    )
    for chunk in (1, 3, 100):
        torch.testing.assert_close(large_scale(images, scales, chunk=chunk), alone, atol=1e-4, rtol=0)
        torch.testing.assert_close(
            large_scale(images, 2.0, chunk=chunk), large_scale(images, 2.0), atol=1e-5, rtol=0
        )


@pytest.mark.parametrize("scale", [0.5, 1.0, 2**0.25, 2.0, 4.0, 8.0, None])
def test_the_code_of_a_gpu_makes_the_same_numbers(scale: float | None) -> None:
    """On a CPU numpy's arrays and blocks, on a GPU torch's arrays and whole matrices: here both on a CPU."""
    images, scales = digits(9), torch.logspace(-1, 3, 9, base=2, dtype=torch.float64)
    factors = scales if scale is None else torch.tensor([scale], dtype=torch.float64)
    by_torch = torch.full((9, 112, 112), math.nan)
    _fill(by_torch, images, factors, 4, torch)
    by_numpy = large_scale(images, scales if scale is None else scale, chunk=4)[:, 0]
    torch.testing.assert_close(by_torch, by_numpy, atol=1e-4, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("ranged", [False, True])
def test_digits_of_any_type(dtype: torch.dtype, ranged: bool) -> None:
    """MNIST has bytes. numpy does not know all types of torch."""
    images = digits(3) // 2  # up to 127: bfloat16 rounds from 256 on
    scale: Any = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64) if ranged else 2.0
    before = images.to(dtype)
    kept = before.clone()
    assert large_scale(before, scale).equal(large_scale(images, scale))
    assert before.equal(kept)  # nothing is computed in the place of what was given


@pytest.mark.parametrize("ranged", [False, True])
def test_threads_make_the_same_images(ranged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    images = digits(37)
    scale: Any = torch.linspace(1, 4, 37, dtype=torch.float64) if ranged else 2.0
    made = []
    for threads in (1, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        with torch.inference_mode():  # holds for one thread, and what it made may not be changed outside
            made.append(large_scale(images, scale, chunk=2))
    assert made[0].equal(made[1])


def test_an_error_in_a_thread_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(np, "arctan", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        large_scale(torch.zeros(40, 28, 28), 2.0, chunk=1)


def test_an_empty_image_and_no_image() -> None:
    black = torch.zeros(1, 28, 28, dtype=torch.uint8)
    assert large_scale(black + 255, 8.0).unique().tolist() == pytest.approx([BACKGROUND])  # nothing but digit
    assert large_scale(black, 2.0).unique().tolist() == pytest.approx([BACKGROUND])
    assert large_scale(black[:0], 2.0).shape == (0, 1, 112, 112)


def test_the_sizes_of_the_paper() -> None:
    assert len(MNIST_SIZES) == 17
    assert (MNIST_SIZES[0], MNIST_SIZES[4], MNIST_SIZES[-1]) == (0.5, 1, 8)
    assert len(TRAINING_SCALES) == 6


def test_the_splits_are_the_first_the_last_and_the_test_images() -> None:
    mnist = small_mnist()
    maker = MnistLargeScale(mnist=mnist)
    expected = {
        "train": (mnist.train_images[:50], mnist.train_labels[:50]),
        "validation": (mnist.train_images[50:], mnist.train_labels[50:]),
        "test": (mnist.test_images, mnist.test_labels),
    }
    for split, (images, labels) in expected.items():
        made = maker.make(split)  # type: ignore[arg-type]
        assert made.images.equal(large_scale(images, 1.0))
        assert made.labels.equal(labels)
        assert made.scales.eq(1).all()
        assert maker.count(split) == len(images)  # type: ignore[arg-type]


def test_scales_of_a_range_are_log_uniform_and_follow_the_seed() -> None:
    mnist = small_mnist()
    many = TrainAndTest(*(field.repeat(100, *(1,) * (field.ndim - 1)) for field in mnist))
    maker = MnistLargeScale(mnist=many)
    scales = maker.make("test", (1.0, 4.0), size=1).scales
    assert 1 <= scales.min() < 1.01
    assert 3.96 < scales.max() <= 4
    # Log-uniform has its median at 2, uniform would have it at 2.5.
    assert scales.median().item() == pytest.approx(2, abs=0.1)
    again = maker.make("test", (1.0, 4.0), size=1).scales
    other = maker.make("test", (1.0, 4.0), seed=1, size=1).scales
    train = maker.make("train", (1.0, 4.0), size=1).scales
    assert scales.equal(again)
    assert not scales.equal(other)
    assert not scales.equal(train[: len(scales)])


def test_a_set_of_a_range_has_each_image_at_its_scale() -> None:
    maker = MnistLargeScale(mnist=small_mnist())
    made = maker.make("validation", (1.0, 4.0))
    expected = large_scale(maker.mnist.train_images[50:], made.scales)
    assert made.images.equal(expected)


def test_subsets_are_balanced_and_nested() -> None:
    labels = torch.arange(10).repeat(30)[torch.randperm(300, generator=torch.Generator().manual_seed(0))]
    large = balanced_subset(labels, 125, seed=3)
    assert len(large.unique()) == 125
    counts = labels[large].bincount()
    assert counts.max() - counts.min() <= 1
    for samples in (1, 10, 57):
        assert balanced_subset(labels, samples, seed=3).equal(large[:samples])
    assert not balanced_subset(labels, 125, seed=4).equal(large)
    # The classes that are left over do not follow the order of their numbers.
    assert {tuple(sorted(labels[balanced_subset(labels, 3, seed)].tolist())) for seed in range(5)} != {
        (0, 1, 2)
    }


def test_subsets_keep_the_scales_of_their_images() -> None:
    maker = MnistLargeScale(mnist=small_mnist())
    large = maker.make("train", (1.0, 4.0), samples=20)
    small = maker.make("train", (1.0, 4.0), samples=10)
    assert small.scales.equal(large.scales[:10])
    assert small.labels.equal(large.labels[:10])
    torch.testing.assert_close(small.images, large.images[:10], atol=1e-4, rtol=0)


def test_as_a_dataset() -> None:
    made = MnistLargeScale(mnist=small_mnist()).make("test", 2.0)
    images, labels = next(iter(DataLoader(made.dataset(), batch_size=8)))
    assert images.equal(made.images[:8])
    assert labels.equal(made.labels[:8])
    assert made.to("cpu").images.equal(made.images)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": "val"}, "'val'"),
        ({"split": "test", "scale": 0.0}, "must be positive"),
        ({"split": "test", "scale": (4.0, 1.0)}, r"\(4.0, 1.0\)"),
        ({"split": "test", "scale": math.nan}, "nan"),
        ({"split": "test", "samples": 0}, "samples must be at least 1"),
        ({"split": "test", "size": 0}, "at least 1 pixel"),
    ],
)
def test_what_is_no_set(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MnistLargeScale(mnist=small_mnist()).make(**arguments)


def test_bad_images() -> None:
    with pytest.raises(ValueError, match="images must be grey and square"):
        large_scale(torch.zeros(1, 3, 28, 28), 1.0)
    with pytest.raises(ValueError, match="positive and finite"):
        large_scale(torch.zeros(2, 28, 28), torch.tensor([1.0, -1.0]))
    with pytest.raises(ValueError, match="samples must be at most 3, the number of images; got 4"):
        balanced_subset(torch.arange(3), 4, seed=0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_gpu_makes_the_same_numbers() -> None:
    images, scales = digits(20), torch.logspace(-1, 3, 20, base=2, dtype=torch.float64)
    on_gpu = large_scale(images.cuda(), scales.cuda())
    torch.testing.assert_close(on_gpu.cpu(), large_scale(images, scales), atol=1e-3, rtol=0)
