from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from scalechannels.data import rescaled_cifar10
from scalechannels.data.rescale import rescale
from scalechannels.data.rescaled_cifar10 import (
    RescaledCifar10,
    rescale_cifar10,
)
from scalechannels.data.sizes import CIFAR_SIZES
from scalechannels.data.sources import TrainAndTest


def pictures(count: int, seed: int = 0) -> torch.Tensor:
    """Colour images with smooth and with sharp structure, over the whole range of a byte."""
    random = torch.Generator().manual_seed(seed)
    coarse = F.interpolate(torch.rand(count, 3, 6, 6, generator=random), size=32, mode="bilinear")
    fine = torch.rand(count, 3, 32, 32, generator=random)
    return ((0.8 * coarse + 0.4 * fine - 0.1).clamp(0, 1) * 255).round().to(torch.uint8)


def keys(x: float) -> float:
    x = abs(x)
    if x < 1:
        return 1.5 * x**3 - 2.5 * x**2 + 1
    return -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0.0


def slow(image: torch.Tensor, factor: float) -> torch.Tensor:
    """One image (3, 32, 32) pixel by pixel, each the sum over its taps, mirrored back into the image."""
    width = max(1.0, 1 / factor)

    def taps(j: int) -> dict[int, float]:
        u = 15.5 + (j - 15.5) / factor
        around = range(math.floor(u - 2 * width), math.ceil(u + 2 * width) + 1)
        total = sum(keys((u - position) / width) for position in around)
        weights: dict[int, float] = {}
        for position in around:
            inside = position
            while not 0 <= inside <= 31:
                inside = -inside if inside < 0 else 62 - inside
            weights[inside] = weights.get(inside, 0.0) + keys((u - position) / width) / total
        return weights

    result = torch.zeros(3, 32, 32, dtype=torch.float64)
    for i in range(32):
        for j in range(32):
            for row, a in taps(i).items():
                for column, b in taps(j).items():
                    result[:, i, j] += a * b * image[:, row, column]
    return result.clamp(0, 255) / 255


@pytest.mark.parametrize("factor", [2**-0.75, 2**0.25])
def test_equals_the_slow_and_obvious_one(factor: float) -> None:
    image = pictures(1)
    torch.testing.assert_close(
        rescale_cifar10(image, factor)[0].double(), slow(image[0].double(), factor), atol=1e-4, rtol=0
    )


def test_the_factors_of_the_paper() -> None:
    assert len(CIFAR_SIZES) == 9
    assert (CIFAR_SIZES[0], CIFAR_SIZES[4], CIFAR_SIZES[-1]) == (0.5, 1, 2)


def test_at_one_the_pixels_are_the_original_ones() -> None:
    images = pictures(5)
    assert rescale_cifar10(images, 1.0).equal(images / 255)


def test_above_one_the_centre_is_cut_out() -> None:
    """At 2 nothing outside the middle 16 + 2·2 pixels matters (the kernel reaches 2 beyond the crop)."""
    images = pictures(2)
    changed = images.clone()
    changed[..., :5, :] = 0
    changed[..., -5:] = 255
    assert rescale_cifar10(changed, 2.0).equal(rescale_cifar10(images, 2.0))
    assert not rescale_cifar10(changed, 1.2).equal(rescale_cifar10(images, 1.2))


def test_below_one_the_image_is_mirrored() -> None:
    image = torch.zeros(1, 3, 32, 32, dtype=torch.uint8)
    image[..., :8] = 200  # a bright left edge
    row = rescale_cifar10(image, 0.5)[0, 0, 16]
    assert row[0:4].max() < 0.1  # mirrored: the dark middle of the image again
    assert row[8:12].min() > 0.6  # the edge itself and, left of it, its mirror image
    assert row[5:8].min() > 0.6
    assert row[16:].max() < 0.1


def test_shrinking_is_antialiased() -> None:
    images = pictures(3)
    plain = rescale(images, 0.5, continuation="reflect", antialias=False).clamp(0, 255) / 255
    assert (rescale_cifar10(images, 0.5) - plain).abs().mean() > 0.01


def test_overshoot_is_clipped() -> None:
    step = torch.zeros(1, 3, 32, 32, dtype=torch.uint8)
    step[..., 16:] = 255
    made = rescale_cifar10(step, 2**0.25)
    assert (made.min(), made.max()) == (0, 1)
    assert rescale(step, 2**0.25).max() > 256


def test_one_factor_each_in_any_chunk() -> None:
    images = pictures(5)
    factors = torch.tensor([0.5, 0.9, 1, 1.5, 2], dtype=torch.float64)
    alone = torch.cat(
        [rescale_cifar10(image[None], factor) for image, factor in zip(images, factors.tolist(), strict=True)]
    )
    for chunk in (1, 2, 100):
        torch.testing.assert_close(rescale_cifar10(images, factors, chunk=chunk), alone)


def test_the_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rescaled_cifar10, "VALIDATION", 4)
    images, labels = pictures(18), torch.arange(18) % 10
    maker = RescaledCifar10(cifar10=TrainAndTest(images[:15], labels[:15], images[15:], labels[15:]))
    whole = maker.make("train")
    assert whole.images.equal(images[:15] / 255)
    assert maker.make("train", hold_out=True).images.equal(images[:11] / 255)
    assert maker.make("validation", hold_out=True).labels.equal(labels[11:15])
    test = maker.make("test", 0.5)
    assert test.images.equal(rescale_cifar10(images[15:], 0.5))
    assert test.labels.equal(labels[15:])
    assert test.scales.eq(0.5).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": "testing"}, "'testing'"),
        ({"split": "validation"}, "hold_out=True"),
        ({"split": "test", "factor": 2.1}, "from 0.5 to 2.0; got 2.1"),
        ({"split": "test", "factor": math.nan}, "nan"),
    ],
)
def test_what_is_no_set(arguments: dict, message: str) -> None:
    images, labels = pictures(2), torch.arange(2)
    maker = RescaledCifar10(cifar10=TrainAndTest(images, labels, images, labels))
    with pytest.raises(ValueError, match=message):
        maker.make(**arguments)
