"""MNIST Large Scale: MNIST digits at any size in 112 x 112 images, made as the paper's appendix says.

    digit (28, 28) ──rescale by s──▶ clip [0, 256] ──embed──▶ (112, 112) ──discrete Gaussian, σ = 7/8·s──▶
    stretch to [0, 255] ──▶ (2/π)·arctan(0.02·(I − 128)), from −0.76 (background) to 0.76

The published files are restricted, so these images are remade. What the recipe leaves open was chosen:
- Bicubic kernel, pixel centres, anti-aliasing below 1: see `rescale`. The digit lies on a black background
  without end, so rescaling and embedding in the frame are one step.
- Stretch: for each image, its darkest pixel to 0 and its brightest to 255. A set-wide stretch would leave
  thin digits at small sizes, which smoothing makes faint, near the background.
- Border of the smoothing: the paper embeds (crops) first and smooths then, so what lies outside the frame is
  gone. The frame is mirrored at its border (edge pixel not repeated). Zeros there would draw a dark frame
  some σ = 7/8·s pixels wide across every digit that leaves the image, which happens from about s = 4 on.
  Where the digit ends well inside the frame the border makes no difference.
"""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from scalechannels.data.banded import Banded
from scalechannels.data.image_set import ImageSet, Scale, Split, drawn_scales, require_one_of
from scalechannels.data.pictures import BACKGROUND, GAIN, MIDDLE
from scalechannels.data.rescale import KERNEL_RADIUS, as_scales, full_precision, rescaling_matrices
from scalechannels.data.sources import TrainAndTest, load_mnist

SIZE = 112
TRAINING_SCALES: tuple[Scale, ...] = (1.0, 2.0, 4.0, (1.0, 2.0), (2.0, 4.0), (1.0, 4.0))
SMOOTHING = 7 / 8  # standard deviation over scale factor


class MnistLargeScale:
    """Makes sets from MNIST, on any device.

    The first 50,000 images of MNIST's training set are for training, its last 10,000 for validation, and its
    test set is for testing. (Of other data in MNIST's form, the first 5/6.)
    """

    def __init__(
        self,
        root: Path | str | None = None,
        *,
        mnist: TrainAndTest | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.mnist = load_mnist(root) if mnist is None else mnist
        self.device = torch.device(device)

    def count(self, split: Split) -> int:
        """How many images a split has."""
        return len(self._split(split, 0)[1])

    def digits(self, split: Split) -> tuple[Tensor, Tensor]:
        """The images (N, 28, 28) and labels (N,) of a split, as MNIST has them."""
        return self._split(split, 0)[:2]

    def make(
        self, split: Split, scale: Scale = 1.0, seed: int = 0, samples: int | None = None, size: int = SIZE
    ) -> ImageSet:
        """A split of MNIST, at one scale, in a range or at several, whole or a balanced subset of it.

        `seed` draws the scales, see `drawn_scales`, and the subset. Subsets of one seed are nested: a smaller
        one is the beginning of a larger one, image by image and with the same scales.
        """
        require_one_of(Split, split=split)
        if samples is not None and samples < 1:
            raise ValueError(f"samples must be at least 1, or None for all; got {samples}")
        images, labels, draws = self._split(split, seed)
        scales = drawn_scales(scale, draws)
        if samples is not None:
            chosen = balanced_subset(labels, samples, seed)
            images, labels, scales = images[chosen], labels[chosen], scales[chosen]
        images = images.to(self.device)
        made = large_scale(images, scales if isinstance(scale, tuple) else scale, size)
        return ImageSet(made, labels.to(self.device), scales.to(self.device))

    def _split(self, split: Split, seed: int) -> tuple[Tensor, Tensor, Tensor]:
        """Images, labels, and each image's draw in [0, 1), set by its place in MNIST and by the seed."""
        first, count = len(self.mnist.train_images) * 5 // 6, len(self.mnist.train_images)
        draws = torch.rand(
            count + len(self.mnist.test_images),
            generator=torch.Generator().manual_seed(seed),
            dtype=torch.float64,
        )
        if split == "test":
            return self.mnist.test_images, self.mnist.test_labels, draws[count:]
        part = slice(0, first) if split == "train" else slice(first, count)
        return self.mnist.train_images[part], self.mnist.train_labels[part], draws[part]


def large_scale(
    images: Tensor, scale: float | Tensor, size: int = SIZE, *, chunk: int | None = None
) -> Tensor:
    """Digits (N, n, n), 0 to 255, at one scale or at one each, as (N, 1, size, size) float32 on their device.

    Made `chunk` images at a time: few on a CPU, so that what is in between stays in its cache, many on a GPU.
    """
    if images.ndim != 3 or images.shape[-1] != images.shape[-2]:
        raise ValueError(f"images must be grey and square, (N, n, n); got the shape {tuple(images.shape)}")
    if size < 1:
        raise ValueError(f"size must be at least 1 pixel; got {size}")
    scales = as_scales(scale, len(images), images.device)
    shape = (len(images), size, size)
    if images.device.type == "cpu":
        # numpy asks for large pages, which the system hands out several times faster.
        result = torch.from_numpy(np.empty(shape, np.float32))
        _fill(result, images, scales, chunk or 64, np)
    else:
        result = torch.empty(shape, device=images.device)
        with full_precision():
            _fill(result, images, scales, chunk or 1024, torch)
    return result[:, None]


def balanced_subset(labels: Tensor, samples: int, seed: int) -> Tensor:
    """Indices of `samples` images, as even over the classes as can be; a beginning of every larger subset.

    The images of each class are shuffled by the seed and then dealt in turns.
    """
    if samples > len(labels):
        raise ValueError(f"samples must be at most {len(labels):,}, the number of images; got {samples}")
    shuffled = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    turns = torch.zeros_like(shuffled)
    for label in labels.unique():
        of_class = (labels[shuffled] == label).nonzero()[:, 0]
        turns[of_class] = torch.arange(len(of_class))
    # Within a turn the classes keep the shuffled order, so that no class is always the one left out.
    return shuffled[turns.argsort(stable=True)][:samples]


def smoothing_matrices(variances: Tensor, size: int) -> Tensor:
    """Smoothing of `size` pixels by the discrete Gaussian, mirrored at the border: float64 (S, size, size).

    An image with its mirror image repeats after 2·size − 2 pixels, and the discrete Gaussian of variance t
    damps the frequency θ by exp(t (cos θ − 1)). So the infinite kernel is found without truncation. Equal to
    `scale_space.discrete_gaussian_kernel`, mirrored.
    """
    if size == 1:  # one pixel and its mirror images: nothing to smooth
        return variances.new_ones(len(variances), 1, 1).double()
    period = 2 * size - 2
    theta = 2 * math.pi / period * torch.arange(size, dtype=torch.float64, device=variances.device)
    damping = torch.exp(variances.double()[:, None] * (torch.cos(theta) - 1))  # (S, frequencies)
    kernels = torch.fft.irfft(damping, period).repeat(1, 2)  # the weight of each distance, two periods
    windows = kernels.unfold(1, size, 1)  # (S, first distance, size)
    straight = windows[:, period - size + 1 : period + 1].flip(2)  # from pixel j to pixel i: i − j
    mirrored = windows[:, :size]  # from its mirror image: i + j
    matrices = straight + mirrored
    matrices[:, :, :: size - 1] /= 2  # an edge pixel is its own mirror image
    return matrices


def _fill(result: Tensor, images: Tensor, scales: Tensor, chunk: int, library: Any) -> None:
    """Writes all images into `result` (N, size, size), with the arrays of numpy or of torch."""

    def array(tensor: Tensor) -> Any:
        return tensor.numpy() if library is np else tensor

    count, size, digit, target = *result.shape[:2], images.shape[-1], array(result)
    source = array(images if images.dtype == torch.uint8 else images.float())  # numpy has no bfloat16
    # A thread makes several chunks in a row: two of them at one page of memory would both prepare it.
    firsts = range(0, count, stretch := 4 * chunk)
    threads = min(torch.get_num_threads(), len(firsts)) if library is np else 1
    free: SimpleQueue[Any] = SimpleQueue()  # memory for what is in between, for each thread
    for _ in range(threads):
        free.put(array(result.new_empty(2, min(chunk, count) * max(size, digit) ** 2)))

    shared = _products(scales, digit, size, library) if len(scales) == 1 else None
    # Similar scales go together: a chunk is computed in a frame that fits its largest digit.
    order = array(scales.argsort())

    def make_stretch(first: int) -> None:
        scratch = free.get()
        try:
            for start in range(first, min(first + stretch, count), chunk):
                part = slice(start, start + chunk)
                chosen = order[part] if shared is None else part
                products = shared or _products(scales[chosen], digit, size, library)
                _make(source[chosen], products, target, chosen, scratch)
        finally:
            free.put(scratch)

    if threads <= 1:
        for first in firsts:
            make_stretch(first)
    else:
        with ThreadPoolExecutor(threads) as pool:  # over images: their products are too small to be shared
            list(pool.map(make_stretch, firsts))


def _products(scales: Tensor, digit: int, size: int, library: Any) -> tuple[list[Banded], list[Banded]]:
    """The products that rescale, and those that smooth, for one scale or for one each.

    They are cropped to what is not background: the rescaled digit lies in `support` pixels, the smoothed one
    in `frame` pixels about the centre. What is left out, here and in `Banded`, changes less than 1e-4 in the
    end (unless an image has next to no contrast, which the stretch then amplifies).
    """
    largest, smallest = float(scales.max()), float(scales.min())
    half = largest * (digit - 1) / 2 + KERNEL_RADIUS * max(1.0, largest)
    support = min(size, 2 * math.ceil(half) + size % 2)
    spread = math.ceil(4 * SMOOTHING * largest)
    frame = min(size, support + 2 * spread)
    inside = slice((frame - support) // 2, (frame + support) // 2)
    rescaling = rescaling_matrices(scales, digit, support)
    variances = (SMOOTHING * scales) ** 2
    smoothing = smoothing_matrices(variances, frame)[..., inside]
    steps: list[tuple[Tensor, Literal["rows", "columns"]]] = [(smoothing, "rows"), (smoothing, "columns")]
    if math.exp(-((SMOOTHING * smallest) ** 2)) < 1e-5:
        # Half of the smoothing leaves so little detail that every second row can stand for two. Without the
        # others a frequency θ is taken for π − θ, and both halves damp the pair: to exp(−t) in all.
        halfway = smoothing_matrices(variances / 2, frame)
        steps = [(halfway[:, ::2, inside], "rows"), steps[1], (2 * halfway[:, :, ::2], "rows")]
    return (
        [Banded.of(rescaling, "columns", library), Banded.of(rescaling, "rows", library)],
        [Banded.of(matrix, axis, library) for matrix, axis in steps],
    )


def _make(digits: Any, products: Any, result: Any, chosen: Any, scratch: Any) -> None:
    """Writes the images of a chunk of digits (N, n, n) to their places in `result` (…, size, size).

    On a CPU numpy's arctan uses wider registers than torch's: several times faster. And torch would share
    even the conversion of a chunk to floats between threads of its own, which wait for the cores.
    """
    library: Any = np if isinstance(digits, np.ndarray) else torch
    rescaling, smoothing = products
    memory = itertools.cycle(scratch)
    images = library.asarray(digits, dtype=library.float32)
    for product in rescaling:
        images = product(images, next(memory))  # finally (N, support, support)
    library.clip(images, 0, 256, out=images)
    for product in smoothing:
        images = product(images, next(memory))  # finally (N, frame, frame)
    pixels = images.reshape(len(images), -1)  # one axis: longer loops inside numpy
    darkest = library.amin(pixels, 1)[:, None]
    contrast = library.amax(pixels, 1)[:, None] - darkest
    contrast = library.where(contrast > 1e-2, contrast, math.inf)
    gain = 255 * GAIN / contrast  # none for an empty image, which stays background
    library.multiply(pixels, gain, out=pixels)
    library.subtract(pixels, darkest * gain + GAIN * MIDDLE, out=pixels)
    library.arctan(pixels, out=pixels)
    library.multiply(pixels, 2 / math.pi, out=pixels)
    margin = (result.shape[-1] - images.shape[-1]) // 2
    if margin:
        result[chosen] = BACKGROUND
    inside = slice(margin, result.shape[-1] - margin)
    result[chosen, inside, inside] = images
