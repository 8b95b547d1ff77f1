from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from scalechannels.data.rescale import (
    Continuation,
    full_precision,
    keys_cubic,
    rescale,
    rescaled_bytes,
    rescaling_matrices,
)


def random_images(count: int = 2, size: int = 12, seed: int = 0) -> torch.Tensor:
    return torch.rand(count, size, size, generator=torch.Generator().manual_seed(seed))


def coordinates(size: int) -> torch.Tensor:
    return torch.arange(size, dtype=torch.float64) - (size - 1) / 2


@settings(max_examples=50, deadline=None)
@given(
    scale=st.floats(0.1, 12),
    input_size=st.integers(1, 40),
    output_size=st.integers(1, 60),
)
def test_weights_sum_to_one_over_the_image_and_its_continuation(
    scale: float, input_size: int, output_size: int
) -> None:
    matrix = rescaling_matrices(torch.tensor([scale]), input_size, output_size, continuation="reflect")[0]
    torch.testing.assert_close(matrix.sum(1), torch.ones(output_size, dtype=torch.float64))


def test_at_one_the_image_is_itself_cropped_or_padded() -> None:
    images = random_images(size=12)
    assert rescale(images, 1.0).equal(images)
    assert rescale(images, 1.0, 8).equal(images[:, 2:10, 2:10])
    assert rescale(images, 1.0, 16).equal(F.pad(images, (2, 2, 2, 2)))
    assert rescale(images, 1.0, 16, continuation="reflect").equal(F.pad(images, (2, 2, 2, 2), mode="reflect"))


@pytest.mark.parametrize("sizes", [(12, 30), (11, 30), (12, 31), (11, 31)])
@pytest.mark.parametrize("scale", [0.6, 1.7])
def test_the_centre_stays_the_centre(sizes: tuple[int, int], scale: float) -> None:
    images = random_images(size=sizes[0])
    made = rescale(images, scale, sizes[1])
    torch.testing.assert_close(rescale(images.flip(1), scale, sizes[1]), made.flip(1))
    torch.testing.assert_close(rescale(images.mT, scale, sizes[1]), made.mT)


@pytest.mark.parametrize("scale", [1.0, 2**0.25, 3.3])
def test_exact_for_quadratics_unlike_the_kernel_with_another_parameter(scale: float) -> None:
    x = coordinates(20)
    parabola = x[None, :] ** 2 + 3 * x[:, None] - x[:, None] * x[None, :]
    y = coordinates(16) / scale
    expected = y[None, :] ** 2 + 3 * y[:, None] - y[:, None] * y[None, :]
    made = rescale(parabola[None], scale, 16)[0]
    torch.testing.assert_close(made, expected.float(), atol=1e-4, rtol=1e-5)


def test_the_kernel_differs_from_that_of_torch() -> None:
    """torch's bicubic has a = -3/4: at a step of 255 and scale 2 the two are several grey levels apart."""
    step = torch.zeros(1, 12, 12)
    step[:, :, 6:] = 255
    keys = rescale(step, 2.0, 24)
    other = F.interpolate(step[:, None], scale_factor=2, mode="bicubic")[:, 0]
    assert (keys - other)[:, 6:18, 6:18].abs().max() > 3
    torch.testing.assert_close(keys_cubic(torch.tensor([0.0, 0.5, 1.5])), torch.tensor([1, 0.5625, -0.0625]))


@pytest.mark.parametrize("scale", [0.5, 2.0, 4.0])
def test_equals_pillow_where_pillow_can(scale: float) -> None:
    """Pillow's bicubic is the same kernel, centre and anti-aliasing at whole sizes, away from the border."""
    image = random_images(1, 28)[0] * 255
    size = round(28 * scale)
    theirs = np.asarray(Image.fromarray(image.numpy()).resize((size, size), Image.Resampling.BICUBIC))
    ours = rescale(image[None], scale, size)[0].numpy()
    inside = slice(math.ceil(2 * max(1, scale)) + 1, -math.ceil(2 * max(1, scale)) - 1)
    np.testing.assert_allclose(ours[inside, inside], theirs[inside, inside], atol=2e-3)


@pytest.mark.parametrize("scale", [0.5, 2**-0.25, 2**0.25, 2.7])
def test_a_gaussian_blob_becomes_the_blob_of_another_width(scale: float) -> None:
    def blob(size: int, sigma: float) -> torch.Tensor:
        profile = torch.exp(-(coordinates(size) ** 2) / (2 * sigma**2))
        return profile[:, None] * profile[None, :]

    made = rescale(blob(41, 4.0)[None], scale, 57)[0]
    # Below 1 the anti-aliasing widens the blob a little; a shift of half a pixel would cost 0.07 and more.
    assert (made - blob(57, 4.0 * scale)).abs().max() < 0.012


def test_antialiasing_averages_what_would_be_skipped() -> None:
    stripes = torch.zeros(1, 32, 32)
    stripes[:, :, ::2] = 1
    inside = (slice(None), slice(4, 12), slice(4, 12))
    assert (rescale(stripes, 0.45, 16)[inside] - 0.5).abs().max() < 0.1
    assert (rescale(stripes, 0.45, 16, antialias=False)[inside] - 0.5).abs().max() > 0.3
    assert rescale(stripes, 1.3).equal(rescale(stripes, 1.3, antialias=False))


def test_reflect_is_the_mirrored_image_rescaled_and_not_the_one_with_a_repeated_edge() -> None:
    image = random_images(1, 16, seed=3)
    for scale in (0.5, 0.7, 1.0):
        made = rescale(image, scale, continuation="reflect")
        mirrored = torch.from_numpy(np.pad(image.numpy(), ((0, 0), (24, 24), (24, 24)), mode="reflect"))
        torch.testing.assert_close(made, rescale(mirrored, scale, 16))
        repeated = torch.from_numpy(np.pad(image.numpy(), ((0, 0), (24, 24), (24, 24)), mode="symmetric"))
        if scale < 1:
            assert (made - rescale(repeated, scale, 16)).abs().max() > 0.1
            assert (made - rescale(image, scale)).abs().max() > 0.3  # zeros around it


def test_one_scale_each_equals_one_at_a_time() -> None:
    images = torch.rand(4, 3, 10, 10)
    scales = torch.tensor([0.5, 1.0, 1.3, 4.0], dtype=torch.float64)
    for continuation in ("zero", "reflect"):
        together = rescale(images, scales, 21, continuation=continuation)
        for index, scale in enumerate(scales.tolist()):
            alone = rescale(images[index : index + 1], scale, 21, continuation=continuation)
            torch.testing.assert_close(together[index], alone[0])
    assert rescale(images[:0], scales[:0]).shape == (0, 3, 10, 10)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_scales_that_are_none(scale: float) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        rescale(random_images(), scale)


def test_other_bad_input() -> None:
    with pytest.raises(ValueError, match=r"one for each of 2 images; got the shape \(3,\)"):
        rescale(random_images(2), torch.ones(3))
    with pytest.raises(ValueError, match="images must be square"):
        rescale(torch.zeros(2, 10, 11), 1.0)
    with pytest.raises(ValueError, match="'mirror'"):
        rescale(random_images(), 1.0, continuation="mirror")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least 1 pixel"):
        rescale(random_images(), 1.0, -3)


def test_full_precision_is_for_the_block_only() -> None:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        with full_precision():
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("continuation", ["zero", "reflect", "border"])
def test_offsets_move_the_centre_of_each_image(continuation: Continuation) -> None:
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(3, 2, 9, 9, generator=generator)
    scales = torch.tensor([0.6, 1.0, 1.7])
    offsets = torch.tensor([[2, -3], [0, 5], [-4, 1]])
    made = rescale(images, scales, 15, continuation=continuation, offsets=offsets)
    wide = rescale(images, scales, 15 + 2 * 5, continuation=continuation)  # room for all of them
    for image, whole, (down, right) in zip(made, wide, offsets.tolist(), strict=True):
        expected = whole[:, 5 - down : 20 - down, 5 - right : 20 - right]
        torch.testing.assert_close(image, expected, atol=1e-5, rtol=0)


def test_bytes_are_rescaled_in_pieces_and_clipped() -> None:
    images = torch.randint(
        0, 256, (7, 1, 8, 8), generator=torch.Generator().manual_seed(0), dtype=torch.uint8
    )
    scales, offsets = torch.linspace(0.5, 2, 7), torch.arange(14).view(7, 2) - 7
    made = rescaled_bytes(images, scales, 12, offsets=offsets, chunk=3)
    expected = rescale(images, scales, 12, offsets=offsets).clamp(0, 255) / 255
    torch.testing.assert_close(made, expected, atol=1e-6, rtol=0)
    assert rescale(images, 1.7, 12).min() < 0  # what is clipped
    assert torch.equal(rescaled_bytes(images, 1.0), images / 255)
